"""Claims that hand what an instance holds to its migration, over HTTP: a failed run gives all of it back."""

import asyncio
from collections.abc import Sequence

import httpx
import msgspec
import pytest

from roost.ledger.holdings import held_by_all
from roost.model.allocation import Allocations, HandedClaim
from roost.model.assignment import Assignment
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
from support.hardware_clouds import OPTIONS, REQUESTS, hardware_cloud
from support.wire import INSTANCES, NOT_TOGETHER, Answer, Room, Within

ONE, TWO = INSTANCES[:2]
MIGRATION = uuid_of(0xB1)
SOURCE: Allocations = {uuid_of(0): {"VCPU": 3, "MEMORY_MB": 1024, "DISK_GB": 10}}
ELSEWHERE = frozenset({"host0"})
BOTH = pytest.mark.parametrize("v1", [False, True], ids=["foreign", "roost"])


async def source_held(room: Room) -> None:
    await room.ledger.execute(WriteAllocations((holding(ONE, SOURCE),)))


async def move(room: Room, *others: str, **more: object) -> list[int | None]:
    """The generations of the claims of an instance that moves, and of others."""
    found = await room.scheduler.select_destinations(
        HostRequest(
            spec(**{"ignore_hosts": ELSEWHERE, **more}),
            (ONE, *others),
            handed={ONE: HandedClaim(SOURCE, 1, consumer=MIGRATION)},
        )
    )
    return [each.selected.generation for each in found]


def held(room: Room) -> dict[str, tuple[Allocations, int]]:
    found = room.ledger.database.read_now(held_by_all)
    return {name: (each.allocations, each.consumer.generation) for name, each in found.items()}


def written(request: httpx.Request) -> dict[str, dict[str, object]]:
    """The allocations of each consumer that a request writes."""
    if request.method != "POST" or not request.url.path.endswith("/allocations"):
        return {}
    return {name: each["allocations"] for name, each in msgspec.json.decode(request.content).items()}


@BOTH
def test_it_is_one_write_also_with_another_instance(within: Within, v1: bool) -> None:
    async def work(room: Room) -> None:
        await source_held(room)
        assert await move(room, TWO) == [2, 1]
        assert sum(asked.startswith("POST") for asked in room.wire.asked) == 1
        assert held(room)[MIGRATION] == (SOURCE, 1)

    within(flat(3), work, v1=v1)


@pytest.mark.parametrize(
    ("answer", "error"), [(NOT_TOGETHER, NoValidHost), (httpx.Response(500), PlacementUnavailable)]
)
def test_a_run_that_fails_gives_all_back(
    within: Within, answer: httpx.Response, error: type[Exception]
) -> None:
    async def singly(request: httpx.Request) -> Answer:
        claims = written(request)
        if {ONE, TWO} <= claims.keys():
            return NOT_TOGETHER
        return answer if TWO in claims else None

    async def work(room: Room) -> None:
        await source_held(room)
        with pytest.raises(error):
            await move(room, TWO)
        assert held(room) == {ONE: (SOURCE, 3)}

    within(flat(2), work, singly)


@pytest.mark.parametrize("arrives", [True, False])
@BOTH
def test_a_claim_whose_answer_is_lost_is_taken_back(within: Within, arrives: bool, v1: bool) -> None:
    rooms: list[Room] = []
    late: list[httpx.Request] = []

    async def lose(request: httpx.Request) -> Answer:
        if written(request) and not late:
            late.append(request)
            if arrives:
                await rooms[0].wire.service.handle_async_request(request)
                assert MIGRATION in held(rooms[0])
            raise httpx.ReadTimeout("", request=request)
        return None

    async def work(room: Room) -> None:
        rooms.append(room)
        await source_held(room)
        with pytest.raises(PlacementUnavailable, match="ReadTimeout"):
            await move(room)
        assert held(room) == {ONE: (SOURCE, 3 if arrives else 2)}
        # The write that has not arrived cannot be made any more.
        answer = await room.wire.service.handle_async_request(late[0])
        assert answer.status_code == 409
        assert held(room)[ONE][0] == SOURCE
        with pytest.raises(ConcurrentUpdate):
            await move(room)

    within(flat(2), work, lose, v1=v1)


@pytest.mark.parametrize("host", [0, 1])
def test_a_claim_that_arrives_while_it_is_taken_back(within: Within, host: int) -> None:
    """On the instance's own host too, where its allocations tell nothing: both have equal ones."""
    rooms: list[Room] = []
    late: list[httpx.Request] = []

    async def lose(request: httpx.Request) -> Answer:
        if not written(request):
            return None
        if not late:
            late.append(request)
            raise httpx.ReadTimeout("", request=request)
        if len(late) == 1:
            late.append(request)
            answer = await rooms[0].wire.service.handle_async_request(late[0])
            assert answer.is_success
        return None

    async def work(room: Room) -> None:
        rooms.append(room)
        await source_held(room)
        with pytest.raises(PlacementUnavailable, match="ReadTimeout"):
            await move(room, ignore_hosts=frozenset({f"host{1 - host}"}), vcpus=3)
        assert held(room) == {ONE: (SOURCE, 3)}

    within(flat(2), work, lose)


def test_what_others_have_written_meanwhile_stays(within: Within) -> None:
    other: Allocations = {uuid_of(2): {"VCPU": 1}}
    rooms: list[Room] = []

    async def lose(request: httpx.Request) -> Answer:
        if written(request):
            write = ConsumerWrite(consumer=ONE, allocations=other, project_id="p", user_id="u", generation=1)
            await rooms[0].ledger.execute(WriteAllocations((write,)))
            raise httpx.ReadTimeout("", request=request)
        return None

    async def work(room: Room) -> None:
        rooms.append(room)
        await source_held(room)
        with pytest.raises(PlacementUnavailable):
            await move(room)
        assert held(room) == {ONE: (other, 2)}

    within(flat(3), work, lose)


def test_a_run_that_is_cancelled_gives_all_back(within: Within) -> None:
    waiting = asyncio.Event()

    async def hang(request: httpx.Request) -> Answer:
        claims = written(request)
        if {ONE, TWO} <= claims.keys():
            return NOT_TOGETHER
        if TWO in claims:
            waiting.set()
            await asyncio.sleep(60)
        return None

    async def work(room: Room) -> None:
        await source_held(room)
        task = asyncio.create_task(move(room, TWO))
        await waiting.wait()
        assert held(room)[MIGRATION] == (SOURCE, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert held(room) == {ONE: (SOURCE, 3)}

    within(flat(2), work, hang)


def test_a_lost_answer_when_giving_back_is_found_out(within: Within) -> None:
    rooms: list[Room] = []
    lost: list[bool] = []

    async def lose(request: httpx.Request) -> Answer:
        claims = written(request)
        if {ONE, TWO} <= claims.keys():
            return NOT_TOGETHER
        if TWO in claims:
            return httpx.Response(500)
        if claims.get(MIGRATION) == {} and not lost:
            lost.append(True)
            await rooms[0].wire.service.handle_async_request(request)
            raise httpx.ReadTimeout("", request=request)
        return None

    async def work(room: Room) -> None:
        rooms.append(room)
        await source_held(room)
        with pytest.raises(ClaimsInDoubt):
            await move(room, TWO)
        assert lost
        assert held(room) == {ONE: (SOURCE, 3)}

    within(flat(2), work, lose)


def test_a_second_look_that_finds_another_member_gives_all_back(within: Within) -> None:
    """At a service without groups."""
    rooms: list[Room] = []
    taken: list[bool] = []

    async def members(group: str) -> Sequence[str]:
        return [ONE, uuid_of(1)]

    async def race(request: httpx.Request) -> Answer:
        if written(request) and not taken:
            taken.append(True)
            member = holding(uuid_of(1), {uuid_of(1): {"VCPU": 1}})
            await rooms[0].ledger.execute(WriteAllocations((member,)))
        return None

    async def work(room: Room) -> None:
        rooms.append(room)
        await source_held(room)
        with pytest.raises(NoValidHost):
            await move(room, group=ServerGroup("g", "anti-affinity"))
        assert {name: each for name, each in held(room).items() if name != uuid_of(1)} == {ONE: (SOURCE, 3)}

    within(flat(2), work, race, members=members)


def test_an_affine_run_that_begins_anew_goes_on_at_the_new_generation(within: Within) -> None:
    """At a service without groups."""
    rooms: list[Room] = []
    member, claimed = uuid_of(1), list[str]()

    async def members(group: str) -> Sequence[str]:
        return [ONE, member]

    async def race(request: httpx.Request) -> Answer:
        claims = written(request)
        if claims:
            [host] = claims[ONE]
            if not claimed:
                [other] = {uuid_of(1), uuid_of(2)} - {host}
                await rooms[0].ledger.execute(WriteAllocations((holding(member, {other: {"VCPU": 1}}),)))
            claimed.append(host)
        return None

    async def work(room: Room) -> None:
        rooms.append(room)
        await source_held(room)
        assert await move(room, group=ServerGroup("g", "affinity")) == [4]
        first, given_back, second = claimed
        assert ({first, second}, given_back) == ({uuid_of(1), uuid_of(2)}, uuid_of(0))
        allocations, generation = held(room)[ONE]
        assert (allocations.keys(), generation) == ({second}, 4)
        assert held(room)[MIGRATION] == (SOURCE, 1)
        assert room.kept.runs[-1].destinations[0].selected.generation == 4

    within(flat(3), work, race, members=members)


@pytest.mark.parametrize(("hosts", "others"), [(3, 1), (2, 0)])
def test_claims_that_a_word_concerns_are_given_back_and_made_anew(
    within: Within, hosts: int, others: int
) -> None:
    async def work(room: Room) -> None:
        await source_held(room)
        said: list[Sequence[NodeEvent]] = [[], [WordSaid("cell1", "", "", False)], [], []]

        async def read() -> Sequence[NodeEvent]:
            return said.pop(0)

        words = OperatorWords(read)
        pools = HostPools(flat(hosts).table())
        gateway = WordCheckedGateway(HttpGateway(room.placement, pools), words)
        room.scheduler = Scheduler(gateway, room.kept, lambda: NOW, words=words)
        assert await move(room, *[TWO] * others) == [4, 1][: 1 + others]
        new = room.kept.runs[-1].destinations[0].selected.allocations
        assert held(room)[ONE] == (new, 4)
        assert held(room)[MIGRATION] == (SOURCE, 1)
        assert room.kept.runs[-1].handed == {ONE: HandedClaim(SOURCE, 3, consumer=MIGRATION)}

    within(flat(hosts), work)


def test_a_word_gives_back_what_is_claimed_and_leaves_the_rest(within: Within) -> None:
    """Of two instances that move, one has found a host."""
    other = uuid_of(0xB2)
    one: Allocations = {uuid_of(0): {"VCPU": 1}}

    async def work(room: Room) -> None:
        for each in (ONE, TWO):
            await room.ledger.execute(WriteAllocations((holding(each, one),)))
        said: list[Sequence[NodeEvent]] = [[], [WordSaid("cell1", "", "", False)], [], []]

        async def read() -> Sequence[NodeEvent]:
            return said.pop(0)

        words = OperatorWords(read)
        gateway = WordCheckedGateway(HttpGateway(room.placement, HostPools(flat(2).table())), words)
        room.scheduler = Scheduler(gateway, room.kept, lambda: NOW, words=words)
        [found] = await room.scheduler.select_destinations(
            HostRequest(
                spec(5, ignore_hosts=ELSEWHERE),
                (ONE, TWO),
                min_count=1,
                handed={
                    ONE: HandedClaim(one, 1, consumer=MIGRATION),
                    TWO: HandedClaim(one, 1, consumer=other),
                },
            )
        )
        assert held(room) == {ONE: (found.selected.allocations, 4), MIGRATION: (one, 1), TWO: (one, 1)}

    within(flat(2), work)


def test_a_claim_that_is_taken_back_leaves_the_source_its_hardware(within: Within) -> None:
    rooms: list[Room] = []
    lost: list[httpx.Request] = []

    def assigned(room: Room) -> dict[str, Assignment | None]:
        found = room.ledger.database.read_now(held_by_all)
        return {name: each.consumer.assignment for name, each in found.items()}

    async def lose(request: httpx.Request) -> Answer:
        if rooms and written(request) and not lost:
            lost.append(request)
            assert (await rooms[0].wire.service.handle_async_request(request)).is_success
            assert assigned(rooms[0])[MIGRATION] == source[0]
            raise httpx.ReadTimeout("", request=request)
        return None

    source: list[Assignment | None] = []

    async def work(room: Room) -> None:
        [one] = await room.scheduler.select_destinations(HostRequest(REQUESTS[0], (ONE,)))
        source.append(one.selected.assignment)
        rooms.append(room)
        moves = msgspec.structs.replace(REQUESTS[0], ignore_hosts=frozenset({one.selected.host}))
        for given in (one.selected.assignment, None):
            lost.clear()
            generation = held(room)[ONE][1]
            claim = HandedClaim(one.selected.allocations, generation, given, consumer=MIGRATION)
            with pytest.raises(PlacementUnavailable):
                await room.scheduler.select_destinations(HostRequest(moves, (ONE,), handed={ONE: claim}))
            assert lost
            assert assigned(room) == {ONE: one.selected.assignment}

    within(hardware_cloud(2), work, lose, v1=True, filters=OPTIONS.filters, pci=OPTIONS.pci)
