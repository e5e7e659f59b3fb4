"""A scheduler over HTTP for conductors: the same calls, and requests sent again claim nothing twice."""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import msgspec
import pytest

from roost.conductor.cell_conductor import CellConductor
from roost.conductor.super_conductor import SuperConductor
from roost.ledger.holdings import held_by_all
from roost.model.allocation import HandedClaim
from roost.model.instance import ASSIGNED
from roost.model.spec import Destination, Selection, ServerGroup
from roost.placement.commands.allocations import FreeConsumers
from roost.placement.errors import ConcurrentUpdate
from roost.records import RecordQueue
from roost.scheduler import SchedulerOptions
from roost.scheduler.api.app import create_app
from roost.scheduler.api.repeated import Repeats
from roost.scheduler.api.service import SchedulerService
from roost.scheduler.client import HttpScheduler
from roost.scheduler.client.http import ATTEMPTS
from roost.scheduler.errors import (
    BadRequestSpec,
    NoAlternate,
    NothingClaimed,
    NoValidHost,
    SchedulerRefused,
    SchedulerUnavailable,
    StaleClaim,
)
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.replacement import AlternateRequest
from roost.web.auth import NoAuth
from roost.web.auth.credentials import FixedCredentials
from support.clouds import flat, spec, uuid_of
from support.conducting import BACKOFF, NOW, conducting, request
from support.hardware_clouds import OPTIONS, REQUESTS, hardware_cloud
from support.recording import Backend
from support.scheduling_api import SchedulingApi, scheduling

A, B, C = (uuid_of(0xA0 + number) for number in range(3))
MIGRATION = uuid_of(0xB1)
TOKEN = "nova:services"


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """The test in an event loop of its own."""

    @functools.wraps(test)
    def run(*args: object, **named: object) -> None:
        async def main() -> None:
            await test(*args, **named)

        asyncio.run(main())

    return run


class Way(httpx.AsyncBaseTransport):
    """The way to schedulers, each request to the next of them. ``lost``: so many responses do not arrive."""

    def __init__(self, *apps: object) -> None:
        self._ways = [httpx.ASGITransport(app) for app in apps]  # type: ignore[arg-type]
        self.sent = self.lost = 0
        self.after: Callable[[], Awaitable[object]] | None = None

    async def end_first(self) -> None:
        """The first of the schedulers ends."""
        del self._ways[0]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        way = self._ways[self.sent % len(self._ways)]
        self.sent += 1
        request.headers["x-roles"] = "service"
        response = await way.handle_async_request(request)
        if self.lost:
            self.lost -= 1
            if self.after is not None:
                await self.after()
            raise httpx.ReadTimeout("no response")
        return response


def client_of(way: Way) -> HttpScheduler:
    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0)

    client = httpx.AsyncClient(transport=way)
    return HttpScheduler(FixedCredentials("http://scheduler", TOKEN), client=client, sleep=sleep)


@asynccontextmanager
async def asking(folder: Path, others: int = 0) -> AsyncIterator[tuple[SchedulingApi, Way, HttpScheduler]]:
    """A client of a scheduler, and of ``others`` beside it that share hosts and records."""
    async with scheduling(folder, flat(3), SchedulerOptions(explain_seconds=5.0)) as api:
        apps = [create_app(replace(api.service, repeats=Repeats()), NoAuth()) for _ in range(others)]
        way = Way(api.app, *apps)
        async with client_of(way) as client:
            yield api, way, client


@in_loop
async def test_the_calls_are_those_of_a_scheduler_in_the_process(tmp_path: Path) -> None:
    async with asking(tmp_path) as (api, way, client):
        placed = await client.select_destinations(HostRequest(spec(), (A, B), 1, request_id="req-1"))
        assert [each.instance for each in placed] == [A, B]
        assert api.held() == {each.instance: each.selected.allocations for each in placed}
        [first, _] = placed
        moved = await client.use_alternate(
            AlternateRequest(
                spec(), A, first.selected, first.alternates, reason="no IP", run=first.run, request_id="req-1"
            )
        )
        assert moved.selected is not None
        assert moved.selected.host == first.alternates[0].host == moved.tries[0].host
        assert api.held()[A] == moved.selected.allocations
        with pytest.raises(StaleClaim, match="at generation 2, not 1") as stale:
            await client.use_alternate(
                AlternateRequest(spec(), A, first.selected, run=first.run, request_id="req-1")
            )
        assert stale.value.generation == moved.selected.generation == 2
        with pytest.raises(NoAlternate, match="no alternate is left") as none:
            await client.use_alternate(
                AlternateRequest(spec(), A, moved.selected, run=first.run, request_id="req-1")
            )
        assert none.value.tries == ()
        with pytest.raises(NothingClaimed, match=C):
            await client.use_alternate(AlternateRequest(spec(), C, first.selected, run=first.run))
        with pytest.raises(NoValidHost, match="none of 3 hosts has 9 VCPU free") as refused:
            await client.select_destinations(HostRequest(spec(9), (C,)))
        assert refused.value.steps
        assert refused.value.reasons is not None
        with pytest.raises(BadRequestSpec, match="CUSTOM_NO"):
            wrong = spec(extra_specs={"trait:CUSTOM_NO": "required"})
            await client.select_destinations(HostRequest(wrong, (C,)))
        with pytest.raises(ConcurrentUpdate):
            await client.select_destinations(HostRequest(spec(), (A,)))
        again = await client.select_destinations(HostRequest(spec(2), (A,), generations={A: 2}))
        assert (again[0].selected.generation, api.held()[A]) == (3, again[0].selected.allocations)
        assert way.sent == 9


def handed(of: Destination, **more: object) -> dict[str, HandedClaim]:
    """What an instance holds, for its migration."""
    held = of.selected
    claim = HandedClaim(held.allocations, held.generation or 0, held.assignment, consumer=MIGRATION)
    return {of.instance: msgspec.structs.replace(claim, **more)}


@pytest.mark.parametrize("others", [0, 1])
@in_loop
async def test_a_move_hands_over_once_though_its_answer_is_lost(tmp_path: Path, others: int) -> None:
    together = spec(group=ServerGroup("g", "affinity"))
    async with asking(tmp_path, others) as (api, way, client):
        [placed] = await client.select_destinations(HostRequest(together, (A,)))
        leaves = msgspec.structs.replace(together, ignore_hosts=frozenset({placed.selected.host}))
        way.lost, way.after = 1, api.service.records.flush
        [moved] = await client.select_destinations(HostRequest(leaves, (A,), 1, handed=handed(placed)))
        assert way.sent == 3
        assert moved.selected.generation == 2
        assert api.held() == {A: moved.selected.allocations, MIGRATION: placed.selected.allocations}
        wanted = AlternateRequest(leaves, A, moved.selected, moved.alternates, "no disk", moved.run)
        retried = await client.use_alternate(msgspec.structs.replace(wanted, held_by=MIGRATION))
        assert retried.selected is not None
        assert api.held() == {A: retried.selected.allocations, MIGRATION: placed.selected.allocations}
        with pytest.raises(ConcurrentUpdate):
            await client.select_destinations(HostRequest(leaves, (A,), handed=handed(placed)))


@in_loop
async def test_a_move_hands_over_hardware(tmp_path: Path) -> None:
    async with scheduling(tmp_path, hardware_cloud(2), OPTIONS) as api, client_of(Way(api.app)) as client:
        [placed] = await client.select_destinations(HostRequest(REQUESTS[0], (A,)))
        [moved] = await client.select_destinations(HostRequest(REQUESTS[0], (A,), handed=handed(placed)))
        assigned = {
            name: each.consumer.assignment for name, each in api.ledger.database.read_now(held_by_all).items()
        }
        assert assigned == {A: moved.selected.assignment, MIGRATION: placed.selected.assignment}
        assert None not in assigned.values()


@in_loop
async def test_a_move_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    async with asking(tmp_path) as (api, _, client):
        [placed] = await client.select_destinations(HostRequest(spec(), (A,)))
        before = api.held()
        for wrong in (
            HostRequest(spec(), (B,), handed=handed(placed)),
            HostRequest(spec(), (A,), handed=handed(placed, consumer=A)),
            HostRequest(spec(), (A,), handed=handed(placed), generations={A: 1}),
            HostRequest(spec(), (A,), handed=handed(placed, allocations={})),
            HostRequest(spec(), (A,), handed=handed(placed, consumer="migration")),
        ):
            with pytest.raises(BadRequestSpec):
                await client.select_destinations(wrong)
        node = {"node": placed.selected.node, "cores": 4}
        body = {**msgspec.to_builtins(handed(placed)[A]), "assignment": node}
        response = await api.select(instances=[A], handed={A: body})
        assert response.status_code == 400
        assert "cores" in response.json()["errors"][0]["detail"]
        assert api.held() == before


@in_loop
async def test_an_earlier_scheduler_is_asked_as_before_and_refuses_to_hand_over() -> None:
    """It refuses each field that it does not know."""
    bodies: list[dict[str, object]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        body = msgspec.json.decode(request.content)
        bodies.append(body)
        unknown = {"handed", "held_by"} & body.keys()
        return httpx.Response(400 if unknown else 503)

    async def sleep(seconds: float) -> None:
        pass

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    selected = Selection("host0", uuid_of(0), "cell1", {}, {}, 0.0, "nova")
    claim = HandedClaim({uuid_of(0): {"VCPU": 1}}, 1, consumer=MIGRATION)
    async with HttpScheduler(FixedCredentials("http://old", TOKEN), client=client, sleep=sleep) as scheduler:
        with pytest.raises(SchedulerUnavailable):
            await scheduler.select_destinations(HostRequest(spec(), (A,)))
        with pytest.raises(SchedulerUnavailable):
            await scheduler.use_alternate(AlternateRequest(spec(), A, selected))
        with pytest.raises(BadRequestSpec):
            await scheduler.select_destinations(HostRequest(spec(), (A,), handed={A: claim}))
        with pytest.raises(BadRequestSpec):
            await scheduler.use_alternate(AlternateRequest(spec(), A, selected, held_by=MIGRATION))
        with pytest.raises(ValueError, match="over HTTP"):
            await scheduler.select_destinations(HostRequest(spec(), (A,), held_by={A: MIGRATION}))


@pytest.mark.parametrize("others", [0, 1])
@in_loop
async def test_a_request_without_a_response_is_sent_again_and_claims_once(
    tmp_path: Path, others: int
) -> None:
    """By the same process, which remembers the run, or by another one, which finds it in the records."""
    async with asking(tmp_path, others) as (api, way, client):
        way.lost, way.after = 1, api.service.records.flush
        placed = await client.select_destinations(HostRequest(spec(), (A, B), 1))
        assert way.sent == 2
        assert api.held() == {each.instance: each.selected.allocations for each in placed}
        await api.service.records.flush()
        [one] = (await api.client.get("/v1/scheduler/records")).json()["records"]
        assert (one["run"]["id"], len(one["attempts"])) == (placed[0].run, 2)
        way.lost = 1
        with pytest.raises(NoValidHost, match="none of 3 hosts has 9 VCPU free") as refused:
            await client.select_destinations(HostRequest(spec(9), (C,)))
        await api.service.records.flush()
        last = (await api.client.get("/v1/scheduler/records")).json()["records"][0]
        assert refused.value.run == last["run"]["id"]


@in_loop
async def test_a_run_that_nobody_knows_is_a_conflict_until_its_claims_are_freed(tmp_path: Path) -> None:
    async with asking(tmp_path, others=1) as (api, way, client):
        await api.service.records.close()
        way.lost, way.after = 1, way.end_first
        with pytest.raises(ConcurrentUpdate):
            await client.select_destinations(HostRequest(spec(), (A,)))
        assert way.sent == ATTEMPTS
        await api.ledger.execute(FreeConsumers((A,)))
        assert len(await client.select_destinations(HostRequest(spec(), (A,)))) == 1


@in_loop
async def test_a_connection_that_is_lost_does_not_end_the_run(tmp_path: Path) -> None:
    async with asking(tmp_path) as (api, _, client):
        run, work = uuid_of(1), client.select_destinations
        asked = asyncio.create_task(work(HostRequest(spec(), (A,), run=run)))
        for _ in range(3):
            await asyncio.sleep(0)
        again = asyncio.create_task(work(HostRequest(spec(), (A,), run=run)))
        await asyncio.sleep(0)
        asked.cancel()
        [placed] = await again
        assert (placed.run, api.held()) == (run, {A: placed.selected.allocations})


@in_loop
async def test_what_does_not_answer_is_told_from_what_refuses(tmp_path: Path) -> None:
    def answering(status: int) -> HttpScheduler:
        transport = httpx.MockTransport(lambda _: httpx.Response(status, text="<html>"))

        async def sleep(seconds: float) -> None:
            slept.append(seconds)

        client = httpx.AsyncClient(transport=transport)
        return HttpScheduler(FixedCredentials("http://nobody", None), client=client, sleep=sleep)

    for status, error in (
        (503, SchedulerUnavailable),
        (429, SchedulerUnavailable),
        (401, SchedulerRefused),
        (404, SchedulerRefused),
        (400, BadRequestSpec),
        (200, SchedulerRefused),
    ):
        slept = list[float]()
        with pytest.raises(error):
            await answering(status).select_destinations(HostRequest(spec(), (A,)))
        assert slept == ([0.25, 0.5, 1.0] if error is SchedulerUnavailable else [])


@in_loop
async def test_conductors_ask_a_scheduler_over_http(tmp_path: Path) -> None:
    """Placed, a response lost on the way, failed on the first host, and moved to the alternate."""
    async with conducting(tmp_path) as now:
        app = create_app(
            SchedulerService(now.scheduler, RecordQueue(Backend()), SchedulerOptions()), NoAuth()
        )
        way = Way(app)
        async with client_of(way) as client:
            now.super = SuperConductor(
                now.ledger.database, client, now.placement, now.cells, backoff=BACKOFF, clock=lambda: NOW
            )
            await now.super.begin(alone=True)
            now.of_cell = {
                name: CellConductor(cell, now.placement, client, now.records, backoff=BACKOFF)
                for name, cell in now.cells.items()
            }
            way.lost = 1
            await now.run(msgspec.structs.replace(request(2), instances=(A, B)))
            before = await now.instances()
            assert {each.state for each in before.values()} == {ASSIGNED}
            assert way.sent == 2
            await now.build(failing=[str(before[A].host)])
            await now.step()
            after = await now.instances()
            assert after[A].host == before[A].alternates[0].host
            assert (await now.claims()).keys() == {A, B}
            await now.check()
