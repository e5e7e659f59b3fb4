"""The limits of one serving process: options of the group ``overload``, and the size of a request's head."""

from typing import Final

from roost.process.options import OptionStruct, option
from roost.web.dispatch import Message

MIB = 2**20


def _mebibytes(number: int) -> int:
    return number * MIB


class Limits(OptionStruct, frozen=True, group="overload"):
    """The limits of one process. Fields that end in ``bytes`` are in bytes, times in seconds."""

    connections: int = option(
        4096,
        min=1,
        help="Connections that a process serves at once. Further ones wait in the listen queue of the kernel "
        "until one is closed.",
    )
    reads: int = option(
        1000,
        min=1,
        help="Reads that a process has in flight at once. A further one gets status 503 at once.",
    )
    writes: int = option(
        1000,
        min=1,
        help="Writes that a process has in flight at once, most of which wait for their commit. A further "
        "one gets status 503 at once.",
    )
    body_bytes: int = option(
        64,
        name="body_mebibytes",
        parse=_mebibytes,
        min=1,
        help="MiB that the bodies of the requests in flight may have together. A request beyond that gets "
        "status 503 at once.",
    )
    answer_bytes: int = option(
        256,
        name="answer_mebibytes",
        parse=_mebibytes,
        min=1,
        help="MiB of long answers that may wait for slow clients. While there is more, reads get status 503 "
        "at once; writes do not.",
    )
    idle_seconds: int = option(
        30,
        min=1,
        max=60,
        help="A connection on which no whole head of a request arrives for this many seconds is closed: one "
        "that is silent, sends its head slowly, or was kept alive and is not used.",
    )
    body_seconds: float = option(
        20.0,
        min=0.1,
        help="A request whose body has not arrived after this many seconds gets status 408, and its "
        "connection is closed.",
    )
    send_seconds: float = option(
        30.0,
        min=0.1,
        help="A connection whose client takes nothing of an answer for this many seconds is closed; of a "
        "long answer it must take 256 KiB in this time, and 1 MiB a second on average.",
    )
    query_share: float = option(
        0.25,
        min=0.01,
        max=1.0,
        help="While writes are under way, queries that are computed beside them take at most this share of "
        "time.",
    )
    query_processes: int = option(
        2,
        min=1,
        help="Expensive queries that are computed at once, each in a process of its own with a low priority.",
    )
    query_waiting: int = option(
        500,
        min=0,
        help="Queries that may wait for their share or for a process, each. A further one gets status 503 at "
        "once.",
    )
    query_seconds: float = option(
        30.0,
        min=1.0,
        help="An expensive query that takes longer gets status 400; a query that waits longer gets 503.",
    )
    query_bytes: int = option(
        1024,
        name="query_mebibytes",
        parse=_mebibytes,
        min=16,
        help="MiB that an expensive query may take beside the memory that it shares. One that needs more "
        "gets status 400.",
    )


LARGEST_HEAD: Final = 64 * 1024
"""Bytes of the head of a request. A longer one is answered with 431. Also the bytes of a body that the HTTP
server reads at once. The HTTP server has a limit too, but checks it only when its buffer is full: a head that
arrives in a few parts may exceed it by half."""

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
