"""A worker process: the HTTP server Granian serves an ASGI application on an inherited listening socket."""

import asyncio
import os
import signal
import socket
from collections.abc import Mapping
from typing import Any, Final

from granian._granian import SocketHolder
from granian.constants import Interfaces, RuntimeModes
from granian.log import LogLevels
from granian.server.mp import MPServer

from roost.serving.listeners import BACKLOG
from roost.web.dispatch import Application, Message, Receive, Send

CLOSING: Final = (b"connection", b"close")


class Retiring:
    """An ASGI application around another one, which makes clients reconnect before the process ends.

    On SIGHUP each response asks its client to close the connection. After ``linger_seconds`` the process gets
    SIGTERM. So a client that sends one request after the other changes to another worker between two of them.
    The server would close the connection of such a client at the moment in which a request may be on its way.
    """

    def __init__(self, application: Application, linger_seconds: float) -> None:
        self._application = self._called = application
        self._linger_seconds = linger_seconds

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._retire)
        await self._called(scope, receive, send)

    def _retire(self) -> None:
        self._called = self._closing
        loop = asyncio.get_running_loop()
        loop.call_later(self._linger_seconds, os.kill, os.getpid(), signal.SIGTERM)

    async def _closing(self, scope: Message, receive: Receive, send: Send) -> None:
        async def closing(message: Message) -> None:
            # HTTP/2 has no such header; the server announces the end of a connection by itself.
            if message["type"] == "http.response.start" and scope["http_version"] != "2":
                message = {**message, "headers": [*message.get("headers", ()), CLOSING]}
            await send(message)

        await self._application(scope, receive, closing)


def run_application(
    application: Application,
    listener: socket.socket,
    settings: Mapping[str, Any],
    linger_seconds: float,
) -> None:
    """Serve in this process until SIGTERM or SIGINT. Requests under way are finished.

    ``settings``: arguments of Granian that the service chooses.
    """
    server = _Worker(Retiring(application, linger_seconds), listener, settings)
    server.run()


class _Worker(MPServer):
    """Granian's worker without Granian's parent process.

    Granian's parent ends the service when a worker ends twice within seconds, starts a replacement without
    waiting until it can serve, and lets each worker make a listening socket of its own, with which the
    connections that wait in it are lost.
    """

    def __init__(
        self, application: Application, listener: socket.socket, settings: Mapping[str, Any]
    ) -> None:
        super().__init__(
            "roost",
            interface=Interfaces.ASGI,
            runtime_mode=RuntimeModes.mt,
            websockets=False,
            backlog=BACKLOG,
            log_level=LogLevels.warning,
            **settings,
        )
        self._application = application
        self._ssp = self._sso = None
        is_uds = listener.family == socket.AF_UNIX
        self._shd: Any = SocketHolder(listener.detach(), is_uds, BACKLOG)  # type: ignore[call-arg]

    def run(self) -> None:
        worker = self._spawn_worker(0, self._spawn_asgi_lifespan_worker, lambda: self._application)
        worker.inner.run()
