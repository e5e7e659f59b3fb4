"""A small HTTP server for tests of the load generator, which choose its answers."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Answer = Callable[[bytes], bytes]
"""Returns all bytes of the answer to a path. An empty answer closes the connection."""


class Answering:
    """A server on ``port``. ``paths`` are the paths of all requests, in order."""

    def __init__(self, answer: Answer, pause: float = 0.0) -> None:
        self._answer = answer
        self._pause = pause
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.paths: list[str] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        # The client closes the connection after its timeout.
        with contextlib.suppress(ConnectionError), connection, connection.makefile("rb") as lines:
            while line := lines.readline():
                length = 0
                while (header := lines.readline()) not in (b"\r\n", b""):
                    if header.lower().startswith(b"content-length:"):
                        length = int(header.split(b":")[1])
                lines.read(length)
                path = line.split()[1]
                self.paths.append(path.decode())
                answer = self._answer(path)
                if not answer:
                    return
                for start in range(0, len(answer), 40_000):
                    connection.sendall(answer[start : start + 40_000])
                    if self._pause:
                        time.sleep(self._pause)


@contextmanager
def answering(answer: Answer, pause: float = 0.0) -> Iterator[Answering]:
    """Run a server during the context. ``pause``: seconds between the pieces of an answer."""
    server = Answering(answer, pause)
    try:
        yield server
    finally:
        server.close()


def http(status: str, body: bytes = b"", *headers: bytes) -> bytes:
    """Return an encoded HTTP/1.1 answer."""
    lines = [f"HTTP/1.1 {status} x".encode(), *headers]
    if not status.startswith("204"):
        lines.append(b"content-length: %d" % len(body))
    return b"\r\n".join([*lines, b"", b""]) + body
