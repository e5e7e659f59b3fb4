"""The forms of values of extra specs.

Source: the validators of ``nova/api/validation/extra_specs``.
"""

import re

import msgspec

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
