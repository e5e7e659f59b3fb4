"""The placement and the network service of a test, which are in its process, reached as over HTTP."""

import asyncio
from typing import Any
from unittest.mock import Mock

import httpx
from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import ConnectFailure
from keystoneauth1.session import Session
from nova.network import neutron
from nova.tests.functional.fixtures import PlacementFixture

from roost.placement.client import HttpPlacement

OFFERS: list[None] = []
"""An entry for each candidate that placement offered."""

_running: list[Any] = []


def note_placement() -> None:
    """Remember the placement of each test that begins from here on."""
    set_up = PlacementFixture.setUp

    def then_note(fixture: Any) -> None:
        set_up(fixture)
        _running.append(fixture)
        fixture.addCleanup(_running.remove, fixture)

    PlacementFixture.setUp = then_note


def placement_client() -> httpx.AsyncClient:
    """A client whose requests the test's placement answers. While it has none, no connection can be made."""
    return httpx.AsyncClient(transport=AdapterTransport())


class WatchedPlacement(HttpPlacement):
    """A placement service whose offers of candidates are noted in `OFFERS`."""

    async def candidates(self, *arguments: Any, **options: Any) -> Any:
        found = await super().candidates(*arguments, **options)
        OFFERS.extend(None for _ in found[0])
        return found

    async def candidate_page(self, *arguments: Any, **options: Any) -> Any:
        found = await super().candidate_page(*arguments, **options)
        OFFERS.extend(None for _ in (() if found is None else found.requests))
        return found


class Neutron:
    """The network service of a test's fixture; see `roost.web.auth.json_service.JsonService`."""

    async def ask(self, method: str, path: str, *, query: dict[str, str] | None = None) -> Any:
        return await asyncio.to_thread(self._answer, path, query or {})

    async def close(self) -> None: ...

    def _answer(self, path: str, query: dict[str, str]) -> Any:
        client = neutron.get_client(None, admin=True)
        kind, *uuid = path.removeprefix("/v2.0/").split("/")
        if not uuid:
            return getattr(client, f"list_{kind}")(**query)
        return getattr(client, f"show_{kind.removesuffix('s')}")(*uuid)


class AdapterTransport(httpx.AsyncBaseTransport):
    """Sends requests as Nova does, through the adapter of keystoneauth1, in a thread each.

    Tests intercept requests there: to answer them in this process, or by an error. The service may change in
    the middle of a test.
    """

    def __init__(self) -> None:
        self._adapter = Adapter(Session(auth=None), raise_exc=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        return await asyncio.to_thread(self._answer, request)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        if not _running:
            raise httpx.ConnectError("the test has no placement at present", request=request)
        path = request.url.raw_path.decode()
        send = getattr(self._adapter, request.method.lower())
        if path == "/allocations" and isinstance(self._adapter.put, Mock):
            # A test has the claim answered by an error. Nova claims for each consumer apart, by PUT.
            send = self._adapter.put
        given = {} if request.method == "GET" else {"data": request.content}
        kept = ("content-type", "openstack-api-version", "x-auth-token")
        headers = {name: request.headers[name] for name in kept if name in request.headers}
        try:
            answer = send(path, endpoint_override=_running[-1].endpoint, headers=headers, **given)
        except ConnectFailure as error:
            raise httpx.ConnectError(str(error), request=request) from error
        headers = {name: each for name, each in (answer.headers or {}).items() if name != "content-encoding"}
        return httpx.Response(answer.status_code, headers=headers, content=answer.content)
