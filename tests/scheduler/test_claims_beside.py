"""Claims beside what an instance holds and keeps, as in an evacuation: in the ledger."""

from typing import Any

import msgspec
import pytest

from roost.ledger.holdings import held_by_all
from roost.model.allocation import Allocations, KeptAllocations
from roost.model.inventory import Inventory
from roost.model.spec import RequestSpec, ServerGroup
from roost.model.vocabulary import SHARING_TRAIT
from roost.placement.commands.allocations import WriteAllocations
from roost.placement.errors import ConcurrentUpdate
from roost.scheduler.errors import NoValidHost
from roost.scheduler.request.scheduling_request import HostRequest
from support.clouds import AGGREGATES, Cloud, Provider, flat, holding, report, spec, uuid_of
from support.scheduling import INSTANCES, Room, Within

ONE, TWO, THREE = INSTANCES[:3]
SMALL = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}


def asked(
    of: RequestSpec, *instances: str, kept: Allocations, generation: int = 1, **more: Any
) -> HostRequest:
    """A request of which the first instance keeps allocations."""
    return HostRequest(of, instances, beside={instances[0]: KeptAllocations(kept, generation)}, **more)


def generation(room: Room, instance: str) -> int:
    return room.ledger.database.read_now(held_by_all)[instance].consumer.generation


def used(room: Room, provider: str, name: str) -> int:
    columns = room.ledger.known().inventory_columns(name)
    return columns.used.item(columns.slot(room.ledger.known().row(provider)))


def test_what_is_kept_stays_and_the_claim_is_added_in_one_write(within: Within) -> None:
    async def work(room: Room) -> None:
        [source] = await room.place()
        kept = room.held()[ONE]
        [moved] = await room.scheduler.select_destinations(
            asked(spec(ignore_hosts=frozenset({source})), ONE, kept=kept)
        )
        assert moved.selected.host != source
        assert moved.selected.allocations == {moved.selected.node: SMALL}
        assert moved.selected.generation == 2 == generation(room, ONE)
        assert room.held() == {ONE: {**kept, **moved.selected.allocations}}
        assert room.kept.runs[-1].beside == {ONE: KeptAllocations(kept, 1)}

    within(flat(2), work)


def test_what_is_kept_counts_as_used(within: Within) -> None:
    async def work(room: Room) -> None:
        await room.place(1, 0, 5)
        kept = room.held()[ONE]
        with pytest.raises(NoValidHost):
            await room.scheduler.select_destinations(asked(spec(5), ONE, kept=kept))
        assert (room.held()[ONE], generation(room, ONE)) == (kept, 1)
        [beside] = await room.scheduler.select_destinations(asked(spec(3), ONE, kept=kept))
        assert room.held()[ONE] == {beside.selected.node: {"VCPU": 8, "MEMORY_MB": 2048, "DISK_GB": 20}}

    within(flat(1), work)


def test_amounts_of_a_provider_that_both_parts_take_from_are_added(within: Within) -> None:
    shared = Provider(
        uuid_of(9), {"DISK_GB": Inventory(30)}, None, frozenset({SHARING_TRAIT}), frozenset(AGGREGATES[:1])
    )
    hosts = [
        Provider(
            uuid_of(number), {"VCPU": Inventory(8), "MEMORY_MB": Inventory(4096)}, None, frozenset(),
            frozenset(AGGREGATES[:1]),
        )
        for number in range(2)
    ]  # fmt: skip
    cloud = Cloud([shared, *hosts], [report(f"host{number}", uuid_of(number)) for number in range(2)])

    async def work(room: Room) -> None:
        [source] = await room.place()
        kept = room.held()[ONE]
        assert kept[shared.uuid] == {"DISK_GB": 10}
        elsewhere = spec(ignore_hosts=frozenset({source}))
        [moved] = await room.scheduler.select_destinations(asked(elsewhere, ONE, kept=kept))
        assert moved.selected.allocations[shared.uuid] == {"DISK_GB": 10}
        held = room.held()[ONE]
        assert held[shared.uuid] == {"DISK_GB": 20}
        assert set(held) == {shared.uuid, *(each.uuid for each in hosts)}
        assert used(room, shared.uuid, "DISK_GB") == 20

    within(cloud, work)


@pytest.mark.parametrize(
    ("held", "told", "at"),
    [(SMALL, SMALL, 2), (None, SMALL, 1), (SMALL, {"VCPU": 2}, 1)],
)
def test_an_instance_that_holds_something_else_is_a_conflict(
    within: Within, held: dict[str, int] | None, told: dict[str, int], at: int
) -> None:
    async def work(room: Room) -> None:
        if held is not None:
            await room.ledger.execute(WriteAllocations((holding(ONE, {uuid_of(0): held}),)))
        before = room.held()
        with pytest.raises(ConcurrentUpdate, match="consumer generation conflict"):
            await room.scheduler.select_destinations(
                asked(spec(), ONE, kept={uuid_of(0): told}, generation=at)
            )
        assert room.held() == before

    within(flat(2), work)


def test_instances_that_are_new_replaced_and_keep_are_placed_together(within: Within) -> None:
    async def work(room: Room) -> None:
        await room.place(2, 0, 3)
        before = room.held()
        found = await room.scheduler.select_destinations(
            HostRequest(
                spec(3),
                (ONE, TWO, THREE),
                beside={ONE: KeptAllocations(before[ONE], 1)},
                generations={TWO: 1},
            )
        )
        assert [each.selected.generation for each in found] == [2, 2, 1]
        assert [generation(room, each) for each in (ONE, TWO, THREE)] == [2, 2, 1]
        assert sum(each["VCPU"] for each in room.held()[ONE].values()) == 6
        assert [sum(each["VCPU"] for each in room.held()[name].values()) for name in (TWO, THREE)] == [3, 3]

        held = room.held()
        with pytest.raises(NoValidHost):
            await room.scheduler.select_destinations(
                HostRequest(
                    spec(5),
                    (ONE, TWO, THREE),
                    beside={ONE: KeptAllocations(held[ONE], 2)},
                    generations={TWO: 2, THREE: 1},
                )
            )
        assert room.held() == held

    within(flat(2), work)


def test_an_instance_keeps_its_membership_in_its_server_group(within: Within) -> None:
    apart = spec(group=ServerGroup("g", "anti-affinity"))

    async def work(room: Room) -> None:
        placed = await room.scheduler.select_destinations(HostRequest(apart, (ONE, TWO)))
        kept = room.held()[ONE]
        source = placed[0].selected.host
        elsewhere = msgspec.structs.replace(apart, ignore_hosts=frozenset({source}))
        [moved] = await room.scheduler.select_destinations(asked(elsewhere, ONE, kept=kept))
        assert moved.selected.host not in {each.selected.host for each in placed}
        fleet = room.ledger.known()
        assert {name: len(hosts) for name, hosts in fleet.groups.members("g").items()} == {ONE: 2, TWO: 1}
        with pytest.raises(NoValidHost):
            await room.scheduler.select_destinations(HostRequest(apart, (THREE,)))

    within(flat(3), work)


@pytest.mark.parametrize(
    "request_of",
    [
        lambda kept: HostRequest(spec(), (ONE,), beside={TWO: kept}),
        lambda kept: HostRequest(spec(), (ONE,), beside={ONE: kept}, generations={ONE: 1}),
    ],
)
def test_other_instances_and_replaced_ones_keep_nothing(within: Within, request_of: Any) -> None:
    async def work(room: Room) -> None:
        with pytest.raises(ValueError, match="keep allocations"):
            await room.scheduler.select_destinations(request_of(KeptAllocations({}, 1)))

    within(flat(1), work)
