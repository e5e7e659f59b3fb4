"""``/v1`` as an ASGI application, and one that shares a server with others."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import falcon.asgi

from roost.ledger import Ledger
from roost.placement.http.auth import open_authenticator
from roost.placement.http.cors import Cors
from roost.placement.http.errors import add_error_handlers
from roost.placement.http.policy import Policy
from roost.placement.http.request import Request
from roost.placement.options import PlacementOptions
from roost.placement.v1.candidates import Candidates
from roost.placement.v1.changes import Changes
from roost.placement.v1.document import Document, read_document
from roost.placement.v1.errors import answer_error
from roost.placement.v1.explain import Explain
from roost.placement.v1.follower import Follower
from roost.placement.v1.gate import Gate
from roost.placement.v1.past import Past
from roost.placement.v1.resource import Service

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]


class V1:
    """The application. ``close`` ends its streams, which a server that stops would wait for."""

    def __init__(
        self, ledger: Ledger, options: PlacementOptions, document: Mapping[str, Any] | None = None
    ) -> None:
        self._follower = Follower(ledger)
        self._past = Past(ledger)
        service = Service(ledger, self._past, self._follower)
        self.falcon = falcon.asgi.App(request_type=Request)
        if options.cors.allowed_origin:
            self.falcon.add_middleware(Cors(options.cors))
        policy = Policy(options.enforce_new_defaults, options.source)
        self.falcon.add_middleware(Gate(open_authenticator(options), policy))
        self.falcon.add_route("/v1/allocation_candidates", Candidates(service))
        self.falcon.add_route("/v1/changes", Changes(service))
        self.falcon.add_route("/v1/explain", Explain(service))
        self.falcon.add_route("/v1/openapi.json", Document(document or read_document()))
        add_error_handlers(self.falcon, answer_error)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        await self.falcon(scope, receive, send)

    def close(self) -> None:
        """Wake and end whoever waits for changes, and let past versions go. The ledger stays open."""
        self._follower.close()
        self._past.close()


def dispatch(under: Mapping[str, Application], otherwise: Application) -> Application:
    """Requests go to the application under the longest of the paths that lead theirs, or ``otherwise``.

    A path leads itself and what is below it: ``/v1`` leads ``/v1/changes``, not ``/v1x``.
    """
    paths = sorted(under, key=len, reverse=True)

    async def application(scope: Message, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        chosen = next((each for each in paths if path == each or path.startswith(f"{each}/")), None)
        await (otherwise if chosen is None else under[chosen])(scope, receive, send)

    return application
