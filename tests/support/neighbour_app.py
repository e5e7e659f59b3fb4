"""The service of ports and accelerators in this process, on a database."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from roost.placement.options import PlacementOptions
from roost.server.neighbours.app import create_app, default_rules
from roost.server.neighbours.handlers import NeighbourService
from roost.server.neighbours.store import SCHEMA
from roost.storage import Database
from roost.web.auth import NoAuth
from roost.web.auth.credentials import Caller, FixedCredentials
from roost.web.auth.json_service import JsonService
from roost.web.auth.rules import PolicyRules

TOKEN = {"x-auth-token": "admin"}


class Transport(httpx.AsyncBaseTransport):
    """Passes requests to the application. ``away``: how many of the next ones get no answer."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport
        self.away = 0
        self.asked: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url.path}")
        if self.away:
            self.away -= 1
            raise httpx.ConnectError("away")
        return await self._transport.handle_async_request(request)


class NeighbourApp:
    """The running service. ``http``: a client of an administrator."""

    def __init__(self, url: str) -> None:
        self.database = Database(url)
        SCHEMA.upgrade(self.database)
        rules = PolicyRules(default_rules(), None, True)
        app = create_app(NeighbourService(self.database), NoAuth(), rules, PlacementOptions())
        self.transport = Transport(httpx.ASGITransport(app))
        self.http = httpx.AsyncClient(transport=self.transport, base_url="http://near", headers=TOKEN)

    def api(self, name: str = "the service") -> JsonService:
        """The service as an agent asks it."""
        client = httpx.AsyncClient(transport=self.transport)
        return JsonService(name, Caller(FixedCredentials("http://near", "admin"), client))

    async def made(self, path: str, body: object) -> dict:
        """Make a resource; returns it."""
        answer = await self.http.post(path, json=body)
        assert answer.is_success, answer.text
        found = answer.json()
        return next(iter(found.values())) if len(found) == 1 else found

    async def network(self, cidr: str | None = None, **pool: str) -> str:
        """Make a network, with a subnet if ``cidr`` is given; returns its uuid."""
        network = (await self.made("/v2.0/networks", {"network": {}}))["id"]
        if cidr is not None:
            subnet = {"network_id": network, "cidr": cidr}
            if pool:
                subnet["allocation_pools"] = [pool]
            await self.made("/v2.0/subnets", {"subnet": subnet})
        return network

    async def ports(self, **query: str) -> list[dict]:
        """The ports that there are."""
        return (await self.http.get("/v2.0/ports", params=query)).json()["ports"]

    async def arqs(self, **query: str) -> list[dict]:
        """The accelerator requests that there are."""
        return (await self.http.get("/v2/accelerator_requests", params=query)).json()["arqs"]


@asynccontextmanager
async def neighbour_app(url: str) -> AsyncIterator[NeighbourApp]:
    """The service while the block runs."""
    app = NeighbourApp(url)
    try:
        yield app
    finally:
        await app.http.aclose()
        await app.database.close()
