"""The end of a worker: when another one replaces it, and when its parent has ended, even by SIGKILL."""

import asyncio
import ctypes
import os
import signal
import socket
import stat
from pathlib import Path
from typing import Final

from roost.server.workers.loop_signals import call_on_signals
from roost.web.dispatch import Application, Message, Receive, Send

_SET_PARENT_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG of prctl(2)

CLOSING: Final = (b"connection", b"close")


class Retiring:
    """Wraps an ASGI application and makes clients reconnect before the process ends.

    On SIGHUP the process accepts no further connections, and each response asks its client to close the
    connection. After ``linger_seconds`` the process gets SIGTERM. So a client that sends one request after
    the other changes to another worker between two of them. Without this the server would close connections
    while a request may be on its way.
    """

    def __init__(self, application: Application, linger_seconds: float) -> None:
        self._application = self._called = application
        self._linger_seconds = linger_seconds

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            call_on_signals((signal.SIGHUP,), self._retire)
        await self._called(scope, receive, send)

    def _retire(self) -> None:
        self._called = self._closing
        stop_accepting()
        loop = asyncio.get_running_loop()
        loop.call_later(self._linger_seconds, os.kill, os.getpid(), signal.SIGTERM)

    async def _closing(self, scope: Message, receive: Receive, send: Send) -> None:
        async def closing(message: Message) -> None:
            # HTTP/2 has no such header; the server announces the end of a connection by itself.
            if message["type"] == "http.response.start" and scope["http_version"] != "2":
                message = {**message, "headers": [*message.get("headers", ()), CLOSING]}
            await send(message)

        await self._application(scope, receive, closing)


def stop_accepting() -> None:
    """Stop accepting connections in this process. Accepted ones are still served.

    Listening sockets stay open in the parent and in other workers. The server cannot stop accepting without
    ending, so an unused socket takes the place of each listening socket.
    """
    replaced = _listening()
    with socket.socket(socket.AF_UNIX) as unused:
        unused.bind("")
        unused.listen(1)
        unused.setblocking(False)
        for descriptor in replaced:
            os.dup2(unused.fileno(), descriptor, inheritable=False)


def end_with_parent(parent: int) -> None:
    """Have the kernel send this process SIGTERM when its parent ends.

    ``parent``: the process id of the parent, read before the fork.
    """
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def _listening() -> list[int]:
    """Return the descriptors of this process that are listening sockets."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        descriptor = int(entry.name)
        try:
            if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                continue
            with socket.socket(fileno=os.dup(descriptor)) as each:
                if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    found.append(descriptor)
        except OSError:
            continue  # closed meanwhile, as the descriptor of the folder itself
    return found
