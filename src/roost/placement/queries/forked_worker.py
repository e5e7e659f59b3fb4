"""A forked process that stays, and answers one message after another; see `roost.placement.queries.forked`.

It has the memory of its parent as it was at the fork, and keeps its own state between messages. It ends with
its parent, when the connection ends.
"""

import asyncio
import contextlib
import gc
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

from roost.placement.queries.forked import (
    ForkedTooLong,
    ForkedUnavailable,
    be_child,
    end_of,
    fork,
    limit_processor_time,
    system_errors,
)

Handler = Callable[[bytes], bytes | None]
"""Takes a message, and returns the answer to a request, None to other messages."""

_LENGTH: Final = struct.Struct("!Q")
_AT_ONCE: Final = 1024 * 1024
_FILE_BUFFER: Final = 1024 * 1024


class ForkedWorker:
    """A forked process, for use from one event loop.

    ``begin`` is called in the process. It, and the handler that it returns, must use no other thread, no file
    and no event loop. ``more_bytes``: memory that the process may allocate beside the shared memory.
    ``seconds``: processor time for one message. ``forking``: seconds for which the fork held the event loop.

    Raises: `ForkedUnavailable`.
    """

    def __init__(self, begin: Callable[[], Handler], more_bytes: int, seconds: float) -> None:
        with system_errors():
            self._socket, theirs = socket.socketpair()
        with theirs:
            try:
                self._socket.setblocking(False)
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _FILE_BUFFER)
                started = time.perf_counter()

                def be(parent: int) -> None:
                    be_child(lambda: _serve(theirs, begin, seconds), theirs.fileno(), parent, more_bytes)

                child = fork(be)
                self.forking = time.perf_counter() - started
            except BaseException:
                self._socket.close()
                raise
        self._turn = asyncio.Lock()
        self._end = asyncio.create_task(end_of(child, None))
        self._end.add_done_callback(self._let_go)

    @property
    def ended(self) -> bool:
        """True once the process has ended."""
        return self._end.done()

    @property
    def busy(self) -> bool:
        """True while a message is under way."""
        return self._turn.locked()

    async def tell(self, message: Callable[[], bytes]) -> None:
        """Send a message that has no answer.

        ``message`` is called when it is its turn. The process is ended if the caller is cancelled.

        Raises: `ForkedTooLarge`, `ForkedTooLong`, `ForkedUnavailable`, `ForkedFailed` if it has ended.
        """
        async with self._connected():
            await self._send(message())

    async def ask(self, message: Callable[[], bytes], seconds: float) -> bytes:
        """Send a request, and return its answer.

        ``message`` is called when it is its turn. The process is ended if the answer does not come within
        ``seconds``, or if the caller is cancelled.

        Raises: `ForkedTooLong` if the answer does not come in time, and as `tell`.
        """
        async with self._connected():
            try:
                async with asyncio.timeout(seconds):
                    await self._send(message())
                    (length,) = _LENGTH.unpack(await self._receive(_LENGTH.size))
                    return await self._receive(length)
            except TimeoutError:
                raise ForkedTooLong(f"no answer within {seconds:g} seconds") from None

    def close(self) -> None:
        """End the process."""
        self._end.cancel()

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[None]:
        """Hold the connection exclusively during the context. Any error in it ends the process."""
        try:
            async with self._turn:
                if self.ended:
                    raise await self._reason()
                try:
                    yield
                except OSError:
                    raise await self._reason() from None
                except BaseException:
                    self.close()
                    raise
        finally:
            self._let_go()

    async def _reason(self) -> Exception:
        """Wait for the end of the process, and return the error that says why it has ended."""
        await asyncio.wait([self._end])
        error = None if self._end.cancelled() else self._end.exception()
        return error if isinstance(error, Exception) else ForkedUnavailable("its process has ended")

    def _let_go(self, *_: object) -> None:
        """Close the connection if the process has ended and no caller uses it."""
        if self.ended and not self.busy:
            self._socket.close()

    async def _send(self, message: bytes) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._socket, _LENGTH.pack(len(message)) + message)

    async def _receive(self, length: int) -> bytes:
        loop, parts, left = asyncio.get_running_loop(), [], length
        while left:
            part = await loop.sock_recv(self._socket, min(left, _AT_ONCE))
            if not part:
                raise ConnectionResetError
            parts.append(part)
            left -= len(part)
        return b"".join(parts)


def _serve(connection: socket.socket, begin: Callable[[], Handler], seconds: float) -> None:
    """Run as the process: answer messages until the parent ends the connection."""
    # Objects of the parent are never garbage here.
    gc.freeze()
    gc.enable()
    limit_processor_time(seconds)
    handle = begin()
    with connection.makefile("rwb", buffering=_FILE_BUFFER) as file:
        while head := file.read(_LENGTH.size):
            if len(head) < _LENGTH.size:
                return
            (length,) = _LENGTH.unpack(head)
            message = file.read(length)
            if len(message) < length:
                return
            limit_processor_time(seconds)
            answer = handle(message)
            if answer is not None:
                file.write(_LENGTH.pack(len(answer)))
                file.write(answer)
                file.flush()
