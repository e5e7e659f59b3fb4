"""`KnownKey`: keys that something reads, here or elsewhere, with their readers and the forms of their values.

Source: the validators of ``nova/api/validation/extra_specs``.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

import msgspec

from roost.model.spec import Where
from roost.scheduler.request.image_properties import CURRENT_NAMES
from roost.scheduler.request.keys.key import Key

_YES_OR_NO = ("1", "t", "true", "on", "y", "yes", "0", "f", "false", "off", "n", "no")
_LONGEST_NUMBER = 19


class ValueForm(msgspec.Struct, frozen=True):
    """The form of a value: one of some words, or a text that a regular expression matches.

    ``text``: the rest of a sentence about a value without this form: ``is no whole number from 1 on``.
    """

    text: str
    words: frozenset[str] | None = None
    pattern: str = ""
    least: int | None = None
    any_case: bool = False

    def allows(self, value: str) -> bool:
        """Return whether a value has this form."""
        if self.any_case:
            value = value.strip().lower()
        if self.words is not None:
            return value in self.words
        if self.least is not None:
            is_number = value.isdecimal() and value.isascii() and len(value) <= _LONGEST_NUMBER
            return is_number and int(value) >= self.least
        return re.fullmatch(self.pattern, value, re.ASCII) is not None


def one_of(*words: str) -> ValueForm:
    """Return the form of a value that is one of some words."""
    return ValueForm(f"is none of {', '.join(words)}", frozenset(words))


def whole_from(least: int) -> ValueForm:
    """Return the form of a whole number from ``least`` on."""
    return ValueForm(f"is no whole number from {least} on", least=least)


def like(pattern: str, what: str) -> ValueForm:
    """Return the form of a text that matches ``pattern``; ``what`` names it with article: ``a page size``."""
    return ValueForm(f"is not {what}", pattern=pattern)


YES_OR_NO = ValueForm("is neither true nor false", frozenset(_YES_OR_NO), any_case=True)
TEXT = ValueForm("is empty", pattern=r"(?s).+")


SCHEDULER: Final = "the scheduler"
"""The reader of keys that become resources, traits and places of a request, under any configuration."""
DRIVER: Final = "the driver libvirt"
"""The reader of keys that Roost's agents read on hosts with libvirt."""
CONDUCTOR: Final = "the conductor"
"""The reader of hints that a conductor turns into a part of the request."""

NUMA_TREES: Final = "[scheduler] numa_model"
IMAGE_PREFILTER: Final = "[scheduler] image_metadata_prefilter"
PCI_IN_PLACEMENT: Final = "[filter_scheduler] pci_in_placement"
"""Readers that an option switches on."""

NOVA: Final = "Nova's "
"""The beginning of the names of readers that only an OpenStack cloud has."""


class KnownKey(msgspec.Struct, frozen=True):
    """A key, the names of its readers, and the form of its values, None if any text will do.

    A reader is one of the constants of this module, the name of a filter or weigher, or begins with `NOVA`.
    """

    key: Key
    readers: tuple[str, ...]
    form: ValueForm | None = None


def extra_specs(
    readers: str | tuple[str, ...],
    *names: str,
    scope: str = "",
    form: ValueForm | None = None,
    parameter: str = "",
) -> Iterator[KnownKey]:
    """Yield extra specs that have the same readers and form."""
    yield from _keys("extra_spec", readers, names, scope, form, parameter)


def image_properties(
    readers: str | tuple[str, ...], *names: str, scope: str = "", parameter: str = ""
) -> Iterator[KnownKey]:
    """Yield properties of images that have the same readers."""
    yield from _keys("image_property", readers, names, scope, None, parameter)


def _keys(
    where: Where,
    readers: str | tuple[str, ...],
    names: Iterable[str],
    scope: str,
    form: ValueForm | None,
    parameter: str,
) -> Iterator[KnownKey]:
    by = (readers,) if isinstance(readers, str) else readers
    for name in names:
        yield KnownKey(Key(where, scope + name, parameter), by, form)


HINTS: Final = (
    KnownKey(Key("hint", "group"), (CONDUCTOR,)),
    KnownKey(Key("hint", "_nova_check_type"), (SCHEDULER,)),
    KnownKey(Key("hint", "target_cell"), (f"{NOVA}cells v1",)),
    KnownKey(Key("hint", "different_cell"), (f"{NOVA}cells v1",)),
    KnownKey(Key("hint", "reservation"), (f"{NOVA}filter of Blazar",)),
)
"""Scheduler hints that no filter or weigher of Roost declares."""


def current_name(where: Where, name: str) -> str:
    """Return the name under which a key is judged: the current name of an image property."""
    if where != "image_property":
        return name
    return "hw_disk_bus" if name == "vmware_adaptertype" else CURRENT_NAMES.get(name, name)


@cache
def earlier_names() -> tuple[Key, ...]:
    """Return the earlier names of image properties, which Nova still accepts."""
    return tuple(Key("image_property", name) for name in (*CURRENT_NAMES, "vmware_adaptertype"))
