"""The condition of a claim that names a server group, and the group as a sticky attribute of consumers."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from roost.ledger import Ledger
from roost.ledger.holdings import held_by_all
from roost.model.allocation import GroupClaim, GroupPolicy
from roost.placement.commands.allocations import ConsumerWrite, DeleteAllocations, WriteAllocations
from roost.placement.commands.traits_and_aggregates import SetTraits
from roost.placement.errors import GroupRefused
from support.ledgers import findings_in, host, loaded, opened, run, whole

RED = "red"


pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Three hosts, one of them with a child, and a sharing provider. It is verified after the test."""
    path = tmp_path / "ledger.db"
    async with opened(path) as [ledger]:
        await run(
            ledger,
            *host("h1", VCPU=8),
            *host("h1-numa", "h1", MEMORY_MB=64),
            *host("h2", VCPU=8),
            *host("h3", VCPU=8),
            *host("nfs", DISK_GB=100),
            SetTraits("nfs", frozenset(["MISC_SHARES_VIA_AGGREGATE"]), None, add_custom=False),
        )
        yield ledger
        assert whole(await ledger.current()) == loaded(ledger.database)
    assert findings_in(path) == []


def claim(policy: GroupPolicy, most: int = 1, held_by: str | None = None) -> GroupClaim:
    return GroupClaim(RED, policy, most, held_by)


def write(
    consumer: str, *providers: str, group: GroupClaim | None = None, holds: Mapping[str, str] = {}
) -> ConsumerWrite:
    allocations = {each: {holds.get(each, "VCPU"): 1} for each in providers}
    return ConsumerWrite(consumer=consumer, allocations=allocations, project_id="p", user_id="u", group=group)


async def put(ledger: Ledger, *writes: ConsumerWrite) -> None:
    await ledger.execute(WriteAllocations(writes))


async def hosts_of(ledger: Ledger, group: str = RED) -> dict[str, set[str]]:
    """The members of a group, each with the names of its hosts; the same in the tables."""
    fleet = await ledger.current()
    members = fleet.groups.members(group)
    held = ledger.database.read_now(held_by_all)
    assert {uuid for uuid, each in held.items() if each.consumer.group == group} == members.keys()
    return {name: {fleet.uuid(row) for row in rows} for name, rows in members.items()}


async def test_anti_affinity_refuses_a_host_with_a_member(ledger: Ledger) -> None:
    await put(ledger, write("a", "h1", group=claim("anti-affinity")))
    with pytest.raises(GroupRefused) as refused:
        await put(ledger, write("b", "h1", group=claim("anti-affinity")))
    error = refused.value
    assert (error.group, error.host, error.members) == (RED, "h1", ("a",))
    assert str(error) == (
        "Server group red (anti-affinity, max_server_per_host 1) refuses consumer b: host name of h1 (h1) "
        "has the members a."
    )
    await put(ledger, write("b", "h2", group=claim("anti-affinity")))
    assert await hosts_of(ledger) == {"a": {"h1"}, "b": {"h2"}}


async def test_max_per_host_is_the_most_members_of_a_host(ledger: Ledger) -> None:
    await put(ledger, write("a", "h1", group=claim("anti-affinity", 2)))
    await put(ledger, write("b", "h1", group=claim("anti-affinity", 2)))
    with pytest.raises(GroupRefused, match="has the members a, b"):
        await put(ledger, write("c", "h1", group=claim("anti-affinity", 2)))


async def test_affinity_refuses_a_host_without_a_member(ledger: Ledger) -> None:
    await put(ledger, write("a", "h2", group=claim("affinity")))
    with pytest.raises(GroupRefused) as refused:
        await put(ledger, write("b", "h1", group=claim("affinity")))
    assert (refused.value.group, refused.value.host, refused.value.members) == (RED, "h1", ("a",))
    assert "has no member, the members a are on name of h2 (h2)" in str(refused.value)
    await put(ledger, write("b", "h2", group=claim("affinity")))
    assert await hosts_of(ledger) == {"a": {"h2"}, "b": {"h2"}}


@pytest.mark.parametrize("policy", ["soft-affinity", "soft-anti-affinity"])
async def test_soft_policies_refuse_nothing(ledger: Ledger, policy: GroupPolicy) -> None:
    for name, where in (("a", "h1"), ("b", "h1"), ("c", "h2")):
        await put(ledger, write(name, where, group=claim(policy)))
    assert await hosts_of(ledger) == {"a": {"h1"}, "b": {"h1"}, "c": {"h2"}}


async def test_a_host_is_a_tree_and_a_sharing_provider_is_none(ledger: Ledger) -> None:
    classes = {"h1-numa": "MEMORY_MB", "nfs": "DISK_GB"}
    condition = claim("anti-affinity")
    await put(ledger, write("a", "h1-numa", "nfs", group=condition, holds=classes))
    await put(ledger, write("b", "h2", "nfs", group=condition, holds=classes))
    with pytest.raises(GroupRefused, match=r"host name of h1 \(h1\) has the members a"):
        await put(ledger, write("c", "h1", group=condition))
    assert await hosts_of(ledger) == {"a": {"h1"}, "b": {"h2"}}


async def test_the_writes_of_one_request_are_judged_together(ledger: Ledger) -> None:
    with pytest.raises(GroupRefused):
        await put(ledger, *(write(name, "h1", group=claim("anti-affinity")) for name in "ab"))
    with pytest.raises(GroupRefused):
        await put(ledger, *(write(name, f"h{n}", group=claim("affinity")) for n, name in enumerate("ab", 1)))
    assert await hosts_of(ledger) == {}
    await put(ledger, *(write(name, "h1", group=claim("affinity")) for name in "ab"))
    # One member leaves the host in the request in which another one arrives.
    await put(ledger, write("a"), write("c", "h1", group=claim("anti-affinity", 2)))
    assert await hosts_of(ledger) == {"b": {"h1"}, "c": {"h1"}}


async def test_a_member_that_stays_where_it_is_passes(ledger: Ledger) -> None:
    for name in "ab":
        await put(ledger, write(name, "h1", group=claim("soft-affinity")))
    # The group is broken for the hard policy, but a write in place makes nothing worse.
    await put(ledger, write("a", "h1", group=claim("anti-affinity")))
    with pytest.raises(GroupRefused):
        await put(ledger, write("c", "h1", group=claim("anti-affinity")))


async def test_the_only_member_of_an_affinity_group_may_move(ledger: Ledger) -> None:
    await put(ledger, write("a", "h1", group=claim("affinity")))
    await put(ledger, write("a", "h2", group=claim("affinity")))
    assert await hosts_of(ledger) == {"a": {"h2"}}


async def test_the_group_is_kept_by_writes_that_name_none_and_gone_with_the_consumer(ledger: Ledger) -> None:
    await put(ledger, write("a", "h1", group=claim("anti-affinity")))
    await put(ledger, write("a", "h2"))
    assert await hosts_of(ledger) == {"a": {"h2"}}
    await put(ledger, write("a", "h2", group=GroupClaim("blue", "affinity")))
    assert (await hosts_of(ledger), await hosts_of(ledger, "blue")) == ({}, {"a": {"h2"}})
    await ledger.execute(DeleteAllocations("a"))
    await put(ledger, write("a", "h1"))
    assert await hosts_of(ledger, "blue") == {}


async def test_a_migration_carries_the_group_there_and_back(ledger: Ledger) -> None:
    await put(ledger, write("instance", "h1", group=claim("anti-affinity")))
    # As Nova does: the migration takes over the allocations of the instance, which has none for a moment.
    await put(ledger, write("migration", "h1"), write("instance"))
    assert await hosts_of(ledger) == {"migration": {"h1"}}
    with pytest.raises(GroupRefused, match="has the members migration"):
        await put(ledger, write("other", "h1", group=claim("anti-affinity")))
    await put(ledger, write("instance", "h1"), write("migration"))
    assert await hosts_of(ledger) == {"instance": {"h1"}}
    # In one request: the migration takes over the source, the instance goes on to the destination.
    await put(ledger, write("migration", "h1"), write("instance", "h2", group=claim("anti-affinity")))
    assert await hosts_of(ledger) == {"migration": {"h1"}, "instance": {"h2"}}
    await ledger.execute(DeleteAllocations("migration"))
    assert await hosts_of(ledger) == {"instance": {"h2"}}


async def test_a_consumer_that_holds_for_another_one_is_no_other_member(ledger: Ledger) -> None:
    await put(ledger, write("migration", "h1", group=claim("anti-affinity")))
    for policy, where in (("anti-affinity", "h1"), ("affinity", "h2")):
        with pytest.raises(GroupRefused, match="migration"):
            await put(ledger, write("instance", where, group=claim(policy)))
        await put(ledger, write("instance", where, group=claim(policy, held_by="migration")))
        await put(ledger, write("instance"))
    # On the host that it holds the instance is already, whoever else is there.
    await put(ledger, write("other", "h1", group=claim("soft-affinity")))
    await put(ledger, write("instance", "h1", group=claim("anti-affinity", held_by="migration")))
    await put(ledger, write("instance"))
    with pytest.raises(GroupRefused) as refused:
        await put(ledger, write("instance", "h2", group=claim("affinity", held_by="migration")))
    assert refused.value.members == ("other",)
    await put(ledger, write("third", "h2", group=claim("soft-affinity")))
    with pytest.raises(GroupRefused) as refused:
        await put(ledger, write("instance", "h2", group=claim("anti-affinity", held_by="migration")))
    assert refused.value.members == ("third",)


async def test_a_consumer_that_is_no_member_holds_for_nobody(ledger: Ledger) -> None:
    await put(ledger, write("a", "h1", group=claim("affinity")))
    await put(ledger, write("migration", "h2"))
    with pytest.raises(GroupRefused):
        await put(ledger, write("b", "h2", group=claim("affinity", held_by="migration")))


async def test_a_new_consumer_beside_a_member_does_not_join(ledger: Ledger) -> None:
    await put(ledger, write("a", "h1", group=claim("anti-affinity")))
    await put(ledger, write("b", "h1"), write("a", "h1"))
    assert await hosts_of(ledger) == {"a": {"h1"}}


async def test_a_provider_that_begins_to_share_is_no_host_any_longer(ledger: Ledger) -> None:
    classes = {"h1-numa": "MEMORY_MB"}
    await put(ledger, write("a", "h1", "h2", group=claim("soft-affinity"), holds=classes))
    assert await hosts_of(ledger) == {"a": {"h1", "h2"}}
    await ledger.execute(SetTraits("h2", frozenset(["MISC_SHARES_VIA_AGGREGATE"]), None, add_custom=False))
    assert await hosts_of(ledger) == {"a": {"h1"}}
