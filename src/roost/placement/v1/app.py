"""``/v1`` as an ASGI application."""

from collections.abc import Mapping
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
from roost.web.dispatch import Message, Receive, Send


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
