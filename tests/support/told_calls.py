"""A placement service whose calls are kept, for clients in this process and over a socket."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import Any, NamedTuple, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import httpx

from support.wsgi import Answer

KEPT_HEADERS = ("content-type", "openstack-api-version", "location")


class Asked(Protocol):
    """A service of ``differential.services``."""

    def ask(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> Answer: ...


class Call(NamedTuple):
    """A call that changes something, and the status of its answer."""

    method: str
    path: str
    body: Any
    status: int


class Threads(ThreadingMixIn, WSGIServer):
    """Reads each connection in a thread: one over which a client sends nothing, as it was cancelled after it
    connected, keeps no other waiting."""

    daemon_threads = True


class Quiet(WSGIRequestHandler):
    """Prints nothing."""

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


class ToldService:
    """Passes requests to a service, and keeps those that change something in ``calls``."""

    def __init__(self, service: Asked) -> None:
        self._service = service
        self._one = threading.RLock()
        self.calls: list[Call] = []

    def ask(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> Answer:
        with self._one:
            answer = self._service.ask(method, url, body, headers)
        if method != "GET":
            self.calls.append(Call(method, url, json.loads(body) if body else None, answer.status))
        return answer

    @contextmanager
    def served(self) -> Iterator[str]:
        """Serve it on a loopback port until the end of the block; gives its URL.

        A request that comes later changes nothing, so that a test that failed leaves nothing to the next."""
        ended = threading.Event()

        def answer(environ: dict[str, Any], start_response: Any) -> list[bytes]:
            with self._one:
                if not ended.is_set():
                    return self._answer(environ, start_response)
            start_response("503 -", [("content-length", "0")])
            return []

        with make_server("127.0.0.1", 0, answer, Threads, Quiet) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}"
            finally:
                with self._one:
                    ended.set()
                server.shutdown()
                thread.join()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        query = environ["QUERY_STRING"]
        url = environ["PATH_INFO"] + (f"?{query}" if query else "")
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        headers = {
            name.removeprefix("HTTP_").lower().replace("_", "-"): value
            for name, value in environ.items()
            if name.startswith("HTTP_") and name != "HTTP_HOST"
        }
        if body:
            headers["content-type"] = environ["CONTENT_TYPE"]
        answer = self.ask(environ["REQUEST_METHOD"], url, body, headers)
        kept = [(name, answer.headers[name]) for name in KEPT_HEADERS if name in answer.headers]
        start_response(f"{answer.status} -", [*kept, ("content-length", str(len(answer.body)))])
        return [answer.body]


class _Transport(httpx.AsyncBaseTransport):
    """Sends requests to a service in this process."""

    def __init__(self, service: Asked) -> None:
        self._service = service
        self._one = asyncio.Lock()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        headers = {name: value for name, value in request.headers.items() if name != "host"}
        url = request.url.raw_path.decode()
        async with self._one:
            # In a thread, as Roost runs an event loop of its own meanwhile.
            ask = self._service.ask
            answer = await asyncio.to_thread(ask, request.method, url, request.content, headers)
        kept = {name: answer.headers[name] for name in ("content-type",) if name in answer.headers}
        return httpx.Response(answer.status, headers=kept, content=answer.body)


def within(service: Asked) -> httpx.AsyncClient:
    """A client of a service in this process."""
    return httpx.AsyncClient(transport=_Transport(service))
