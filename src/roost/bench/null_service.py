"""A service that does nothing, on the HTTP server and framework of Roost.

``python -m roost.bench.null_service PORT [URL]`` runs it.

It answers GET ``/bytes/N`` with N bytes, and PUT ``/allocations/X`` with 204 after reading the body. With the
URL of a ledger's database it answers GET ``/head/N`` with N bytes after one indexed query, that of the head.
"""

import sys
from typing import Any

import falcon
import falcon.asgi
from granian import Granian
from granian.constants import Interfaces
from granian.log import LogLevels

from roost.ledger.delta import newest
from roost.storage import Database


class Root:
    """``/``: an empty document, which shows that the service has started."""

    async def on_get(self, request: falcon.asgi.Request, response: falcon.asgi.Response) -> None:
        response.data = b"{}"


class Bytes:
    """``/bytes/N``: a response of N bytes, made once for each N."""

    def __init__(self) -> None:
        self._made: dict[int, bytes] = {}

    async def on_get(self, request: falcon.asgi.Request, response: falcon.asgi.Response, size: int) -> None:
        if size not in self._made:
            self._made[size] = b"x" * size
        response.data = self._made[size]


class BytesAfterQuery:
    """``/head/N``: as ``/bytes/N``, after a query of the newest commit."""

    def __init__(self, url: str, made: Bytes) -> None:
        self._database = Database(url, read_only=True)
        self._made = made

    async def on_get(self, request: falcon.asgi.Request, response: falcon.asgi.Response, size: int) -> None:
        await self._database.autocommit_read(newest)
        await self._made.on_get(request, response, size)


class Sink:
    """``/allocations/X``: reads the body and discards it."""

    async def on_put(self, request: falcon.asgi.Request, response: falcon.asgi.Response, name: str) -> None:
        await request.stream.readall()
        response.status = falcon.HTTP_204


def create(url: str | None = None) -> Any:
    """Return the ASGI application. ``url``: of the database; None: there is none."""
    app = falcon.asgi.App()
    made = Bytes()
    app.add_route("/", Root())
    app.add_route("/bytes/{size:int}", made)
    app.add_route("/allocations/{name}", Sink())
    if url is not None:
        app.add_route("/head/{size:int}", BytesAfterQuery(url, made))
    return app


def main() -> None:
    server = Granian(
        "null",
        address="127.0.0.1",
        port=int(sys.argv[1]),
        interface=Interfaces.ASGI,
        websockets=False,
        log_level=LogLevels.warning,
    )
    server.serve(target_loader=lambda *_: create(*sys.argv[2:]), wrap_loader=False)


if __name__ == "__main__":
    main()
