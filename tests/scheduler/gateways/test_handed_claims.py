"""Claims that hand what an instance holds to its migration: in the ledger, and over HTTP at two services."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roost.ledger import Held
from roost.ledger.holdings import held_by_all
from roost.model.allocation import Allocations, GroupPolicy, HandedClaim, KeptAllocations
from roost.model.assignment import Assignment
from roost.model.spec import ServerGroup
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.placement.errors import ConcurrentUpdate
from roost.scheduler import NoValidHost, SchedulerOptions
from roost.scheduler.errors import NoAlternate
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.replacement import AlternateRequest
from support import scheduling, wire
from support.clouds import Cloud, filled, flat, holding, spec, uuid_of
from support.hardware_clouds import OPTIONS, REQUESTS, check_assignments, hardware_cloud
from support.wire import INSTANCES

ONE, TWO, THREE, FOUR = INSTANCES
MIGRATION, OTHER = uuid_of(0xB1), uuid_of(0xB2)

Room = scheduling.Room | wire.Room
Inside = Callable[..., None]
GATEWAYS = ("ledger", "roost", "foreign")


async def everybody(group: str) -> Sequence[str]:
    """The members of each group as Nova knows them, for a service without groups."""
    return INSTANCES


@pytest.fixture(params=GATEWAYS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def inside(tmp_path: Path, empty_database: Path, kind: str) -> Inside:
    def run(
        cloud: Cloud, work: Callable[[Any], Awaitable[None]], options: SchedulerOptions | None = None
    ) -> None:
        async def main() -> None:
            async with filled(tmp_path / "roost.db", cloud, empty_database) as ledger:
                if kind == "ledger":
                    await work(scheduling.Room(ledger, cloud, options))
                    return
                v1 = kind == "roost"
                more = {} if options is None else {"filters": options.filters, "pci": options.pci}
                room = wire.Room(ledger, cloud, wire.nothing, None, everybody, v1=v1, **more)
                async with room.placement:
                    await work(room)

        asyncio.run(main())

    return run


def holdings(room: Room) -> dict[str, Held]:
    return room.ledger.database.read_now(held_by_all)


def handed(room: Room, instance: str = ONE, migration: str = MIGRATION) -> dict[str, HandedClaim]:
    """All that an instance holds, to be handed to its migration."""
    held = holdings(room)[instance]
    return {
        instance: HandedClaim(
            held.allocations, held.consumer.generation, held.consumer.assignment, consumer=migration
        )
    }


async def placed(room: Room, instance: str, host: int, of: ServerGroup | None = None, **more: Any) -> None:
    """An instance on a host, whatever the policy of its group."""
    group = None if of is None else msgspec.structs.replace(of, policy="soft-affinity")
    await room.scheduler.select_destinations(
        HostRequest(spec(group=group, force_hosts=(f"host{host}",), **more), (instance,))
    )


async def moved(
    room: Room, instance: str = ONE, *, at: dict[str, HandedClaim] | None = None, **more: Any
) -> str:
    """The host that an instance is moved to."""
    [found] = await room.scheduler.select_destinations(
        HostRequest(spec(**more), (instance,), handed=handed(room, instance) if at is None else at)
    )
    return found.selected.host


def test_the_migration_takes_all_and_the_instance_the_new_host_alone(inside: Inside) -> None:
    async def work(room: Room) -> None:
        await placed(room, ONE, 0)
        before = handed(room)
        [found] = await room.scheduler.select_destinations(
            HostRequest(spec(2, ignore_hosts=frozenset({"host0"})), (ONE,), handed=before)
        )
        assert found.selected.host == "host1"
        assert found.selected.allocations == {uuid_of(1): {"VCPU": 2, "MEMORY_MB": 1024, "DISK_GB": 10}}
        assert found.selected.generation == 2
        held = holdings(room)
        assert {name: (each.allocations, each.consumer.generation) for name, each in held.items()} == {
            ONE: (found.selected.allocations, 2),
            MIGRATION: (before[ONE].allocations, 1),
        }
        assert {name: each.consumer.consumer_type for name, each in held.items()} == {
            ONE: "INSTANCE",
            MIGRATION: "MIGRATION",
        }
        owner = held[MIGRATION].consumer
        assert (owner.project_id, owner.user_id) == ("project", "user")
        assert room.kept.runs[-1].handed == before

    inside(flat(2), work)


def test_what_is_handed_over_counts_as_used(inside: Inside) -> None:
    async def work(room: Room) -> None:
        await placed(room, ONE, 0, vcpus=5)
        before = holdings(room)
        with pytest.raises(NoValidHost):
            await moved(room, vcpus=4)
        assert holdings(room) == before
        assert await moved(room, vcpus=3) == "host0"
        held = holdings(room)
        assert held[ONE].allocations[uuid_of(0)]["VCPU"] == 3
        assert held[MIGRATION].allocations == before[ONE].allocations

    inside(flat(1), work)


def test_one_host_may_hold_equal_claims_of_both(inside: Inside) -> None:
    async def work(room: Room) -> None:
        await placed(room, ONE, 0, ServerGroup("g", "anti-affinity"))
        assert await moved(room, group=ServerGroup("g", "anti-affinity")) == "host0"
        held = holdings(room)
        assert held[ONE].allocations == held[MIGRATION].allocations

    inside(flat(1), work)


@pytest.mark.parametrize("why", ["generation", "nothing", "migration"])
def test_what_was_changed_since_is_a_conflict(inside: Inside, why: str) -> None:
    async def work(room: Room) -> None:
        await placed(room, ONE, 0)
        at = handed(room)
        if why == "generation":
            at = {ONE: msgspec.structs.replace(at[ONE], generation=2)}
        elif why == "nothing":
            await room.ledger.execute(
                WriteAllocations((ConsumerWrite(consumer=ONE, allocations={}, project_id="p", user_id="u"),))
            )
        else:
            await room.ledger.execute(WriteAllocations((holding(MIGRATION, {uuid_of(1): {"VCPU": 1}}),)))
        before = holdings(room)
        with pytest.raises(ConcurrentUpdate, match="consumer generation conflict"):
            await moved(room, at=at)
        assert holdings(room) == before

    inside(flat(2), work)


@pytest.mark.parametrize("kind", ["ledger"], indirect=True)
def test_other_allocations_at_the_same_generation_are_a_conflict(inside: Inside) -> None:
    """As after a restored backup. Over HTTP the generation alone tells."""

    async def work(room: Room) -> None:
        await placed(room, ONE, 0)
        before = holdings(room)
        at = {ONE: HandedClaim({uuid_of(1): {"VCPU": 1}}, 1, consumer=MIGRATION)}
        with pytest.raises(ConcurrentUpdate, match="holds other allocations"):
            await moved(room, at=at)
        assert holdings(room) == before

    inside(flat(2), work)


def test_the_same_request_claims_once(inside: Inside) -> None:
    async def work(room: Room) -> None:
        await placed(room, ONE, 0)
        at = handed(room)
        await moved(room, at=at)
        once = holdings(room)
        with pytest.raises(ConcurrentUpdate, match="consumer generation conflict"):
            await moved(room, at=at)
        assert holdings(room) == once

    inside(flat(3), work)


def test_a_refused_run_leaves_all_as_it_was(inside: Inside) -> None:
    async def work(room: Room) -> None:
        await placed(room, ONE, 0, vcpus=5)
        before = holdings(room)
        with pytest.raises(NoValidHost):
            await room.scheduler.select_destinations(HostRequest(spec(5), (ONE, TWO), handed=handed(room)))
        assert holdings(room) == before
        found = await room.scheduler.select_destinations(
            HostRequest(spec(5), (ONE, TWO), min_count=1, handed=handed(room))
        )
        assert [each.instance for each in found] == [ONE]

    inside(flat(2), work)


def test_several_instances_move_together(inside: Inside) -> None:
    async def work(room: Room) -> None:
        for number, instance in enumerate((ONE, TWO)):
            await placed(room, instance, number)
        before = {**handed(room), **handed(room, TWO, OTHER)}
        found = await room.scheduler.select_destinations(
            HostRequest(spec(ignore_hosts=frozenset({"host0", "host1"})), (ONE, TWO, THREE), handed=before)
        )
        assert [each.selected.generation for each in found] == [2, 2, 1]
        held = holdings(room)
        assert held.keys() == {ONE, TWO, THREE, MIGRATION, OTHER}
        assert held[MIGRATION].allocations == before[ONE].allocations
        assert held[OTHER].allocations == before[TWO].allocations

    inside(flat(4), work)


FILTERS = SchedulerOptions()
CONDITION = SchedulerOptions(filters=("ComputeFilter",))
JUDGES = pytest.mark.parametrize("options", [FILTERS, CONDITION], ids=["filter", "condition"])


def group(policy: GroupPolicy, most: int = 1) -> ServerGroup:
    return ServerGroup("g", policy, max_server_per_host=most)


@JUDGES
@pytest.mark.parametrize("mover", range(3))
def test_each_of_as_many_members_as_hosts_less_one_moves(
    inside: Inside, mover: int, options: SchedulerOptions
) -> None:
    apart = group("anti-affinity")

    async def work(room: Room) -> None:
        for number in range(3):
            await placed(room, INSTANCES[number], number, apart)
        elsewhere = frozenset({f"host{mover}"})
        assert await moved(room, INSTANCES[mover], group=apart, ignore_hosts=elsewhere) == "host3"

    inside(flat(4), work, options)


@JUDGES
def test_the_only_member_of_an_affinity_group_moves(inside: Inside, options: SchedulerOptions) -> None:
    together = group("affinity")

    async def work(room: Room) -> None:
        await placed(room, ONE, 0, together)
        assert await moved(room, group=together, ignore_hosts=frozenset({"host0"})) == "host1"

    inside(flat(2), work, options)


@JUDGES
def test_other_members_of_an_affinity_group_hold_it(inside: Inside, options: SchedulerOptions) -> None:
    together = group("affinity")

    async def work(room: Room) -> None:
        await placed(room, ONE, 0, together)
        await placed(room, TWO, 0, together)
        with pytest.raises(NoValidHost):
            await moved(room, group=together, ignore_hosts=frozenset({"host0"}))
        assert await moved(room, group=together) == "host0"

    inside(flat(2), work, options)


@pytest.mark.parametrize("kind", ["ledger", "roost"], indirect=True)
def test_for_others_a_member_that_moves_is_on_both_hosts(inside: Inside) -> None:
    apart = group("anti-affinity")

    async def work(room: Room) -> None:
        await placed(room, ONE, 0, apart)
        assert await moved(room, group=apart, ignore_hosts=frozenset({"host0"})) == "host1"
        members = room.ledger.known().groups.members("g")
        assert {name: len(hosts) for name, hosts in members.items()} == {ONE: 1, MIGRATION: 1}
        with pytest.raises(NoValidHost):
            await room.scheduler.select_destinations(HostRequest(spec(group=apart), (TWO,)))

    inside(flat(2), work)


def test_a_member_leaves_a_host_that_has_too_many(inside: Inside) -> None:
    apart = group("anti-affinity")

    async def work(room: Room) -> None:
        await placed(room, ONE, 0, apart)
        await placed(room, TWO, 0, apart)
        elsewhere = frozenset({"host0"})
        assert await moved(room, group=apart, ignore_hosts=elsewhere) == "host1"

    inside(flat(2), work)


@pytest.mark.parametrize("kind", ["ledger", "roost"], indirect=True)
def test_a_member_joins_the_others_of_its_affinity_group(inside: Inside) -> None:
    together = group("affinity")

    async def work(room: Room) -> None:
        await placed(room, ONE, 0, together)
        await placed(room, TWO, 1, together)
        assert await moved(room, group=together, ignore_hosts=frozenset({"host0"})) == "host1"

    inside(flat(3), work)


@pytest.mark.parametrize("kind", ["ledger", "roost"], indirect=True)
def test_membership_follows_without_a_group_in_the_request(inside: Inside) -> None:
    async def work(room: Room) -> None:
        await placed(room, ONE, 0, group("anti-affinity"))
        await moved(room, ignore_hosts=frozenset({"host0"}))
        members = room.ledger.known().groups.members("g")
        assert members.keys() == {ONE, MIGRATION}

    inside(flat(2), work)


@pytest.mark.parametrize("kind", ["ledger", "roost"], indirect=True)
@JUDGES
def test_an_alternate_is_judged_with_the_migration_as_the_instance(
    inside: Inside, options: SchedulerOptions
) -> None:
    together = group("affinity")

    async def work(room: Room) -> None:
        await placed(room, ONE, 0, together)
        asked = spec(group=together, ignore_hosts=frozenset({"host0"}))
        [found] = await room.scheduler.select_destinations(HostRequest(asked, (ONE,), 1, handed=handed(room)))
        wanted = AlternateRequest(asked, ONE, found.selected, found.alternates, "no disk")
        if options is CONDITION:
            with pytest.raises(NoAlternate):
                await room.scheduler.use_alternate(wanted)
        retried = await room.scheduler.use_alternate(msgspec.structs.replace(wanted, held_by=MIGRATION))
        assert retried.selected is not None
        assert (retried.selected.host, retried.selected.generation) == (found.alternates[0].host, 3)
        held = holdings(room)
        assert held[ONE].allocations == retried.selected.allocations
        assert held[MIGRATION].allocations.keys() == {uuid_of(0)}

    inside(flat(3), work, options)


@pytest.mark.parametrize("target", [0, 1])
@pytest.mark.parametrize("kind", ["ledger", "roost"], indirect=True)
def test_the_migration_takes_the_hardware_and_the_instance_gets_its_own(inside: Inside, target: int) -> None:
    """On its own host too, where both have claims of equal amounts."""

    async def work(room: Room) -> None:
        pinned = REQUESTS[0]
        [before] = await room.scheduler.select_destinations(
            HostRequest(msgspec.structs.replace(pinned, force_hosts=("host0",)), (ONE,))
        )
        [found] = await room.scheduler.select_destinations(
            HostRequest(
                msgspec.structs.replace(pinned, force_hosts=(f"host{target}",)), (ONE,), handed=handed(room)
            )
        )
        assigned = {name: each.consumer.assignment for name, each in holdings(room).items()}
        assert assigned == {ONE: found.selected.assignment, MIGRATION: before.selected.assignment}
        assert found.selected.assignment != before.selected.assignment
        check_assignments(each for each in assigned.values() if isinstance(each, Assignment))

    inside(hardware_cloud(2), work, OPTIONS)


HELD: Allocations = {uuid_of(0): {"VCPU": 1}}


HANDED = {ONE: HandedClaim(HELD, 1, consumer=MIGRATION)}


@pytest.mark.parametrize(
    "more",
    [
        {"handed": {TWO: HANDED[ONE]}},
        {"handed": {ONE: HandedClaim(HELD, 1, consumer=ONE)}},
        {"handed": HANDED, "generations": {ONE: 1}},
        {"handed": HANDED, "beside": {ONE: KeptAllocations(HELD, 1)}},
        {"handed": HANDED, "held_by": {ONE: OTHER}},
    ],
)
def test_a_request_that_contradicts_itself_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"hand over|consumers of their own"):
        HostRequest(spec(), (ONE,), **more).check()


def test_two_instances_have_two_migrations() -> None:
    both = {each: HandedClaim(HELD, 1, consumer=MIGRATION) for each in (ONE, TWO)}
    with pytest.raises(ValueError, match="consumers of their own"):
        HostRequest(spec(), (ONE, TWO), handed=both).check()


@pytest.mark.parametrize("kind", ["ledger", "roost"], indirect=True)
def test_a_refusal_is_explained_for_the_instance_that_moves(inside: Inside) -> None:
    apart = group("anti-affinity")

    async def work(room: Room) -> None:
        await placed(room, ONE, 0, apart)
        await placed(room, TWO, 1, apart)
        with pytest.raises(NoValidHost) as refused:
            await moved(room, group=apart, vcpus=8)
        assert refused.value.reasons is not None
        # The room that the instance itself holds is used; its membership does not rule out its host.
        assert "8 VCPU" in refused.value.reasons.sentence or "candidates" in refused.value.reasons.sentence
        with pytest.raises(NoValidHost) as other:
            await moved(room, group=apart, ignore_hosts=frozenset({"host0"}))
        assert other.value.reasons is not None
        assert "host1, has 1 members of the server group" in other.value.reasons.sentence

    inside(flat(2), work, SchedulerOptions(explain_seconds=20.0))
