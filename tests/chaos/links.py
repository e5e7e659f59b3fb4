"""Connections that a test can cut, hold and refuse: loopback ports in front of servers.

All links run in one thread. A link with several servers connects to them in turn, as a load balancer does.
"""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeVar

import uvloop

T = TypeVar("T")

_LIMIT = 1 << 18
"""Bytes that wait for one side before the other is no longer read."""


class Link:
    """A port at which servers on loopback can be reached, unless it is cut.

    ``is_held``: nothing goes through, and nobody is told. ``is_refused``: new connections are closed.
    """

    def __init__(self, name: str, ports: Sequence[int]) -> None:
        self.name = name
        self.port = 0
        self.is_held = self.is_refused = False
        self._turns = itertools.cycle(ports)
        self._servers = len(ports)
        self._server: Any = None
        self._pipes: set[_Pipe] = set()
        self._waiting: set[_Pipe] = set()

    def __str__(self) -> str:
        return self.name

    async def listen(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Pipe(self), "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Cut all connections, and listen no more."""
        self._server.close()
        self.is_refused = True
        self.cut()

    def cut(self) -> None:
        """Cut all connections."""
        for pipe in [*self._pipes]:
            pipe.abort()

    def hold(self, is_held: bool) -> None:
        """Let nothing through, or let through what waits."""
        self.is_held = is_held
        for pipe in self._pipes:
            pipe.turn(not is_held)
        if not is_held:
            waiting, self._waiting = self._waiting, set()
            for pipe in waiting:
                pipe.connect()

    def add(self, pipe: "_Pipe") -> None:
        self._pipes.add(pipe)
        if self.is_refused:
            pipe.abort()
        elif self.is_held:
            pipe.turn(False)
            self._waiting.add(pipe)
        else:
            pipe.connect()

    def remove(self, pipe: "_Pipe") -> None:
        self._pipes.discard(pipe)
        self._waiting.discard(pipe)

    async def to_server(self, protocol: Callable[[], asyncio.Protocol]) -> None:
        """Connect to one of the servers. Raises `OSError` if none answers."""
        loop = asyncio.get_running_loop()
        for _ in range(self._servers - 1):
            with contextlib.suppress(OSError):
                await loop.create_connection(protocol, "127.0.0.1", next(self._turns))
                return
        await loop.create_connection(protocol, "127.0.0.1", next(self._turns))


class _End(asyncio.Protocol):
    """One end of a connection: what it receives goes to the other end."""

    def __init__(self, pipe: "_Pipe") -> None:
        self.pipe = pipe
        self.other: _End | None = None
        self.transport: Any = None  # uvloop's
        self.early: list[bytes] = []

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        transport.set_write_buffer_limits(_LIMIT)

    def data_received(self, data: bytes) -> None:
        if self.other is None or self.other.transport is None:
            self.early.append(data)
        else:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        self.pipe.read(self.other, False)

    def resume_writing(self) -> None:
        self.pipe.read(self.other, True)

    def connection_lost(self, error: Exception | None) -> None:
        self.pipe.close()


class _Pipe(_End):
    """A client's end, and through ``other`` the connection to the server."""

    def __init__(self, link: Link) -> None:
        super().__init__(self)
        self._link = link
        self._server = _End(self)
        self._runs = True
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._link.add(self)

    def connect(self) -> None:
        self._connecting = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        try:
            await self._link.to_server(lambda: self._server)
        except OSError:
            self.abort()
            return
        self.other, self._server.other = self._server, self
        if self.transport is None or self.transport.is_closing():
            self.abort()
            return
        assert self._server.transport is not None
        # What either side has said before the other was there.
        self._server.transport.writelines(self.early)
        self.transport.writelines(self._server.early)
        if not self._runs:
            self.turn(False)

    def turn(self, runs: bool) -> None:
        """Let bytes through, or hold them."""
        self._runs = runs
        for end in (self, self._server):
            self.read(end, runs)

    def read(self, end: _End | None, reads: bool) -> None:
        """Read from an end or not; nothing is read while the link is held."""
        if end is None or end.transport is None or end.transport.is_closing():
            return
        if reads and self._runs:
            end.transport.resume_reading()
        else:
            end.transport.pause_reading()

    def close(self) -> None:
        """Close both ends, after what was received has been sent."""
        self._link.remove(self)
        for end in (self, self._server):
            if end.transport is not None:
                end.transport.close()

    def abort(self) -> None:
        """Cut both ends."""
        self._link.remove(self)
        for end in (self, self._server):
            if end.transport is not None:
                end.transport.abort()


class Network:
    """The links of a test, and the thread that runs them."""

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.links: list[Link] = []

    def link(self, name: str, *ports: int) -> Link:
        """A new link to servers at these ports."""
        link = Link(name, ports)
        self._run(link.listen())
        self.links.append(link)
        return link

    def cut(self, link: Link) -> None:
        self._loop.call_soon_threadsafe(link.cut)

    def hold(self, link: Link, is_held: bool) -> None:
        self._loop.call_soon_threadsafe(link.hold, is_held)

    def refuse(self, link: Link, is_refused: bool) -> None:
        """Cut a link and refuse new connections, or take them again."""
        link.is_refused = is_refused
        if is_refused:
            self.cut(link)

    def close(self) -> None:
        """Cut everything and end the thread."""
        for link in self.links:
            self._run(link.close())
        # Transports end in later turns of the loop.
        self._run(asyncio.sleep(0.05))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


@contextlib.contextmanager
def network() -> Iterator[Network]:
    """Run links until the end."""
    made = Network()
    try:
        yield made
    finally:
        made.close()
