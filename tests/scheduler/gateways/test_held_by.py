"""Instances that move in server groups, over HTTP: at Roost's service, and at one that knows no groups."""

from collections.abc import Sequence

import pytest

from roost.model.allocation import GroupClaim, GroupPolicy
from roost.model.spec import ServerGroup
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.scheduler import NoValidHost
from roost.scheduler.request.scheduling_request import HostRequest
from support.clouds import flat, spec, uuid_of
from support.wire import INSTANCES, Room, Within

ONE = INSTANCES[0]
MIGRATION, OTHER = uuid_of(0xB1), uuid_of(0xB2)
SERVICES = pytest.mark.parametrize("v1", [False, True], ids=["foreign", "roost"])


async def everybody(group: str) -> Sequence[str]:
    return (ONE, MIGRATION, OTHER)


async def member(room: Room, consumer: str, host: int) -> None:
    write = ConsumerWrite(
        consumer=consumer,
        allocations={uuid_of(host): {"VCPU": 1}},
        project_id="p",
        user_id="u",
        generation=None,
        group=GroupClaim("g", "soft-affinity"),
    )
    await room.ledger.execute(WriteAllocations((write,)))


async def move(room: Room, policy: GroupPolicy, *, held: bool = True, most: int = 1, **more: object) -> str:
    group = ServerGroup("g", policy, max_server_per_host=most)
    [found] = await room.scheduler.select_destinations(
        HostRequest(spec(group=group, **more), (ONE,), held_by={ONE: MIGRATION} if held else {})
    )
    return found.selected.host


@SERVICES
@pytest.mark.parametrize("filters", [("ComputeFilter",), ("ServerGroupAntiAffinityFilter",)])
def test_a_move_within_its_host_passes_anti_affinity(
    within: Within, v1: bool, filters: tuple[str, ...]
) -> None:
    async def work(room: Room) -> None:
        await member(room, MIGRATION, 0)
        with pytest.raises(NoValidHost):
            await move(room, "anti-affinity", held=False)
        assert await move(room, "anti-affinity") == "host0"
        posted = "POST /v1/allocations" if v1 else "POST /allocations"
        assert posted in room.wire.asked

    within(flat(1), work, members=everybody, v1=v1, filters=filters)


@SERVICES
@pytest.mark.parametrize("filters", [("ComputeFilter",), ("ServerGroupAffinityFilter",)])
def test_the_only_member_of_an_affinity_group_may_move(
    within: Within, v1: bool, filters: tuple[str, ...]
) -> None:
    elsewhere = frozenset({"host0"})

    async def work(room: Room) -> None:
        await member(room, MIGRATION, 0)
        with pytest.raises(NoValidHost):
            await move(room, "affinity", held=False, ignore_hosts=elsewhere)
        assert await move(room, "affinity", ignore_hosts=elsewhere) == "host1"

    within(flat(2), work, members=everybody, v1=v1, filters=filters)


@SERVICES
def test_other_members_count(within: Within, v1: bool) -> None:
    async def work(room: Room) -> None:
        await member(room, MIGRATION, 0)
        await member(room, OTHER, 1)
        only_host1 = frozenset({"host0", "host2"})
        with pytest.raises(NoValidHost):
            await move(room, "anti-affinity", ignore_hosts=only_host1)
        with pytest.raises(NoValidHost):
            await move(room, "affinity", ignore_hosts=frozenset({"host0", "host1"}))
        assert await move(room, "anti-affinity", most=2, ignore_hosts=only_host1) == "host1"

    within(flat(3), work, members=everybody, v1=v1)
