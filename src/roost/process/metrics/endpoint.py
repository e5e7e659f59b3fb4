"""``/metrics`` at an address of its own: the values of all processes of a service together.

The supervising process serves it, from a thread: neither a busy worker nor a dead one delays it.
"""

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import structlog
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from roost.model.errors import OperatorError
from roost.process.metrics.folder import dead_processes, metrics_folder

PATH = "/metrics"

CLIENT_SECONDS = 10.0
"""Seconds that a client may be silent."""

_log = structlog.get_logger()

Environ = dict[str, Any]
StartResponse = Callable[..., Any]


class _Handler(WSGIRequestHandler):
    """Serves one connection, and closes it after `CLIENT_SECONDS` of silence."""

    timeout = CLIENT_SECONDS

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: a scrape every few seconds is no event."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # WSGIServer would look up the host's name here, and might wait for a name server.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def handle_error(self, request: object, client_address: object) -> None:
        """Log a connection that failed, as by a client that went away."""
        _log.info("a client of the metrics failed", client=str(client_address), error=str(sys.exception()))


@contextlib.contextmanager
def exposed_metrics(host: str, port: int) -> Iterator[Path]:
    """Serve the metrics of all processes that publish to the folder of the context.

    Raises:
        OperatorError: the address is taken, or not one of this machine.
    """
    with metrics_folder() as folder, _listen(host, port) as server:
        server.set_app(_application(folder))
        # A worker must not keep the port when its parent is gone.
        os.register_at_fork(after_in_child=server.socket.close)
        threading.Thread(target=server.serve_forever, daemon=True, name="metrics").start()
        try:
            yield folder
        finally:
            server.shutdown()


def _listen(host: str, port: int) -> _Server:
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        kind = type("_Server", (_Server,), {"address_family": family})
        server: _Server = kind(address, _Handler)
    except OSError as error:
        raise OperatorError(
            f"cannot serve metrics on {host} port {port}: {error.strerror}; choose another --metrics-port"
        ) from error
    return server


def _application(folder: Path) -> Callable[[Environ, StartResponse], Iterable[bytes]]:
    """Return the WSGI application: that of prometheus_client at `PATH`, 404 elsewhere."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))  # type: ignore[no-untyped-call]
    metrics = make_wsgi_app(registry)

    def application(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] != PATH:
            start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
            return [f"Metrics are at {PATH}\n".encode()]
        with dead_processes(folder) as numbers:
            for number in numbers:
                mark_process_dead(number, str(folder))  # type: ignore[no-untyped-call]
        answer: Iterable[bytes] = metrics(environ, start_response)
        return answer

    return application
