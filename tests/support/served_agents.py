"""The endpoint of a cell over HTTP, within this process."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx

from roost.agent.protocol.client import HttpEndpoint
from roost.agent.protocol.connections import Response
from roost.conductor.agent_endpoint.http import create_app
from roost.conductor.agent_endpoint.tokens import FRESH_SECONDS, HostTokens
from roost.model.token import new_host_token, token_digest
from roost.state.cell_database.host_admission import issue_token
from support.agents import Hosts, hosts
from support.cells import NOW


class InProcess:
    """Sends messages to an application of this process."""

    def __init__(self, app) -> None:
        self._client = httpx.AsyncClient(base_url="http://cell", transport=httpx.ASGITransport(app=app))

    async def send(self, path: str, content: bytes, headers: Mapping[str, str], seconds: float) -> Response:
        response = await self._client.post(path, content=content, headers=headers)
        return Response(response.status_code, response.content)

    async def close(self) -> None:
        await self._client.aclose()


class Served:
    """The endpoint of hosts a and b, as an ASGI application. ``now``: its monotonic clock."""

    def __init__(self, world: Hosts) -> None:
        self.world = world
        self.now = 0.0
        self.app = create_app(world.service, HostTokens(world.cell, lambda: self.now))
        self._clients: list[HttpEndpoint] = []

    async def token(self, host: str) -> str:
        token = new_host_token()
        await self.world.cell.write(issue_token(host=host, digest=token_digest(token), at=NOW))
        self.now += 2 * FRESH_SECONDS
        return token

    def client(self, *tokens: str) -> HttpEndpoint:
        made = HttpEndpoint("http://cell", lambda: tokens, transport=InProcess(self.app))
        self._clients.append(made)
        return made

    async def close(self) -> None:
        for each in self._clients:
            await each.close()


@asynccontextmanager
async def served(directory) -> AsyncIterator[Served]:
    async with hosts(directory) as world:
        found = Served(world)
        try:
            yield found
        finally:
            await found.close()
