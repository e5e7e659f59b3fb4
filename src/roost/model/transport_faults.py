"""Faults between a client and a service, in words that say what to do."""

import re

_TO_TLS = re.compile("illegal (request|status) line|invalid http version|bad status line", re.IGNORECASE)
"""The faults of HTTP clients that are answered in TLS, which has no line of HTTP."""

_FROM_TLS = re.compile("wrong.version.number|record layer failure|packet length too long", re.IGNORECASE)
"""The faults of TLS of clients that are answered in HTTP."""

_NUMBER = re.compile(r"\[Errno -?\d+\] ")


def fault_of(error: BaseException) -> str:
    """The text of an error of a client of HTTP, without the system's number; its type where it has none."""
    text = _NUMBER.sub("", " ".join(str(error).split())) or type(error).__name__
    if _TO_TLS.search(text):
        return "this port speaks TLS: use https"
    if _FROM_TLS.search(text):
        return "this port speaks no TLS: use http"
    return text
