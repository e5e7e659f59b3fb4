"""Cleans text from outside, so that UTF-8, JSON and every database accept it; shortens texts of errors.

PostgreSQL refuses a NUL character. UTF-8, and so JSON and every driver, refuse a lone surrogate, as which
Python reads a byte that is not valid UTF-8 (in a file name or in the output of a command).
"""

import re

MAX_TEXT = 8192
"""Most characters of a free text, such as the reason of a failure; the rest is cut off."""

REPLACEMENT = "\ufffd"
"""Replaces each character that cannot be stored."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def clean_text(text: str, limit: int = MAX_TEXT) -> str:
    """Return the text with unstorable characters replaced, cut after ``limit`` characters with a final …."""
    if len(text) > limit:
        text = f"{text[: limit - 1]}…"
    return _UNSTORABLE.sub(REPLACEMENT, text)


def is_storable(name: str, limit: int) -> bool:
    """Return whether a name can be stored: 1 to ``limit`` storable characters. Names are never cleaned."""
    return 0 < len(name) <= limit and _UNSTORABLE.search(name) is None


def clean_values(value: object) -> object:
    """Return a copy of plain data (as `msgspec.to_builtins` makes it) with every text in it cleaned."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_values(key): clean_values(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [clean_values(each) for each in value]
    return value


def error_text(error: BaseException) -> str:
    """Return the text of an error, cleaned; the name of its type if it is empty or ``str`` raises."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return clean_text(text) or type(error).__name__


_TO_TLS = re.compile("illegal (request|status) line|invalid http version|bad status line", re.IGNORECASE)
"""Errors of an HTTP client whose server speaks TLS."""

_FROM_TLS = re.compile("wrong.version.number|record layer failure|packet length too long", re.IGNORECASE)
"""Errors of a TLS client whose server speaks plain HTTP."""

_NUMBER = re.compile(r"\[Errno -?\d+\] ")


def fault_of(error: BaseException) -> str:
    """Return the text of an HTTP client's error without its errno; the name of its type if it has no text."""
    text = _NUMBER.sub("", " ".join(str(error).split())) or type(error).__name__
    if _TO_TLS.search(text):
        return "this port speaks TLS: use https"
    if _FROM_TLS.search(text):
        return "this port speaks no TLS: use http"
    return text
