"""Calls applications in this process, without a socket.

Upstream's Placement is a WSGI application and Roost an ASGI one; `AsWsgi` makes the two alike, so that what
is asked of both is the same down to the environment of the request.
"""

import asyncio
import io
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

Run = Callable[[Coroutine[Any, Any, None]], None]


class AsWsgi:
    """An ASGI application as a WSGI application. ``run`` runs a coroutine in the application's event loop."""

    def __init__(self, app: Any, run: Run) -> None:
        self._app = app
        self._run = run

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        sent: list[dict[str, Any]] = []
        # Once the body is read there is nothing more to come, not even that the client hangs up.
        waiting = [{"type": "http.request", "body": environ["wsgi.input"].read(), "more_body": False}]

        async def receive() -> dict[str, Any]:
            return waiting.pop() if waiting else await asyncio.get_running_loop().create_future()

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        self._run(self._app(_scope(environ), receive, send))
        start, *parts = sent
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in start["headers"]]
        start_response(f"{start['status']} {start['status']}", headers)
        return [part.get("body", b"") for part in parts]


class Answer(NamedTuple):
    """An answer. The names of its headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The JSON value of the body, or None if it is empty."""
        return json.loads(self.body) if self.body else None


def call(
    app: WSGIApplication, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> Answer:
    """Send a request to a WSGI application. ``url`` is an escaped path with the query string."""
    path, _, query = url.partition("?")
    environ = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "HTTP_HOST": "localhost",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    if body:
        environ["CONTENT_LENGTH"] = str(len(body))
    for name, value in (headers or {}).items():
        name = name.upper().replace("-", "_")
        environ[name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"] = value
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start_response(status: str, headers: list[tuple[str, str]], *_: object) -> Callable[[bytes], object]:
        started.append((status, headers))
        return lambda _: None

    parts = app(environ, start_response)
    answered = b"".join(parts)
    if hasattr(parts, "close"):
        parts.close()
    [(status, answered_headers)] = started
    return Answer(int(status.split()[0]), {name.lower(): value for name, value in answered_headers}, answered)


def _scope(environ: WSGIEnvironment) -> dict[str, Any]:
    path = environ["PATH_INFO"]
    # The standard wants bytes written as Latin-1 here; httpx writes the text.
    raw = path.encode("latin-1") if path.isascii() or max(path) < "\u0100" else path.encode()
    headers = [
        (name.removeprefix("HTTP_").lower().replace("_", "-").encode(), value.encode("latin-1"))
        for name, value in environ.items()
        if name.startswith("HTTP_") or name in ("CONTENT_TYPE", "CONTENT_LENGTH")
    ]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": environ["REQUEST_METHOD"],
        "scheme": environ["wsgi.url_scheme"],
        "path": raw.decode(errors="replace"),
        "raw_path": raw,
        "root_path": environ.get("SCRIPT_NAME", ""),
        "query_string": environ["QUERY_STRING"].encode("latin-1"),
        "headers": headers,
        "server": (environ["SERVER_NAME"], int(environ["SERVER_PORT"])),
        "client": ("127.0.0.1", 1),
    }
