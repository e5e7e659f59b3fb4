"""The size of the head of a request: its first line and its headers.

The HTTP server has a limit too, but checks it only when its buffer is full. A head that arrives in a few
parts may exceed it by half.
"""

from typing import Final

from roost.web.dispatch import Message

LARGEST_HEAD: Final = 64 * 1024
"""Bytes of the head of a request. A longer one is answered with 431. Also the bytes of a body that the HTTP
server reads at once."""

_FIRST_LINE: Final = len("  HTTP/1.1\r\n")
_HEADER: Final = len(": \r\n")


def head_bytes(scope: Message) -> int:
    """Return the size in bytes of the head of an ASGI scope, as HTTP/1.1 writes it."""
    size = _FIRST_LINE + len(scope["method"]) + len(scope.get("raw_path") or scope["path"])
    if query := scope.get("query_string"):
        size += 1 + len(query)
    headers = scope["headers"]
    for name, value in headers:
        size += len(name) + len(value)
    return size + _HEADER * len(headers)


def is_head_too_large(scope: Message) -> bool:
    """Return whether the head of an ASGI scope is larger than `LARGEST_HEAD`."""
    return head_bytes(scope) > LARGEST_HEAD
