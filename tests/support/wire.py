"""A scheduler that reaches placement over HTTP, with somebody between them who meddles."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import msgspec

from roost.ledger import Ledger
from roost.ledger.holdings import held_by_all
from roost.model.spec import Destination
from roost.placement.client import HttpPlacement
from roost.placement.http.app import create_app, document_at
from roost.placement.options import PlacementOptions
from roost.placement.queries import QueryBudget
from roost.placement.v1.app import V1
from roost.scheduler import Scheduler, SchedulerOptions
from roost.scheduler.gateways.foreign_groups import Members, no_members
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.options import RequestFilterOptions
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.web.auth.credentials import FixedCredentials
from roost.web.dispatch import dispatch
from support.clouds import NOW, Cloud, Kept, spec, uuid_of

INSTANCES = [uuid_of(0xA0 + number) for number in range(4)]

Answer = httpx.Response | None

Meddling = Callable[[httpx.Request], Awaitable[Answer]]
"""Sees each request before the service does; may answer in its place."""


def refused(status: int, code: str, detail: str) -> httpx.Response:
    error = {"status": status, "code": code, "detail": f"There was a conflict.\n\n {detail}  "}
    return httpx.Response(status, json={"errors": [error]})


class Wire(httpx.AsyncBaseTransport):
    """The service on a ledger, with somebody meddling in between. ``asked``: method and path of each.

    It has the Placement API alone, as OpenStack's, or ``v1`` as well; then it must be closed.
    """

    def __init__(self, ledger: Ledger, meddling: Meddling, v1: bool = False) -> None:
        options = PlacementOptions(auth_strategy="noauth2")
        app: Any = create_app(ledger, options)
        self._v1 = V1(ledger, options, QueryBudget(ledger, options.limits), document_at) if v1 else None
        if self._v1 is not None:
            app = dispatch({"/v1": self._v1}, app)
        self.service = httpx.ASGITransport(app=app)
        self._meddling = meddling
        self.asked: list[str] = []

    async def aclose(self) -> None:
        if self._v1 is not None:
            self._v1.close()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url.path.rstrip('0123456789abcdef-').rstrip('/')}")
        answer = await self._meddling(request)
        return answer if answer is not None else await self.service.handle_async_request(request)


async def nothing(_: httpx.Request) -> Answer:
    return None


class Room:
    """A scheduler over HTTP, what it asked, and what is held in the end.

    Refusals are explained, for which placement is asked again: ``explain_seconds=0.0`` turns that off.
    """

    def __init__(
        self,
        ledger: Ledger,
        cloud: Cloud,
        meddling: Meddling,
        limit: int | None,
        members: Members = no_members,
        **options: Any,
    ) -> None:
        self.ledger = ledger
        self.wire = Wire(ledger, meddling, options.pop("v1", False))
        self.placement = HttpPlacement(
            FixedCredentials("http://placement", "admin"), client=httpx.AsyncClient(transport=self.wire)
        )
        self.kept = Kept()
        filters = RequestFilterOptions(
            max_placement_results=limit or 0,
            max_paged_placement_results=options.pop("most", 0),
            numa_model=options.pop("numa_model", "objects"),
        )
        pools = HostPools(cloud.table(), SchedulerOptions(request_filters=filters, **options))
        gateway = HttpGateway(self.placement, pools, members, sleep=self._wait)
        self.passed = self.waited = 0.0
        self.waits_end = asyncio.Event()
        self.waits_end.set()
        self.scheduler = Scheduler(gateway, self.kept, lambda: NOW, monotonic=lambda: self.passed)

    async def place(self, count: int = 1, alternates: int = 0, **more: Any) -> tuple[Destination, ...]:
        names = INSTANCES[:count]
        min_count = more.pop("min_count", None)
        return await self.scheduler.select_destinations(
            HostRequest(spec(**more), tuple(names), alternates, min_count=min_count or 0)
        )

    async def _wait(self, seconds: float) -> None:
        self.waited += seconds
        await asyncio.sleep(0)
        await self.waits_end.wait()

    def held(self) -> dict[str, dict[str, dict[str, int]]]:
        held = self.ledger.database.read_now(held_by_all)
        return {consumer: one.allocations for consumer, one in held.items() if consumer in INSTANCES}

    def tries(self) -> list[tuple[str, str, str | None]]:
        return [(each.host, each.result, each.reason) for each in self.kept.attempts]


Within = Callable[..., None]

NOT_TOGETHER = refused(409, "placement.undefined_code", "no room for all")


def claims_of(request: httpx.Request) -> int:
    """How many claims a request wants to make."""
    if request.method != "POST" or request.url.path != "/allocations":
        return 0
    return len(msgspec.json.decode(request.content))


def at_claims(answer: Callable[[int], Answer]) -> Meddling:
    """Answers claims by their number, from 0. Several in one write are refused, so that they come singly."""
    claims = iter(range(1000))

    async def meddle(request: httpx.Request) -> Answer:
        if claims_of(request) > 1:
            return NOT_TOGETHER
        return answer(next(claims)) if claims_of(request) else None

    return meddle
