"""A service that does nothing, on the HTTP server and framework of Roost.

``python -m roost.bench.null_service PORT`` runs it.

It answers GET ``/bytes/N`` with N bytes, and PUT ``/allocations/X`` with 204 after reading the body.
"""

import sys
from typing import Any

import falcon
import falcon.asgi
from granian import Granian
from granian.constants import Interfaces
from granian.log import LogLevels


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


class Sink:
    """``/allocations/X``: reads the body and discards it."""

    async def on_put(self, request: falcon.asgi.Request, response: falcon.asgi.Response, name: str) -> None:
        await request.stream.readall()
        response.status = falcon.HTTP_204


def create() -> Any:
    """Return the ASGI application."""
    app = falcon.asgi.App()
    app.add_route("/", Root())
    app.add_route("/bytes/{size:int}", Bytes())
    app.add_route("/allocations/{name}", Sink())
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
    server.serve(target_loader=lambda *_: create(), wrap_loader=False)


if __name__ == "__main__":
    main()
