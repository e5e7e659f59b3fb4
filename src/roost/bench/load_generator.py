"""The load generator, a process that reads a `LoadPlan` and writes a `LoadResult`.

It uses plain sockets, because on two cores the client takes processor time from the service that it measures.
Requests are encoded before the run. Of a response, only status and length are parsed, and one loop serves all
connections. A request costs some 20 µs; each result has the processor time of the client.
"""

import gc
import re
import selectors
import socket
import sys
import time
from array import array
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from typing import Final

import msgspec

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CLOSES: Final = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_CODE: Final = re.compile(rb'"code": *"([\w.]+)"')
_NO_BODY: Final = (b"204", b"304")
_BUFFER: Final = 2**18
_CHECK_SECONDS: Final = 0.5
"""Seconds between checks for overdue answers."""

CONFLICT: Final = "409 placement.concurrent_update"
"""The outcome after which a request may be repeated."""


class LoadPlan(msgspec.Struct, frozen=True):
    """The load to generate.

    ``clients`` connections send encoded HTTP/1.1 ``requests``, each connection one at a time. All requests
    are sent in a cycle if ``cyclic``, else once. Sending ends after ``seconds``, but not before
    ``min_requests``. Each connection first sends the ``warm_up`` requests, which are not counted.
    A response that takes longer than ``timeout`` seconds ends the run. A request is repeated up to
    ``conflict_retries`` times while its outcome is `CONFLICT`.
    """

    port: int
    clients: int
    requests: list[bytes]
    seconds: float
    warm_up: list[bytes] = []
    cyclic: bool = True
    min_requests: int = 1
    timeout: float = 60.0
    conflict_retries: int = 0


class LoadResult(msgspec.Struct, frozen=True):
    """The answers to a load.

    ``latencies``: float64 values, for each request the seconds from its first byte sent to the last byte
    received. ``outcomes``: responses by status and, for errors, the code in the body; requests without a
    response are ``overdue`` or ``cut off``. ``received``: bytes of all bodies. ``cpu``: processor time of
    the client in seconds.
    """

    seconds: float
    latencies: bytes
    outcomes: dict[str, int]
    received: int
    cpu: float
    connections: int

    @property
    def requests(self) -> int:
        """The number of requests."""
        return len(self.latencies) // array("d").itemsize

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / max(self.seconds, 1e-9)


class _Run:
    """A run of the load generator: all connections, and their counts."""

    def __init__(self, plan: LoadPlan) -> None:
        self.plan = plan
        self.selector = selectors.DefaultSelector()
        self.buffer = bytearray(_BUFFER)
        self.view = memoryview(self.buffer)
        self.latencies = array("d")
        self.outcomes: Counter[bytes] = Counter()
        self.received = 0
        self.opened = 0
        self.sent = 0
        self.waiting = 0
        self._requests: Iterator[bytes] = iter(())
        self._until = 0.0

    def run(self) -> LoadResult:
        connections = [_Connection(self) for _ in range(self.plan.clients)]
        try:
            return self._measured(connections)
        finally:
            for each in connections:
                each.close()
            self.selector.close()

    def _measured(self, connections: "list[_Connection]") -> LoadResult:
        self._go(connections, iter(self.plan.warm_up * len(connections)), float("inf"))
        if self.outcomes.keys() & {b"overdue", b"cut off"}:
            raise SystemExit("no answer to the first requests")
        self.latencies, self.received, self.sent = array("d"), 0, 0
        self.outcomes.clear()
        requests = cycle(self.plan.requests) if self.plan.cyclic else iter(self.plan.requests)
        cpu, started = time.process_time(), time.perf_counter()
        self._go(connections, requests, started + self.plan.seconds)
        return LoadResult(
            seconds=time.perf_counter() - started,
            latencies=self.latencies.tobytes(),
            outcomes={name.decode(): count for name, count in self.outcomes.items()},
            received=self.received,
            cpu=time.process_time() - cpu,
            connections=self.opened,
        )

    def next(self) -> bytes | None:
        """Return the next request, None at the end."""
        if self.sent >= self.plan.min_requests and time.perf_counter() >= self._until:
            return None
        self.sent += 1
        return next(self._requests, None)

    def _go(self, connections: "list[_Connection]", requests: Iterator[bytes], until: float) -> None:
        self._requests, self._until = requests, until
        for connection in connections:
            connection.send_next()
        select = self.selector.select
        look = time.perf_counter() + _CHECK_SECONDS
        while self.waiting:
            for key, ready in select(_CHECK_SECONDS):
                if ready & selectors.EVENT_WRITE:
                    key.data.write()
                if ready & selectors.EVENT_READ:
                    key.data.read()
            now = time.perf_counter()
            if now > look:
                look = now + _CHECK_SECONDS
                if any(each.overdue(now) for each in connections):
                    self.outcomes[b"overdue"] += self.waiting
                    self.latencies.extend(now - each.sent_at for each in connections if each.busy)
                    return


class _Connection:
    """One connection, with at most one request at a time."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._socket: socket.socket | None = None
        self._request = b""
        self._unsent = memoryview(b"")
        self._repeated = 0
        self._head = b""
        self._left = -1  # missing bytes of the body, -1 before the head is complete
        self._outcome = b""
        self._error = b""
        self._closes = False
        self.busy = False
        self.sent_at = 0.0

    def send_next(self) -> None:
        request = self._run.next()
        if request is None:
            return
        self._request, self._repeated = request, 0
        self._run.waiting += 1
        self.busy = True
        self._send()

    def overdue(self, now: float) -> bool:
        return self.busy and now - self.sent_at > self._run.plan.timeout

    def _send(self) -> None:
        if self._socket is None:
            self._connect()
        assert self._socket is not None
        self._head, self._left, self._error = b"", -1, b""
        self.sent_at = time.perf_counter()
        try:
            sent = self._socket.send(self._request)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._end(b"cut off")
            return
        if sent < len(self._request):
            self._unsent = memoryview(self._request)[sent:]
            self._watch(selectors.EVENT_READ | selectors.EVENT_WRITE)

    def write(self) -> None:
        assert self._socket is not None
        try:
            self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except OSError:
            self.close()
            self._end(b"cut off")
            return
        if not self._unsent:
            self._watch(selectors.EVENT_READ)

    def read(self) -> None:
        run = self._run
        assert self._socket is not None
        try:
            count = self._socket.recv_into(run.view)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if not count:
            self.close()
            if self.busy:
                self._end(b"cut off")
        elif self._left < 0:
            self._read_head(count)
        else:
            self._read_body(count, bytes(run.buffer[:count]) if self._outcome >= b"400" else b"")

    def _read_head(self, count: int) -> None:
        run = self._run
        if self._head:
            data: bytes | bytearray = self._head + run.buffer[:count]
            count = len(data)
        else:
            data = run.buffer
        end = data.find(b"\r\n\r\n", 0, count)
        if end < 0:
            self._head = bytes(data[:count])
            return
        status = bytes(data[9:12])
        length = _LENGTH.search(data, 0, end + 2)
        self._closes = _CLOSES.search(data, 0, end + 2) is not None
        self._outcome = status
        if length is not None:
            self._left = int(length[1])
        elif status in _NO_BODY:
            self._left = 0
        else:
            raise SystemExit(f"an answer without its length: {bytes(data[: end + 2])!r}")
        self._read_body(count - end - 4, bytes(data[end + 4 : count]) if status >= b"400" else b"")

    def _read_body(self, count: int, error: bytes = b"") -> None:
        """Count ``count`` bytes of the body; ``error`` has these bytes if the status is that of an error."""
        self._run.received += count
        self._left -= count
        self._error += error
        if self._left > 0:
            return
        if self._outcome >= b"400":
            code = _CODE.search(self._error)
            if code is not None:
                self._outcome += b" " + code[1]
        if self._closes:
            self.close()
        self._end(self._outcome)

    def _end(self, outcome: bytes) -> None:
        run = self._run
        run.latencies.append(time.perf_counter() - self.sent_at)
        run.outcomes[outcome] += 1
        if outcome == CONFLICT.encode() and self._repeated < run.plan.conflict_retries:
            self._repeated += 1
            self._send()
            return
        run.waiting -= 1
        self.busy = False
        if outcome == b"cut off":
            self.close()
        self.send_next()

    def _connect(self) -> None:
        self._socket = socket.create_connection(("127.0.0.1", self._run.plan.port), self._run.plan.timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self._run.selector.register(self._socket, selectors.EVENT_READ, self)
        self._run.opened += 1

    def close(self) -> None:
        if self._socket is not None:
            self._run.selector.unregister(self._socket)
            self._socket.close()
            self._socket = None

    def _watch(self, events: int) -> None:
        assert self._socket is not None
        self._run.selector.modify(self._socket, events, self)


def run_plan(plan: LoadPlan) -> LoadResult:
    """Generate the load from this process."""
    return _Run(plan).run()


def main() -> None:
    plan = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=LoadPlan)
    gc.collect()
    gc.disable()  # its pauses would count as latency of the service
    sys.stdout.buffer.write(msgspec.msgpack.encode(run_plan(plan)))


if __name__ == "__main__":
    main()
