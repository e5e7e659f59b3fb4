"""Texts of connection errors between a client and a service, with advice where TLS is the cause."""

import re

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
