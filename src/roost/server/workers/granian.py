"""Granian's HTTP servers on a listening socket of this program, without Granian's parent process.

Granian's parent process ends the service when a worker ends twice within seconds. It starts a replacement
without waiting until it can serve. And each of its workers makes a listening socket of its own: when the
worker ends, the connections that wait in the socket are lost.
"""

import socket
from collections.abc import Mapping
from typing import Any

from granian._granian import SocketHolder
from granian.constants import Interfaces, RuntimeModes, SSLProtocols
from granian.log import LogLevels
from granian.server.embed import Server
from granian.server.mp import MPServer

from roost.server.workers.listeners import BACKLOG
from roost.server.workers.tls import Tls
from roost.web.dispatch import Application


class WorkerServer(MPServer):
    """Granian's worker, run in this process. ``settings``: arguments of Granian."""

    def __init__(
        self,
        application: Application,
        listener: socket.socket,
        tls: Tls | None,
        settings: Mapping[str, Any],
    ) -> None:
        super().__init__(
            "roost",
            interface=Interfaces.ASGI,
            runtime_mode=RuntimeModes.mt,
            websockets=False,
            backlog=BACKLOG,
            log_level=LogLevels.warning,
            **settings,
            **_tls_settings(tls),
        )
        self._application = application
        self._ssp = self._sso = None
        self._shd: Any = _adopt(listener)

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT. Requests under way are finished."""
        worker = self._spawn_worker(0, self._spawn_asgi_lifespan_worker, lambda: self._application)
        worker.inner.run()


class EmbeddedServer(Server):
    """Granian's server in a running event loop. ``serve`` runs it until ``stop`` is called."""

    def __init__(
        self,
        application: Application,
        listener: socket.socket,
        tls: Tls | None,
        settings: Mapping[str, Any],
    ) -> None:
        super().__init__(
            application,
            interface=Interfaces.ASGI,
            websockets=False,
            backlog=BACKLOG,
            log_enabled=False,
            log_level=LogLevels.warning,
            **settings,
            **_tls_settings(tls),
        )
        self._listener = listener

    def _init_shared_socket(self) -> None:
        self._ssp = None
        self._shd: Any = _adopt(self._listener)


def _adopt(listener: socket.socket) -> Any:
    """Hand a listening socket over to Granian, which closes it when it stops."""
    is_unix = listener.family == socket.AF_UNIX
    return SocketHolder(listener.detach(), is_unix, BACKLOG)  # type: ignore[call-arg]


def _tls_settings(tls: Tls | None) -> dict[str, Any]:
    if tls is None:
        return {}
    return {
        "ssl_cert": tls.certificate,
        "ssl_key": tls.key,
        "ssl_ca": tls.client_authority,
        "ssl_client_verify": tls.client_authority is not None,
        "ssl_protocol_min": SSLProtocols.tls12,
    }
