"""`Key`: the name of an extra spec, an image property or a hint; the key that a misspelt name stands for."""

import re
from collections.abc import Iterable, Iterator

import msgspec

from roost.model.spec import Where

ANY = ".+"
"""A parameter that is any text."""

UNSCOPED = "[^:]+"
"""A parameter that is any text without a colon."""

NUMBER = "[0-9]{1,9}"
"""A parameter that is a number."""


class Key(msgspec.Struct, frozen=True):
    """A key, or a family of keys.

    A key is the ``fixed`` part alone. A family is the ``fixed`` part with a text behind it that the regular
    expression ``parameter`` matches: ``hw:numa_cpus.`` with a number, ``resources:`` with a class. With an
    empty fixed part it is every key that the expression matches. Filters and weighers declare the keys that
    they read; see `roost.scheduler.plugins.plugins.Filter`.
    """

    where: Where
    fixed: str
    parameter: str = ""

    def matches(self, name: str) -> bool:
        """Return whether a name is this key, or one of the family."""
        if not self.parameter:
            return name == self.fixed
        rest = name.removeprefix(self.fixed)
        return name.startswith(self.fixed) and re.fullmatch(self.parameter, rest, re.ASCII) is not None

    @property
    def shown(self) -> str:
        """The key as documentation writes it: ``hw:numa_cpus.N``, ``resources:…``, or ``KEY`` for any."""
        return self.fixed + {"": "", NUMBER: "N", UNSCOPED: "KEY"}.get(self.parameter, "…")


def meant(name: str, keys: Iterable[Key]) -> str | None:
    """Return the key that was meant, None if no fixed part is one edit away from the beginning of ``name``.

    An edit adds, drops or changes one character, or swaps two neighbours; case is ignored. The text after the
    fixed part is not corrected: similar parameters are different keys. If several keys are near, one that
    differs in case only is returned first, else one of which the name lacks a character.
    """
    found = [each for key in keys for each in _near(name, key)]
    return min(found, key=lambda each: (each.lower() != name.lower(), len(each) <= len(name)), default=None)


def _near(name: str, key: Key) -> Iterator[str]:
    size = len(key.fixed)
    if not size:
        return
    ends = (size, size - 1, size + 1) if key.parameter else (len(name),)
    for end in ends:
        head, rest = name[:end], name[end:]
        if len(head) != end or not is_near(head, key.fixed):
            continue
        if not key.parameter or re.fullmatch(key.parameter, rest, re.ASCII):
            yield key.fixed + rest


def is_near(one: str, other: str) -> bool:
    """Return whether two different texts are at most one edit apart, letters of both cases being alike."""
    if abs(len(one) - len(other)) > 1 or one == other:
        return False
    a, b = one.lower(), other.lower()
    # One edit leaves one half unchanged, so that most pairs end here, without a loop over characters.
    half = (min(len(a), len(b)) - 1) // 2
    if half > 0 and a[:half] != b[:half] and a[-half:] != b[-half:]:
        return False
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    a, b = a[start:], b[start:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    return (len(a) <= 1 and len(b) <= 1) or (len(a) == len(b) == 2 and a == b[::-1])
