"""An HTTP connection that counts the bytes and the seconds of each exchange."""

import gzip
import http.client
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from roost.bench.errors import BenchError
from roost.bench.services import HEADERS

_LINE_ENDS: Final = 4
"""Bytes of a header beside its name and value."""


class Exchange(msgspec.Struct, frozen=True):
    """A response.

    ``wire``: bytes of head and body as they were received. ``body``: decompressed. ``seconds``: from the
    first byte sent to the last one received, with the time to connect on a new connection.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    wire: int
    seconds: float


class TimedConnection:
    """A connection to a port of this machine. ``headers``: of each request."""

    def __init__(self, port: int, headers: Mapping[str, str], timeout: float = 60.0) -> None:
        self._headers = headers
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    @classmethod
    def of_placement(cls, port: int) -> Self:
        """Return a connection of the administrator to placement."""
        return cls(port, HEADERS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def get(self, path: str, **headers: str) -> Exchange:
        """Send a GET. Raises `BenchError` if the status is not 200."""
        found = self.send("GET", path, headers=headers)
        if found.status != 200:
            raise BenchError(f"GET {path}: {found.status} {found.body.decode(errors='replace')[:500]}")
        return found

    def put(self, path: str, body: Any) -> Exchange:
        """Send a PUT with a body of JSON. Raises `BenchError` if it does not succeed."""
        kind = {"content-type": "application/json"}
        found = self.send("PUT", path, msgspec.json.encode(body), headers=kind)
        if found.status >= 300:
            raise BenchError(f"PUT {path}: {found.status} {found.body.decode(errors='replace')[:500]}")
        return found

    def send(
        self, method: str, path: str, body: bytes | None = None, *, headers: Mapping[str, str] = {}
    ) -> Exchange:
        """Send a request. Raises `BenchError` if there is no response."""
        began = time.perf_counter()
        try:
            self._connection.request(method, path, body, {**self._headers, **headers})
            response = self._connection.getresponse()
            received = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise BenchError(f"{method} {path}: {error!r}") from error
        seconds = time.perf_counter() - began
        head = sum(len(name) + len(value) + _LINE_ENDS for name, value in response.getheaders())
        status_line = len(f"HTTP/1.1 {response.status} {response.reason}\r\n\r\n")
        packed = response.headers.get("content-encoding") == "gzip"
        return Exchange(
            response.status,
            {name.lower(): value for name, value in response.getheaders()},
            gzip.decompress(received) if packed else received,
            status_line + head + len(received),
            seconds,
        )
