"""`Key`: the name of an extra spec, of a property of an image, or of a scheduler hint."""

import re

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
