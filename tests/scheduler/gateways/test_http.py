"""Placement over HTTP: what is a refusal of a host, what is an error, and what is freed again."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from roost.auth.credentials import FixedCredentials
from roost.ledger import Ledger
from roost.ledger.holdings import held_by_all
from roost.model.inventory import Inventory
from roost.model.request import RequestGroup
from roost.model.spec import Destination
from roost.placement.client import HttpPlacement
from roost.placement.commands.allocations import WriteAllocations
from roost.placement.errors import ConcurrentUpdate
from roost.placement.http.app import create_app
from roost.placement.options import PlacementOptions
from roost.scheduler import NoValidHost, Scheduler
from roost.scheduler.errors import BadRequestSpec, PlacementRefused, PlacementUnavailable
from roost.scheduler.gateways.http import HttpGateway
from support.clouds import NOW, Cloud, Kept, Provider, filled, flat, holding, spec, uuid_of

INSTANCES = [uuid_of(0xA0 + number) for number in range(4)]

Answer = httpx.Response | None
Meddling = Callable[[httpx.Request], Awaitable[Answer]]
"""Sees each request before the service does; may answer in its place."""


def refused(status: int, code: str, detail: str) -> httpx.Response:
    error = {"status": status, "code": code, "detail": f"There was a conflict.\n\n {detail}  "}
    return httpx.Response(status, json={"errors": [error]})


class Wire(httpx.AsyncBaseTransport):
    """The service on a ledger, with somebody meddling in between. ``asked``: method and path of each."""

    def __init__(self, ledger: Ledger, meddling: Meddling) -> None:
        app = create_app(ledger, PlacementOptions(auth_strategy="noauth2"))
        self._service = httpx.ASGITransport(app=app)
        self._meddling = meddling
        self.asked: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url.path.rstrip('0123456789abcdef-').rstrip('/')}")
        answer = await self._meddling(request)
        return answer if answer is not None else await self._service.handle_async_request(request)


async def nothing(_: httpx.Request) -> Answer:
    return None


class Room:
    """A scheduler over HTTP, what it asked, and what is held in the end."""

    def __init__(self, ledger: Ledger, cloud: Cloud, meddling: Meddling, limit: int | None) -> None:
        self.ledger = ledger
        self.wire = Wire(ledger, meddling)
        self.placement = HttpPlacement(
            FixedCredentials("http://placement", "admin"), client=httpx.AsyncClient(transport=self.wire)
        )
        self.kept = Kept()
        gateway = HttpGateway(self.placement, lambda n: 0, limit)
        self.scheduler = Scheduler(gateway, cloud.table(), self.kept, clock=lambda: NOW)

    async def place(self, count: int = 1, alternates: int = 0, **more: Any) -> tuple[Destination, ...]:
        names = INSTANCES[:count]
        min_count = more.pop("min_count", None)
        return await self.scheduler.select_destinations(
            spec(**more), count, alternates, instances=names, min_count=min_count
        )

    def held(self) -> dict[str, dict[str, dict[str, int]]]:
        held = self.ledger.database.read_now(held_by_all)
        return {consumer: one.allocations for consumer, one in held.items() if consumer in INSTANCES}

    def tries(self) -> list[tuple[str, str, str | None]]:
        return [(each.host, each.result, each.reason) for each in self.kept.attempts]


@pytest.fixture
def within(tmp_path: Path, empty_database: Path) -> Callable[..., None]:
    def run(
        cloud: Cloud,
        work: Callable[[Room], Awaitable[None]],
        meddling: Meddling = nothing,
        limit: int | None = None,
    ) -> None:
        async def main() -> None:
            async with filled(tmp_path / "roost.db", cloud, empty_database) as ledger:
                room = Room(ledger, cloud, meddling, limit)
                async with room.placement:
                    await work(room)

        asyncio.run(main())

    return run


Within = Callable[..., None]


def at_claims(answer: Callable[[int], Answer]) -> Meddling:
    """Answers claims by their number, from 0."""
    claims = iter(range(1000))

    async def meddle(request: httpx.Request) -> Answer:
        if request.method == "POST" and request.url.path == "/allocations":
            return answer(next(claims))
        return None

    return meddle


def test_claims_are_made_for_new_consumers(within: Within) -> None:
    async def work(room: Room) -> None:
        one, two = await room.place(2, 1)
        assert (one.selected.host, two.selected.host) == ("host0", "host1")
        assert [other.host for other in one.alternates] == ["host2"]
        assert set(room.held()) == set(INSTANCES[:2])
        assert room.wire.asked == ["GET /allocation_candidates", "POST /allocations", "POST /allocations"]
        [run] = room.kept.runs
        assert run.version is None
        assert [(step.name, step.left) for step in run.steps][:3] == [
            ("hosts known", 3),
            ("hosts with candidates", 3),
            ("compute_up", 3),
        ]

    within(flat(3), work)


CAPACITY = refused(409, "placement.undefined_code", "Unable to allocate inventory: no room")
GENERATION = refused(409, "placement.concurrent_update", "resource provider generation conflict")
CONSUMER = refused(
    409, "placement.concurrent_update", "consumer generation conflict - expected 3 but got null"
)


@pytest.mark.parametrize("answer", [CAPACITY, GENERATION])
def test_conflict_goes_to_the_next_host(within: Within, answer: httpx.Response) -> None:
    async def work(room: Room) -> None:
        [one] = await room.place()
        assert one.selected.host == "host2"
        first, second, third = room.tries()
        assert (first[0], second[0], third) == ("host0", "host1", ("host2", "claimed", None))
        assert first[1] == "refused"
        assert first[2] is not None
        assert "\n" not in first[2]

    within(flat(3), work, at_claims(lambda number: answer if number < 2 else None))


def test_conflict_goes_to_the_next_allocation_request_of_the_host_first(within: Within) -> None:
    cloud = flat(2)
    gpu = {"CUSTOM_GPU": Inventory(1)}
    for number in (7, 8):
        cloud.providers.append(Provider(uuid_of(number), gpu, uuid_of(0)))

    async def work(room: Room) -> None:
        [one] = await room.place(requested_resources=(RequestGroup({"CUSTOM_GPU": 1}, "_port"),))
        assert one.selected.mappings["_port"] == [uuid_of(8)]
        assert [host for host, _, _ in room.tries()] == ["host0", "host0"]

    within(cloud, work, at_claims(lambda number: CAPACITY if number == 0 else None))


def test_somebody_else_was_faster(within: Within) -> None:
    async def work(room: Room) -> None:
        [one] = await room.place()
        assert one.selected.host == "host1"
        [(host, result, reason), _] = room.tries()
        assert (host, result) == ("host0", "refused")
        assert reason is not None
        assert "would exceed the capacity" in reason

    ledgers: list[Ledger] = []

    async def take_all_before(request: httpx.Request) -> Answer:
        if request.method == "POST" and ledgers:
            write = holding(uuid_of(0xBEEF), {uuid_of(0): {"VCPU": 8}})
            await ledgers.pop().execute(WriteAllocations((write,)))
        return None

    async def with_ledger(room: Room) -> None:
        ledgers.append(room.ledger)
        await work(room)

    within(flat(2), with_ledger, take_all_before)


def test_no_host_takes_it(within: Within) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(NoValidHost, match=r"every claim was refused, the last one on host1: .* no room"):
            await room.place()
        assert room.held() == {}

    within(flat(2), work, at_claims(lambda _: CAPACITY))


def test_consumer_that_holds_something_is_an_error_and_keeps_it(within: Within) -> None:
    async def work(room: Room) -> None:
        mine = {uuid_of(0): {"VCPU": 1}}
        await room.ledger.execute(WriteAllocations((holding(INSTANCES[1], mine),)))
        with pytest.raises(ConcurrentUpdate, match="consumer generation conflict"):
            await room.place(2)
        assert room.held() == {INSTANCES[1]: mine}

    within(flat(2), work)
    within(flat(2), work, at_claims(lambda number: CONSUMER if number == 1 else None))


def test_run_that_comes_to_nothing_frees_its_claims(within: Within) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(NoValidHost, match="only 2 of 3 instances fit"):
            await room.place(3, vcpus=8)
        assert room.held() == {}
        assert len(await room.place(3, vcpus=8, min_count=2)) == 2
        assert len(room.held()) == 2

    within(flat(2), work)


def gone(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("Connection refused", request=request)


BROKEN = [
    (httpx.Response(503, json={"errors": [{"detail": "busy"}]}), PlacementUnavailable, "busy"),
    (httpx.Response(500, text="oops"), PlacementUnavailable, "oops"),
    (httpx.Response(429, text="slow down"), PlacementUnavailable, "slow down"),
    (httpx.Response(401, json={"message": "who are you"}), PlacementRefused, "who are you"),
    (refused(403, "placement.undefined_code", "not for you"), PlacementRefused, "not for you"),
    (refused(406, "placement.undefined_code", "no such version"), PlacementRefused, "no such version"),
    (httpx.Response(404, text="no such page"), PlacementRefused, "no such page"),
    (None, PlacementUnavailable, "placement cannot be reached: ConnectError: Connection refused"),
]


@pytest.mark.parametrize(("answer", "kind", "text"), BROKEN)
def test_failure_is_never_no_valid_host(
    within: Within, answer: Answer, kind: type[Exception], text: str
) -> None:
    async def always(request: httpx.Request) -> Answer:
        return answer or gone(request)

    async def work(room: Room) -> None:
        with pytest.raises(kind, match=text):
            await room.place()
        [run] = room.kept.runs
        assert run.refusal is not None
        assert text in run.refusal
        assert "\n" not in run.refusal

    within(flat(2), work, always)


@pytest.mark.parametrize(("answer", "kind", "text"), BROKEN)
def test_failure_of_a_claim_frees_those_made_before(
    within: Within, answer: Answer, kind: type[Exception], text: str
) -> None:
    claims: list[str] = []

    async def second(request: httpx.Request) -> Answer:
        if request.method == "POST" and request.url.path == "/allocations":
            claims.append("claim")
            return (answer or gone(request)) if len(claims) == 2 else None
        return None

    async def work(room: Room) -> None:
        with pytest.raises(kind, match=text):
            await room.place(3)
        assert len(claims) == 2
        assert room.held() == {}

    within(flat(2), work, second)


@pytest.mark.parametrize(
    "body", ["[]", "{}", "<html>", '{"allocation_requests": 5, "provider_summaries": {}}']
)
def test_something_else_at_the_url(within: Within, body: str) -> None:
    async def always(request: httpx.Request) -> Answer:
        return httpx.Response(200, text=body)

    async def work(room: Room) -> None:
        with pytest.raises(PlacementRefused, match="this is no Placement API"):
            await room.place()

    within(flat(2), work, always)


def test_claim_whose_answer_is_lost_is_freed(within: Within) -> None:
    claims: list[bool] = []

    async def lose_second(request: httpx.Request) -> Answer:
        if request.method == "POST" and request.url.path == "/allocations":
            claims.append(True)
            if len(claims) == 2:
                await wires[0]._service.handle_async_request(request)
                raise httpx.ReadTimeout("", request=request)
        return None

    wires: list[Wire] = []

    async def work(room: Room) -> None:
        wires.append(room.wire)
        with pytest.raises(PlacementUnavailable, match="ReadTimeout"):
            await room.place(3)
        assert room.held() == {}

    within(flat(2), work, lose_second)


def test_what_a_consumer_in_doubt_holds_besides_stays(within: Within) -> None:
    mine = {uuid_of(1): {"VCPU": 3}}

    async def work(room: Room) -> None:
        await room.ledger.execute(WriteAllocations((holding(INSTANCES[0], mine),)))
        with pytest.raises(PlacementUnavailable):
            await room.place()
        assert room.held() == {INSTANCES[0]: mine}

    within(flat(2), work, at_claims(lambda _: httpx.Response(500)))


def test_run_that_is_cancelled_frees_its_claims(within: Within) -> None:
    async def hang(request: httpx.Request) -> Answer:
        if request.method == "POST" and request.url.path == "/allocations":
            claims.append(True)
            if len(claims) == 2:
                waiting[0].set()
                await asyncio.sleep(60)
        return None

    claims: list[bool] = []
    waiting: list[asyncio.Event] = []

    async def work(room: Room) -> None:
        waiting.append(asyncio.Event())
        task = asyncio.create_task(room.place(3))
        await waiting[0].wait()
        assert len(room.held()) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert room.held() == {}

    within(flat(2), work, hang)


def test_what_could_not_be_freed_is_said(within: Within) -> None:
    claims: list[bool] = []

    async def die(request: httpx.Request) -> Answer:
        if request.method == "POST":
            claims.append(True)
        return gone(request) if len(claims) > 1 else None

    async def work(room: Room) -> None:
        text = f"and what {INSTANCES[0]}, {INSTANCES[1]} may have claimed could not be freed"
        with pytest.raises(PlacementUnavailable, match=text):
            await room.place(2)
        assert set(room.held()) == {INSTANCES[0]}

    within(flat(2), work, die)


@pytest.mark.parametrize(
    "extra_specs", [{"resources:CUSTOM_NOTHING": "1"}, {"trait:CUSTOM_NOTHING": "required"}]
)
def test_name_that_placement_does_not_know(within: Within, extra_specs: dict[str, str]) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(BadRequestSpec, match="CUSTOM_NOTHING"):
            await room.place(extra_specs=extra_specs)

    within(flat(1), work)


def test_limit_is_sent_if_there_is_one(within: Within) -> None:
    async def see(request: httpx.Request) -> Answer:
        if request.method == "GET":
            limits.append(request.url.params.get("limit"))
        return None

    limits: list[str | None] = []

    async def work(room: Room) -> None:
        [one] = await room.place(1, 5)
        found.append(len(one.alternates))

    found: list[int] = []
    within(flat(4), work, see)
    within(flat(4), work, see, 2)
    assert limits == [None, "2"]
    assert found == [3, 1]
