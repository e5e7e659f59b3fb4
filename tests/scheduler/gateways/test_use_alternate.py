"""The use of an alternate over HTTP: at the consumer's generation, with conflicts and lost answers."""

import httpx
import msgspec
import pytest

from roost.model.inventory import Inventory
from roost.model.spec import Destination
from roost.model.vocabulary import SHARING_TRAIT
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.scheduler.errors import NoAlternate, NothingClaimed, PlacementRefused, PlacementUnavailable
from roost.scheduler.selection.replacement import AlternateRequest, Replacement
from support.clouds import AGGREGATES, Cloud, Provider, flat, holding, spec, uuid_of
from support.wire import INSTANCES, Answer, Meddling, Room, Within, refused

ONE = INSTANCES[0]
GENERATION = refused(409, "placement.concurrent_update", "Inventory changed while attempting to allocate")
CONSUMER = refused(409, "placement.concurrent_update", "consumer generation conflict - expected 2 but got 1")


async def use(room: Room, placed: Destination, **more: object) -> Replacement:
    return await room.scheduler.use_alternate(
        AlternateRequest(
            spec(**more),
            placed.instance,
            placed.selected,
            placed.alternates,
            reason="no IP",
            run=placed.run,
            request_id="req-1",
        )
    )


def swaps(answers: list[Answer]) -> Meddling:
    """Answers the writes of allocations after the first, which places the instance."""
    seen: list[bool] = []

    async def meddle(request: httpx.Request) -> Answer:
        if request.method == "POST" and request.url.path == "/allocations":
            seen.append(True)
            if len(seen) > 1 and answers:
                return answers.pop(0)
        return None

    return meddle


async def generation(room: Room) -> int | None:
    held = await room.placement.allocations_of(ONE)
    return None if held is None else held.consumer.generation


def test_claim_moves_by_one_write_at_the_consumers_generation(within: Within) -> None:
    async def work(room: Room) -> None:
        [placed] = await room.place(1, 2)
        room.wire.asked.clear()
        found = await use(room, placed)
        assert found.selected is not None
        assert (found.selected.host, [each.host for each in found.alternates]) == ("host1", ["host2"])
        assert room.wire.asked.count("POST /allocations") == 1
        assert room.held() == {ONE: found.selected.allocations}
        assert await generation(room) == 2
        assert room.tries()[1:] == [("host0", "failed", "no IP"), ("host1", "pending", None)]

    within(flat(3), work)


def test_time_of_a_run_bounds_it(within: Within) -> None:
    rooms: list[Room] = []

    async def slow(request: httpx.Request) -> Answer:
        if rooms and request.url.path == "/allocation_candidates":
            rooms[0].passed += 5.0
        return None

    async def work(room: Room) -> None:
        [placed] = await room.place(1, 2)
        rooms.append(room)
        with pytest.raises(NoAlternate):
            await use(room, placed)
        assert room.tries()[2:] == [
            (host, "refused", "max_run_seconds=5 is met") for host in ("host1", "host2")
        ]
        assert room.held() == {ONE: placed.selected.allocations}

    within(flat(3), work, slow, max_run_seconds=5.0)


@pytest.mark.parametrize("answer", [GENERATION, CONSUMER], ids=["provider", "consumer"])
def test_other_writers_are_waited_for(within: Within, answer: httpx.Response) -> None:
    async def work(room: Room) -> None:
        [placed] = await room.place(1, 2)
        found = await use(room, placed)
        assert found.selected is not None
        assert found.selected.host == "host1"
        assert await generation(room) == 2

    within(flat(3), work, swaps([answer] * 3))


@pytest.mark.parametrize("answer", [GENERATION, CONSUMER], ids=["provider", "consumer"])
def test_other_writers_are_not_waited_for_without_end(within: Within, answer: httpx.Response) -> None:
    async def work(room: Room) -> None:
        [placed] = await room.place(1, 2)
        with pytest.raises(PlacementUnavailable):
            await use(room, placed)
        assert room.held() == {ONE: placed.selected.allocations}
        assert room.tries() == [("host0", "pending", None)]

    within(flat(3), work, swaps([answer] * 99))


def test_lost_answer_of_a_swap_is_found_by_the_next_call(within: Within) -> None:
    rooms: list[Room] = []

    async def lose(request: httpx.Request) -> Answer:
        if request.method == "POST" and request.url.path == "/allocations" and rooms:
            await rooms.pop().wire.service.handle_async_request(request)
            raise httpx.ReadTimeout("", request=request)
        return None

    async def work(room: Room) -> None:
        [placed] = await room.place(1, 2, vcpus=8)
        rooms.append(room)
        with pytest.raises(PlacementUnavailable):
            await use(room, placed, vcpus=8)
        found = await use(room, placed, vcpus=8)
        assert found.selected == msgspec.structs.replace(placed.alternates[0], ordinal=2, generation=2)
        assert found.alternates == placed.alternates[1:]
        assert await generation(room) == 2

    within(flat(3), work, lose)


def test_swap_that_another_caller_made_meanwhile_stands(within: Within) -> None:
    """Two callers read generation 1; the second one's write comes after the first one's."""
    rooms: list[tuple[Room, Destination]] = []

    async def other_first(request: httpx.Request) -> Answer:
        if request.method == "POST" and request.url.path == "/allocations" and rooms:
            room, placed = rooms.pop()
            other = placed.alternates[1]
            await room.placement.write_allocations(
                [
                    ConsumerWrite(
                        consumer=ONE,
                        allocations=other.allocations,
                        project_id="project",
                        user_id="user",
                        consumer_type="INSTANCE",
                        generation=1,
                    )
                ]
            )
        return None

    async def work(room: Room) -> None:
        [placed] = await room.place(1, 2)
        rooms.append((room, placed))
        found = await use(room, placed)
        assert found.selected == msgspec.structs.replace(placed.alternates[1], ordinal=3, generation=2)
        assert found.alternates == ()
        assert room.held() == {ONE: placed.alternates[1].allocations}
        assert await generation(room) == 2

    within(flat(3), work, other_first)


def test_alternates_that_no_longer_do_are_passed_over(within: Within) -> None:
    async def work(room: Room) -> None:
        [placed] = await room.place(1, 3)
        table = room.scheduler.table
        first = table.index_of_node(placed.alternates[0].node)
        assert first is not None
        table.update([msgspec.structs.replace(table.report(first), enabled=False)])
        full = placed.alternates[1].node
        await room.ledger.execute(WriteAllocations((holding(uuid_of(0xBB), {full: {"VCPU": 8}}),)))
        found = await use(room, placed)
        assert found.selected == msgspec.structs.replace(placed.alternates[2], ordinal=4, generation=2)
        assert [each.refusal for each in found.tries] == [
            "the host is disabled",
            "placement has no candidates there",
            None,
        ]

    within(flat(4), work)


def test_none_left(within: Within) -> None:
    async def work(room: Room) -> None:
        [placed] = await room.place()
        with pytest.raises(NoAlternate, match="no alternate is left"):
            await use(room, placed)
        assert room.held() == {ONE: placed.selected.allocations}
        assert room.tries()[-1] == ("host0", "failed", "no IP")

    within(flat(3), work)


def test_instance_that_holds_nothing_gets_no_claim(within: Within) -> None:
    async def work(room: Room) -> None:
        [placed] = await room.place(1, 1)
        await room.placement.delete_allocations([ONE])
        with pytest.raises(NothingClaimed):
            await use(room, placed)
        assert room.held() == {}

    within(flat(3), work)


def test_refusal_to_answer_is_no_refusal_of_a_host(within: Within) -> None:
    async def work(room: Room) -> None:
        [placed] = await room.place(1, 2)
        with pytest.raises(PlacementRefused, match="not for you"):
            await use(room, placed)
        assert room.held() == {ONE: placed.selected.allocations}

    within(flat(3), work, swaps([refused(403, "placement.undefined_code", "not for you")]))


def test_alternate_with_a_sharing_provider(within: Within) -> None:
    pool = Provider(
        uuid_of(0xE0),
        {"DISK_GB": Inventory(100)},
        traits=frozenset({SHARING_TRAIT}),
        aggregates=frozenset(AGGREGATES[:1]),
    )
    cloud = flat(2)
    for provider in cloud.providers:
        del provider.inventories["DISK_GB"]
        provider.aggregates = frozenset(AGGREGATES[:1])
    shared = Cloud([pool, *cloud.providers], cloud.reports)

    async def work(room: Room) -> None:
        [placed] = await room.place(1, 1)
        found = await use(room, placed)
        assert found.selected is not None
        assert found.selected.allocations == placed.alternates[0].allocations
        assert room.held() == {ONE: found.selected.allocations}

    within(shared, work)
