"""Claims beside what an instance holds and keeps, over HTTP: a failed run gives back the new part alone."""

import asyncio
from collections.abc import Sequence

import httpx
import msgspec
import pytest

from roost.ledger.holdings import held_by_all
from roost.model.allocation import Allocations, KeptAllocations
from roost.model.node_event import NodeEvent, WordSaid
from roost.model.spec import ServerGroup
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.placement.errors import ConcurrentUpdate
from roost.scheduler import Scheduler
from roost.scheduler.errors import ClaimsInDoubt, NoValidHost, PlacementUnavailable
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.gateways.word_checks import WordCheckedGateway
from roost.scheduler.nodes.operator_words import OperatorWords
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from support.clouds import NOW, flat, holding, spec, uuid_of
from support.wire import INSTANCES, NOT_TOGETHER, Answer, Room, Within, claims_of

ONE, TWO = INSTANCES[:2]
SOURCE: Allocations = {uuid_of(0): {"VCPU": 3, "MEMORY_MB": 1024, "DISK_GB": 10}}
ELSEWHERE = frozenset({"host0"})


async def source_held(room: Room) -> None:
    await room.ledger.execute(WriteAllocations((holding(ONE, SOURCE),)))


async def evacuate(room: Room, *others: str, generation: int = 1, **more: object) -> list[int | None]:
    """The generations of the claims of one instance beside what it holds, and of others."""
    found = await room.scheduler.select_destinations(
        HostRequest(
            spec(**{"ignore_hosts": ELSEWHERE, **more}),
            (ONE, *others),
            beside={ONE: KeptAllocations(SOURCE, generation)},
        )
    )
    return [each.selected.generation for each in found]


def held(room: Room) -> dict[str, tuple[Allocations, int]]:
    found = room.ledger.database.read_now(held_by_all)
    return {
        name: (each.allocations, each.consumer.generation)
        for name, each in found.items()
        if name in INSTANCES
    }


@pytest.mark.parametrize("v1", [False, True])
def test_what_is_kept_stays_and_the_claim_is_added_in_one_write(within: Within, v1: bool) -> None:
    async def work(room: Room) -> None:
        await source_held(room)
        assert await evacuate(room) == [2]
        new = room.kept.runs[-1].destinations[0].selected.allocations
        assert new.keys() == {uuid_of(1)}
        assert held(room) == {ONE: ({**SOURCE, **new}, 2)}
        assert sum(asked.startswith("POST") for asked in room.wire.asked) == 1
        with pytest.raises(ConcurrentUpdate):
            await evacuate(room)
        assert held(room) == {ONE: ({**SOURCE, **new}, 2)}

    within(flat(2), work, v1=v1)


def test_with_another_instance_in_one_write(within: Within) -> None:
    async def work(room: Room) -> None:
        await source_held(room)
        assert await evacuate(room, TWO) == [2, 1]
        assert sum(asked.startswith("POST") for asked in room.wire.asked) == 1

    within(flat(3), work)


@pytest.mark.parametrize(
    ("answer", "error"), [(NOT_TOGETHER, NoValidHost), (httpx.Response(500), PlacementUnavailable)]
)
def test_a_run_that_fails_gives_back_the_new_part_alone(
    within: Within, answer: httpx.Response, error: type[Exception]
) -> None:
    claims: list[str] = []

    async def singly(request: httpx.Request) -> Answer:
        if claims_of(request) > 1:
            return NOT_TOGETHER
        if claims_of(request):
            claims.append("claim")
            return answer if len(claims) == 2 else None
        return None

    async def work(room: Room) -> None:
        await source_held(room)
        with pytest.raises(error):
            await evacuate(room, TWO)
        assert held(room) == {ONE: (SOURCE, 3)}

    within(flat(2), work, singly)


@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("v1", [False, True])
def test_a_claim_whose_answer_is_lost_is_taken_back(within: Within, arrives: bool, v1: bool) -> None:
    rooms: list[Room] = []
    late: list[httpx.Request] = []

    async def lose(request: httpx.Request) -> Answer:
        if claims_of(request) and not late:
            late.append(request)
            if arrives:
                await rooms[0].wire.service.handle_async_request(request)
            raise httpx.ReadTimeout("", request=request)
        return None

    async def work(room: Room) -> None:
        rooms.append(room)
        await source_held(room)
        with pytest.raises(PlacementUnavailable, match="ReadTimeout"):
            await evacuate(room)
        assert held(room) == {ONE: (SOURCE, 3 if arrives else 2)}
        # The write that has not arrived cannot be made any more.
        answer = await room.wire.service.handle_async_request(late[0])
        assert answer.status_code == 409
        assert held(room)[ONE][0] == SOURCE

    within(flat(2), work, lose, v1=v1)


def test_what_others_have_written_meanwhile_stays(within: Within) -> None:
    other: Allocations = {uuid_of(2): {"VCPU": 1}}
    rooms: list[Room] = []

    async def lose(request: httpx.Request) -> Answer:
        if claims_of(request):
            write = ConsumerWrite(consumer=ONE, allocations=other, project_id="p", user_id="u", generation=1)
            await rooms[0].ledger.execute(WriteAllocations((write,)))
            raise httpx.ReadTimeout("", request=request)
        return None

    async def work(room: Room) -> None:
        rooms.append(room)
        await source_held(room)
        with pytest.raises(PlacementUnavailable):
            await evacuate(room)
        assert held(room) == {ONE: (other, 2)}

    within(flat(3), work, lose)


def test_a_run_that_is_cancelled_gives_back_the_new_part_alone(within: Within) -> None:
    waiting = asyncio.Event()
    claims: list[bool] = []

    async def hang(request: httpx.Request) -> Answer:
        if claims_of(request) > 1:
            return NOT_TOGETHER
        if claims_of(request):
            claims.append(True)
            if len(claims) == 2:
                waiting.set()
                await asyncio.sleep(60)
        return None

    async def work(room: Room) -> None:
        await source_held(room)
        task = asyncio.create_task(evacuate(room, TWO))
        await waiting.wait()
        assert len(held(room)[ONE][0]) == 2
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert held(room) == {ONE: (SOURCE, 3)}

    within(flat(2), work, hang)


def test_a_lost_answer_when_giving_back_is_found_out(within: Within) -> None:
    writes: list[bool] = []
    rooms: list[Room] = []

    async def lose(request: httpx.Request) -> Answer:
        if claims_of(request) > 1:
            return NOT_TOGETHER
        if claims_of(request):
            writes.append(True)
            if len(writes) == 2:
                return httpx.Response(500)
            if len(writes) == 3:
                await rooms[0].wire.service.handle_async_request(request)
                raise httpx.ReadTimeout("", request=request)
        return None

    async def work(room: Room) -> None:
        rooms.append(room)
        await source_held(room)
        with pytest.raises(ClaimsInDoubt):
            await evacuate(room, TWO)
        assert held(room) == {ONE: (SOURCE, 3)}

    within(flat(2), work, lose)


def test_a_second_look_that_finds_another_member_gives_back_the_new_part_alone(within: Within) -> None:
    """At a service without groups."""
    rooms: list[Room] = []

    async def members(group: str) -> Sequence[str]:
        return [ONE, uuid_of(1)]

    async def race(request: httpx.Request) -> Answer:
        if claims_of(request) and not taken:
            taken.append(True)
            member = holding(uuid_of(1), {uuid_of(1): {"VCPU": 1}})
            await rooms[0].ledger.execute(WriteAllocations((member,)))
        return None

    taken: list[bool] = []

    async def work(room: Room) -> None:
        rooms.append(room)
        await source_held(room)
        with pytest.raises(NoValidHost):
            await evacuate(room, group=ServerGroup("g", "anti-affinity"))
        assert held(room) == {ONE: (SOURCE, 3)}

    within(flat(2), work, race, members=members)


def test_an_affine_run_that_begins_anew_goes_on_at_the_new_generation(within: Within) -> None:
    """At a service without groups."""
    rooms: list[Room] = []
    member, claimed = uuid_of(1), list[str]()

    async def members(group: str) -> Sequence[str]:
        return [ONE, member]

    async def race(request: httpx.Request) -> Answer:
        if claims_of(request):
            [host] = msgspec.json.decode(request.content)[ONE]["allocations"].keys() - SOURCE.keys() or [""]
            if not claimed:
                [other] = {uuid_of(1), uuid_of(2)} - {host}
                await rooms[0].ledger.execute(WriteAllocations((holding(member, {other: {"VCPU": 1}}),)))
            claimed.append(host)
        return None

    async def work(room: Room) -> None:
        rooms.append(room)
        await source_held(room)
        assert await evacuate(room, group=ServerGroup("g", "affinity")) == [4]
        first, given_back, second = claimed
        assert {first, second} == {uuid_of(1), uuid_of(2)}
        assert given_back == ""
        allocations, generation = held(room)[ONE]
        assert (allocations.keys(), generation) == ({*SOURCE, second}, 4)

    within(flat(3), work, race, members=members)


def test_claims_that_a_word_concerns_are_given_back_and_made_anew(within: Within) -> None:
    async def work(room: Room) -> None:
        await source_held(room)
        said: list[Sequence[NodeEvent]] = [[], [WordSaid("cell1", "", "", False)], [], []]

        async def read() -> Sequence[NodeEvent]:
            return said.pop(0)

        words = OperatorWords(read)
        pools = HostPools(flat(3).table())
        gateway = WordCheckedGateway(HttpGateway(room.placement, pools), words)
        room.scheduler = Scheduler(gateway, room.kept, lambda: NOW, words=words)
        assert await evacuate(room, TWO) == [4, 1]
        new = room.kept.runs[-1].destinations[0].selected.allocations
        assert held(room)[ONE] == ({**SOURCE, **new}, 4)
        assert room.kept.runs[-1].beside == {ONE: KeptAllocations(SOURCE, 3)}

    within(flat(3), work)
