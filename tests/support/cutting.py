"""A proxy of a database server that cuts the connection during a commit of the ledger."""

import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator

from sqlalchemy.engine import make_url

BEFORE = "before the server has it"
AFTER = "after the server has done it"
LATE = "before the server has it, which then does it all the same, later"
HELD = "not at all: the server has it only once the test releases it, and nobody hears of it until then"

_LATE_SECONDS = 0.4
_APPENDS = re.compile(rb"INSERT INTO `?commits")
_COMMITS = re.compile(rb"\bCOMMIT\b")
_ROLLS_BACK = re.compile(rb"\bROLLBACK\b")


class Wire:
    """A loopback port that forwards to a database server until it is told to cut."""

    def __init__(self, url: str) -> None:
        self._to = make_url(url)
        self._cut: str | None = None
        self.cuts = 0
        self._released = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        self.url = self._to.set(port=port).render_as_string(hide_password=False)
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_next(self, when: str) -> None:
        """Cut the connection of the next append during its COMMIT."""
        self._cut = when

    def release(self) -> None:
        """Let the server have what is held."""
        self._released.set()

    def close(self) -> None:
        self._released.set()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection((self._to.host, self._to.port))
                for each in (client, server):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._back, args=(client, server), daemon=True).start()
                threading.Thread(target=self._forth, args=(client, server), daemon=True).start()

    def _forth(self, client: socket.socket, server: socket.socket) -> None:
        appending = False
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 20):
                appending = appending or bool(_APPENDS.search(data))
                if appending and _COMMITS.search(data):
                    appending = False
                    when, self._cut = self._cut, None
                    if when == HELD:
                        self.cuts += 1
                        self._released.wait()
                    elif when is not None:
                        self.cuts += 1
                        self._do_cut(when, client, server, data)
                        return
                elif _ROLLS_BACK.search(data):
                    # It was outrun: what is committed next on this connection is another transaction.
                    appending = False
                server.sendall(data)
        _hang_up(client, server)

    def _do_cut(self, when: str, client: socket.socket, server: socket.socket, data: bytes) -> None:
        if when == AFTER:
            # Nothing goes back any more, but the server's answer is waited for.
            _shut(client)
            server.sendall(data)
            time.sleep(_LATE_SECONDS)
        else:
            _hang_up(client)
            if when == LATE:
                time.sleep(_LATE_SECONDS)
                server.sendall(data)
                time.sleep(_LATE_SECONDS)
        _hang_up(client, server)

    def _back(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 20):
                client.sendall(data)
        _hang_up(client)


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


def _hang_up(*sockets: socket.socket) -> None:
    for each in sockets:
        _shut(each)
        each.close()


@contextlib.contextmanager
def wire(url: str) -> Iterator[Wire]:
    """Run a proxy of the server of a URL."""
    made = Wire(url)
    try:
        yield made
    finally:
        made.close()
