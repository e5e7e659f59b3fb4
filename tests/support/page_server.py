"""A small HTTP server for scripts and styles of the dashboard: its assets, some pages, and answers of a test.

Answers have the dashboard's Content-Security-Policy.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

ASSETS = Path(__file__).parents[2] / "src/roost/dashboard/assets"
TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".html": "text/html; charset=utf-8",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


@dataclass
class Reply:
    """An answer: a body, or parts of one that is sent as they come."""

    body: bytes | str = b""
    media_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    parts: Iterator[bytes] | None = None


Answer = Callable[[dict[str, str]], Reply]
"""Makes the answer to a request from the parameters of its query."""


class PageServer:
    """Serves pages at a free loopback port, in threads. A context manager.

    ``answers`` are by path; a test may replace them. ``asked`` are the paths and queries of all requests.
    """

    def __init__(self, answers: Mapping[str, Answer] | None = None, policy: str = POLICY) -> None:
        self.answers: dict[str, Answer] = dict(answers or {})
        self.asked: list[str] = []
        self.closing = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.asked.append(self.path)
                reply = server.find(self.path)
                self.send_response(reply.status)
                self.send_header("Content-Type", reply.media_type)
                for name, value in {"Content-Security-Policy": policy, **reply.headers}.items():
                    self.send_header(name, value)
                if reply.parts is None:
                    body = reply.body.encode() if isinstance(reply.body, str) else reply.body
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                    return
                self.send_header("Connection", "close")
                self.end_headers()
                self.close_connection = True
                try:
                    for part in reply.parts:
                        self.wfile.write(part)
                        self.wfile.flush()
                except OSError:
                    pass  # the browser has left

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.origin = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> "PageServer":
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def find(self, address: str) -> Reply:
        """Return the answer to a request."""
        parts = urlsplit(address)
        if answer := self.answers.get(parts.path):
            return answer(dict(parse_qsl(parts.query)))
        path = ASSETS / parts.path.removeprefix("/ui/assets/")
        if parts.path.startswith("/ui/assets/") and path.is_file():
            return Reply(path.read_bytes(), TYPES[path.suffix], headers={"Cache-Control": "no-cache"})
        return Reply("not here", status=404)
