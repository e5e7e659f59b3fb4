"""Idle connections: some never send anything, the others are kept alive after one request."""

import contextlib
import selectors
import socket
import threading
from types import TracebackType
from typing import Final, Self

from roost.bench.measurement import http_request

_LOOK_SECONDS: Final = 0.1


class IdleConnections:
    """Holds connections to a port of this machine open, in a thread.

    ``silent``: the number of connections that send nothing. ``cut``: the number of connections that the
    server has closed; they are opened again. The context manager opens and closes the connections.
    """

    def __init__(self, port: int, connections: int, silent: int) -> None:
        self.cut = 0
        self._port = port
        self._selector = selectors.DefaultSelector()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._hold, daemon=True)
        for number in range(connections):
            self._open(number < silent)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            self._close(key.fileobj)
        self._selector.close()

    def _hold(self) -> None:
        while not self._stopping.is_set():
            for key, _ in self._selector.select(_LOOK_SECONDS):
                assert isinstance(key.fileobj, socket.socket)
                received = b""
                with contextlib.suppress(OSError):
                    received = key.fileobj.recv(65536)
                if not received:
                    self.cut += 1
                    self._close(key.fileobj)
                    # A server that is stopped accepts no more.
                    with contextlib.suppress(OSError):
                        self._open(key.data)

    def _open(self, silent: bool) -> None:
        connection = socket.create_connection(("127.0.0.1", self._port), 20.0)
        if not silent:
            connection.sendall(http_request("GET", "/"))
        self._selector.register(connection, selectors.EVENT_READ, silent)

    def _close(self, connection: object) -> None:
        assert isinstance(connection, socket.socket)
        self._selector.unregister(connection)
        connection.close()
