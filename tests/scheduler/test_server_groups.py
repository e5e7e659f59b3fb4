"""Server groups in decisions: members from the fleet, conditions without filters, and the soft policies."""

from typing import get_args

import pytest

from roost.model.allocation import GroupClaim, GroupPolicy
from roost.model.spec import ServerGroup
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.scheduler import SchedulerOptions
from support.clouds import flat, uuid_of
from support.scheduling import Room, Within

GROUP = "the group"
WITHOUT_FILTERS = SchedulerOptions(filters=("ComputeFilter",))


async def member(room: Room, number: int, host: str, policy: GroupPolicy = "soft-affinity") -> None:
    """A member that somebody else has claimed."""
    table = room.scheduler.table
    node = table.nodes[table.hosts.index(host)]
    write = ConsumerWrite(
        consumer=uuid_of(0xF00 + number),
        allocations={node: {"VCPU": 1}},
        project_id="p",
        user_id="u",
        generation=None,
        group=GroupClaim(GROUP, policy),
    )
    await room.ledger.execute(WriteAllocations((write,)))


@pytest.mark.parametrize("options", [None, WITHOUT_FILTERS], ids=["filters", "no filters"])
def test_anti_affinity_counts_members_that_the_spec_does_not_name(
    within: Within, options: SchedulerOptions | None
) -> None:
    async def work(room: Room) -> None:
        await member(room, 0, "host0")
        await member(room, 1, "host2")
        group = ServerGroup(GROUP, "anti-affinity")
        assert await room.place(2, group=group) == ["host1", "host3"]
        fleet = await room.ledger.current()
        assert fleet.groups.size(GROUP) == 4

    within(flat(4), work, options)


def test_a_member_that_the_spec_and_the_fleet_know_counts_once(within: Within) -> None:
    async def work(room: Room) -> None:
        await member(room, 0, "host0")
        group = ServerGroup(GROUP, "anti-affinity", ("host0", "host1"), 2)
        assert sorted(await room.place(2, group=group)) == ["host0", "host1"]

    within(flat(2), work)


@pytest.mark.parametrize("options", [None, WITHOUT_FILTERS], ids=["filters", "no filters"])
def test_affinity_goes_to_members_that_the_spec_does_not_name(
    within: Within, options: SchedulerOptions | None
) -> None:
    async def work(room: Room) -> None:
        await member(room, 0, "host2")
        assert await room.place(2, group=ServerGroup(GROUP, "affinity")) == ["host2", "host2"]

    within(flat(4), work, options)


def test_a_refusal_without_filters_names_the_group_and_the_closest_host(within: Within) -> None:
    async def work(room: Room) -> None:
        for number in range(2):
            await member(room, number, f"host{number}")
        reason = await room.refusal(group=ServerGroup(GROUP, "anti-affinity"))
        assert reason.startswith(
            "none of 2 hosts has room for another member of the server group (anti-affinity); the closest, "
            "host0, has 1 members of the server group, and 1 may be there"
        )
        assert reason.endswith(f"it fits with max_server_per_host 2 instead of 1 in server group {GROUP}")

    within(flat(2), work, WITHOUT_FILTERS)


def test_soft_affinity_prefers_hosts_with_members_and_goes_elsewhere_if_they_are_full(within: Within) -> None:
    async def work(room: Room) -> None:
        await member(room, 0, "host2")
        group = ServerGroup(GROUP, "soft-affinity")
        hosts = await room.place(5, group=group)
        assert hosts[0] == "host2"
        assert set(hosts[hosts.count("host2") :]) == {"host0"} or "host2" in set(hosts)
        assert (await room.ledger.current()).groups.size(GROUP) == 6

    within(flat(3), work, SchedulerOptions(weighers=("ServerGroupSoftAffinityWeigher",)))


def test_soft_anti_affinity_spreads_and_doubles_up_when_there_is_nothing_else(within: Within) -> None:
    async def work(room: Room) -> None:
        await member(room, 0, "host0")
        group = ServerGroup(GROUP, "soft-anti-affinity")
        assert await room.place(5, group=group) == ["host1", "host2", "host0", "host1", "host2"]

    within(flat(3), work, SchedulerOptions(weighers=("ServerGroupSoftAntiAffinityWeigher",)))


@pytest.mark.parametrize("policy", get_args(GroupPolicy))
def test_every_claim_of_a_group_makes_a_member(within: Within, policy: GroupPolicy) -> None:
    async def work(room: Room) -> None:
        await room.place(2, group=ServerGroup(GROUP, policy))
        assert (await room.ledger.current()).groups.size(GROUP) == 2

    within(flat(3), work)
