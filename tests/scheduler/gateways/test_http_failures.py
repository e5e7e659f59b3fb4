"""Placement over HTTP fails: the error is no refusal of a host, and what was claimed is freed again."""

import asyncio

import httpx
import pytest
from structlog.testing import capture_logs

from roost.placement.commands.allocations import WriteAllocations
from roost.scheduler.errors import PlacementRefused, PlacementUnavailable
from support.clouds import flat, holding, uuid_of
from support.wire import INSTANCES, NOT_TOGETHER, Answer, Room, Wire, Within, at_claims, claims_of, refused


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
        if claims_of(request) > 1:
            return NOT_TOGETHER
        if claims_of(request):
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
        if claims_of(request) > 1:
            return NOT_TOGETHER
        if claims_of(request):
            claims.append(True)
            if len(claims) == 2:
                await wires[0].service.handle_async_request(request)
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
        if claims_of(request) > 1:
            return NOT_TOGETHER
        if claims_of(request):
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


def test_run_that_is_cancelled_ends_so_even_if_its_claims_cannot_be_freed(within: Within) -> None:
    async def hang_then_die(request: httpx.Request) -> Answer:
        if claims:
            return gone(request)
        if request.method == "POST" and request.url.path == "/allocations":
            claims.append(True)
            waiting[0].set()
            await asyncio.sleep(60)
        return None

    claims: list[bool] = []
    waiting: list[asyncio.Event] = []

    async def work(room: Room) -> None:
        waiting.append(asyncio.Event())
        task = asyncio.create_task(room.place(1))
        await waiting[0].wait()
        task.cancel()
        with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
            await task
        assert [log["event"] for log in logs] == ["a cancelled run left claims behind"]
        assert INSTANCES[0] in logs[0]["error"]

    within(flat(2), work, hang_then_die)


def test_what_could_not_be_freed_is_said(within: Within) -> None:
    claims: list[bool] = []

    async def die(request: httpx.Request) -> Answer:
        if claims_of(request) > 1:
            return NOT_TOGETHER
        if request.method == "POST":
            claims.append(True)
        return gone(request) if len(claims) > 1 else None

    async def work(room: Room) -> None:
        text = f"and what {INSTANCES[0]}, {INSTANCES[1]} may have claimed could not be freed"
        with pytest.raises(PlacementUnavailable, match=text):
            await room.place(2)
        assert set(room.held()) == {INSTANCES[0]}

    within(flat(2), work, die)
