"""Instances that move in server groups: the consumer that holds for them counts as they do."""

from typing import Any

import msgspec
import pytest

from roost.model.allocation import GroupPolicy
from roost.model.node import NodeInstance
from roost.model.spec import ServerGroup
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.scheduler import NoValidHost, SchedulerOptions
from roost.scheduler.request.scheduling_request import HostRequest
from support.clouds import Cloud, flat, spec, uuid_of
from support.scheduling import INSTANCES, Room, Within

ONE, TWO = INSTANCES[:2]
MIGRATION = uuid_of(0xB1)
WITHOUT_FILTERS = SchedulerOptions(filters=("ComputeFilter",))
BOTH = pytest.mark.parametrize("options", [None, WITHOUT_FILTERS], ids=["filters", "no filters"])


def group(policy: GroupPolicy, most: int = 1, **more: Any) -> ServerGroup:
    return ServerGroup("g", policy, max_server_per_host=most, **more)


async def put(room: Room, instance: str, host: str, of: ServerGroup) -> None:
    """A member of the group on a host."""
    [found] = await room.scheduler.select_destinations(
        HostRequest(
            spec(group=msgspec.structs.replace(of, policy="soft-affinity"), force_hosts=(host,)), (instance,)
        )
    )
    assert found.selected.host == host


async def hold(room: Room, instance: str, migration: str = MIGRATION) -> None:
    """Hand the allocations of an instance to its migration, as Nova's conductor does."""
    held = room.held()[instance]
    common = {"project_id": "project", "user_id": "user"}
    await room.ledger.execute(
        WriteAllocations(
            (
                ConsumerWrite(consumer=instance, allocations={}, generation=1, **common),  # type: ignore[arg-type]
                ConsumerWrite(consumer=migration, allocations=held, generation=None, **common),  # type: ignore[arg-type]
            )
        )
    )
    assert room.ledger.known().groups.hosts_of("g", migration)


async def move(room: Room, of: ServerGroup, *, held: bool = True, **more: Any) -> str:
    [found] = await room.scheduler.select_destinations(
        HostRequest(spec(group=of, **more), (ONE,), held_by={ONE: MIGRATION} if held else {})
    )
    return found.selected.host


@BOTH
def test_a_move_within_its_host_passes_anti_affinity(
    within: Within, options: SchedulerOptions | None
) -> None:
    apart = group("anti-affinity", hosts=("host0",))

    async def work(room: Room) -> None:
        await put(room, ONE, "host0", apart)
        await hold(room, ONE)
        with pytest.raises(NoValidHost):
            await move(room, apart, held=False)
        assert await move(room, apart) == "host0"
        assert room.kept.runs[-1].held_by == {ONE: MIGRATION}

    within(flat(1), work, options)


@BOTH
def test_a_move_to_another_host_leaves_affinity_of_the_only_member(
    within: Within, options: SchedulerOptions | None
) -> None:
    together = group("affinity")

    async def work(room: Room) -> None:
        await put(room, ONE, "host0", together)
        await hold(room, ONE)
        elsewhere = {"ignore_hosts": frozenset({"host0"})}
        with pytest.raises(NoValidHost):
            await move(room, together, held=False, **elsewhere)
        assert await move(room, together, **elsewhere) == "host1"

    within(flat(2), work, options)


@BOTH
def test_other_members_of_an_affinity_group_count(within: Within, options: SchedulerOptions | None) -> None:
    together = group("affinity")

    async def work(room: Room) -> None:
        await put(room, ONE, "host0", together)
        await put(room, TWO, "host0", together)
        await hold(room, ONE)
        with pytest.raises(NoValidHost):
            await move(room, together, ignore_hosts=frozenset({"host0"}))
        assert await move(room, together) == "host0"

    within(flat(2), work, options)


@BOTH
def test_other_members_of_an_anti_affinity_group_count(
    within: Within, options: SchedulerOptions | None
) -> None:
    apart = group("anti-affinity", 2)

    async def work(room: Room) -> None:
        await put(room, ONE, "host0", apart)
        for number in range(2):
            await put(room, uuid_of(0xC0 + number), "host1", apart)
        await hold(room, ONE)
        with pytest.raises(NoValidHost):
            await move(room, apart, ignore_hosts=frozenset({"host0"}))
        await put(room, TWO, "host0", apart)
        # Beside the migration and the other member.
        assert await move(room, apart) == "host0"

    within(flat(2), work, options)


def test_the_holder_of_another_instance_is_a_member(within: Within) -> None:
    apart = group("anti-affinity")

    async def work(room: Room) -> None:
        await put(room, ONE, "host0", apart)
        await hold(room, ONE)
        with pytest.raises(NoValidHost):
            await room.scheduler.select_destinations(
                HostRequest(spec(group=apart), (TWO,), held_by={TWO: uuid_of(0xB2)})
            )
        with pytest.raises(ValueError, match="other instances"):
            await room.scheduler.select_destinations(HostRequest(spec(), (TWO,), held_by={ONE: MIGRATION}))

    within(flat(1), work)


def test_a_refusal_is_explained_for_the_instance_that_moves(within: Within) -> None:
    apart = group("anti-affinity")

    async def work(room: Room) -> None:
        await put(room, ONE, "host0", apart)
        await put(room, TWO, "host1", apart)
        await hold(room, ONE)
        with pytest.raises(NoValidHost) as refused:
            await move(room, apart, vcpus=8)
        assert "none of 2 hosts has 8 VCPU free" in refused.value.reason
        with pytest.raises(NoValidHost) as other:
            await move(room, apart, ignore_hosts=frozenset({"host0"}))
        assert "host1, has 1 members of the server group, and 1 may be there" in other.value.reason

    within(flat(2), work, SchedulerOptions(explain_seconds=20.0))


def running(count: int, *instances: str) -> Cloud:
    """Hosts, of which the first reports instances."""
    cloud = flat(count)
    cloud.reports[0] = msgspec.structs.replace(
        cloud.reports[0], instances={each: NodeInstance() for each in instances}
    )
    return cloud


def test_a_host_that_reports_the_instance_passes_anti_affinity(within: Within) -> None:
    """Whoever has claimed it: the ledger knows no group of a claim of Nova's."""
    apart = group("anti-affinity", hosts=("host0",))

    async def work(room: Room) -> None:
        with pytest.raises(NoValidHost):
            await room.scheduler.select_destinations(HostRequest(spec(group=apart), (TWO,)))
        assert await move(room, apart, held=False) == "host0"

    within(running(1, ONE), work)


@pytest.mark.parametrize(("most", "fits"), [(2, False), (3, True)])
def test_members_that_nodes_report_count(within: Within, most: int, fits: bool) -> None:
    others = [uuid_of(0xC0 + number) for number in range(2)]
    apart = group("anti-affinity", most, hosts=("host0",), members=(*others, ONE))

    async def work(room: Room) -> None:
        if fits:
            assert await move(room, apart) == "host0"
        else:
            with pytest.raises(NoValidHost):
                await move(room, apart)
            # Without their uuids only their host is known.
            assert await move(room, msgspec.structs.replace(apart, members=())) == "host0"

    within(running(1, *others), work)


def test_reported_members_do_not_hold_an_instance_in_its_affinity_group(within: Within) -> None:
    together = group("affinity", members=(ONE,))

    async def work(room: Room) -> None:
        assert await move(room, together, ignore_hosts=frozenset({"host0"})) == "host1"

    within(running(2, ONE), work)


def test_soft_affinity_counts_reported_members(within: Within) -> None:
    others = [uuid_of(0xC0 + number) for number in range(3)]
    near = group("soft-affinity", hosts=("host0", "host1"), members=tuple(others))
    cloud = running(2)
    tell_all = {each: NodeInstance() for each in others}
    cloud.reports[1] = msgspec.structs.replace(cloud.reports[1], instances=tell_all)

    async def work(room: Room) -> None:
        assert await move(room, near) == "host1"

    within(cloud, work)
