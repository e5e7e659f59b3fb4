"""A stream of the dashboard's events that is read one by one."""

import re
import socket
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Final, NamedTuple, Self

from roost.bench.errors import BenchError

EVENT: Final = re.compile(rb"event: ([^\n]*)\ndata: ([^\n]*)\n\n")
"""An event in the bytes of a stream. The lengths of HTTP's chunks are between events."""

_AT_ONCE: Final = 2**16


class StreamEvent(NamedTuple):
    """An event, with the time of its arrival in seconds of ``time.perf_counter``."""

    topic: str
    data: str
    at: float


class EventStream:
    """A stream of events over a connection of its own. Raises `BenchError` if it does not begin or ends."""

    def __init__(self, port: int, path: str, headers: Mapping[str, str], timeout: float = 10.0) -> None:
        self._timeout = timeout
        self._left = b""
        self._socket = socket.create_connection(("127.0.0.1", port), timeout)
        self._socket.sendall(encoded_get(path, headers))
        while b"\r\n\r\n" not in self._left:
            self._left += self._received(time.perf_counter() + timeout)
        head, _, self._left = self._left.partition(b"\r\n\r\n")
        if status_of(head) != 200:
            raise BenchError(f"no stream of events: {head.decode(errors='replace')[:500]}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def next(self) -> StreamEvent:
        """Return the next event."""
        until = time.perf_counter() + self._timeout
        while (found := EVENT.search(self._left)) is None:
            self._left += self._received(until)
        self._left = self._left[found.end() :]
        return StreamEvent(found[1].decode(), found[2].decode(), time.perf_counter())

    def _received(self, until: float) -> bytes:
        self._socket.settimeout(max(0.001, until - time.perf_counter()))
        try:
            data = self._socket.recv(_AT_ONCE)
        except TimeoutError:
            raise BenchError(f"no event of the dashboard in {self._timeout:g} s") from None
        if not data:
            raise BenchError("the stream of events has ended")
        return data


def encoded_get(path: str, headers: Mapping[str, str]) -> bytes:
    """Return an encoded request."""
    given = {"host": "127.0.0.1", **headers}
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def status_of(head: bytes) -> int:
    """Return the status of a response that begins with ``head``."""
    return int(head.split(b" ", 2)[1])
