"""Which alternates a failed build may move to: each is checked again on the present state."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
import pytest
import sqlalchemy as sa

from roost.conductor.cell_conductor import KIND, CellConductor
from roost.model.instance import ASSIGNED, ERROR, FAILED, Instance
from roost.model.record import FAILED as BUILD_FAILED
from roost.model.record import PENDING, REFUSED
from roost.model.request import RequestGroup
from roost.placement.commands.allocations import ConsumerWrite
from roost.state.cell_database.conductor_work import reassign_instance
from roost.state.cell_database.tables import instances
from roost.state.leases import Lease, leases_of_kind, vacate_leases
from roost.storage import DatabaseUnavailable
from support.conducting import NOW, VCPUS, Conductors, conducting, intercept, request

ONE = "i0"


@dataclass
class Moved:
    """A conductor whose instance has failed, and its hosts: the failed one, then the alternates."""

    now: Conductors
    hosts: list[str]

    async def report(self, host: str, **facts: object) -> None:
        [old] = [each for each in await self.now.cells["cell1"].nodes() if each.host == host]
        await self.now.cells["cell1"].heartbeat([msgspec.structs.replace(old, **facts)])
        self.now.scheduler.table.update([msgspec.structs.replace(old, **{"last_seen": NOW, **facts})])

    async def instance(self) -> Instance:
        return (await self.now.instances())[ONE]

    def attempts(self) -> list[tuple[str, str, str | None]]:
        return [(each.host, each.result, each.reason) for each in self.now.records.attempts]


def within(tmp_path, work: Callable[[Moved], Awaitable[None]], **spec: object) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await now.run(request(ignore_hosts=frozenset("de"), **spec))
            one = (await now.instances())[ONE]
            hosts = [one.host or "", *(other.host for other in one.alternates)]
            await now.build([hosts[0]])
            assert (await now.instances())[ONE].state == FAILED
            now.records.attempts.clear()
            await work(Moved(now, hosts))
            await now.check()

    asyncio.run(run())


async def disable(moved: Moved, host: str) -> str:
    await moved.report(host, enabled=False)
    return "the host is disabled"


async def silence(moved: Moved, host: str) -> str:
    await moved.report(host, last_seen=NOW - 61.0)
    return "the host has not been seen for 60 seconds"


async def fill(moved: Moved, host: str) -> str:
    write = ConsumerWrite(
        consumer=f"other on {host}",
        allocations={f"node-{host}": {"VCPU": VCPUS}},
        project_id="other",
        user_id="other",
    )
    await moved.now.placement.write_allocations([write])
    return (
        "Unable to allocate inventory: Unable to create allocation for 'VCPU' on resource provider "
        f"'node-{host}'. The requested amount would exceed the capacity: 1 more, where {VCPUS} of {VCPUS} "
        "are in use"
    )


async def forbid(moved: Moved, host: str) -> str:
    await moved.now.placement.set_traits(f"node-{host}", ["COMPUTE_STATUS_DISABLED"])
    return "placement has no candidates there: its traits or aggregates no longer meet the request"


def test_the_mapping_from_groups_to_providers_is_that_of_the_claim_after_a_move_too(tmp_path) -> None:
    """An accelerator's driver finds by it which device serves which group of the profile."""

    async def work(moved: Moved) -> None:
        for host in moved.hosts[:2]:
            selection = (await moved.instance()).selection
            assert selection is not None
            assert (selection.host, selection.mappings["device_profile_0"]) == (host, [f"node-{host}"])
            await moved.now.step()

    group = RequestGroup({"VCPU": 1}, "device_profile_0")
    within(tmp_path, work, requested_resources=(group,))


SPOILT = {"disabled": disable, "dead": silence, "full": fill, "disabled in placement": forbid}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_alternate_that_no_longer_does_is_passed_over_with_the_reason(tmp_path, spoil) -> None:
    async def work(moved: Moved) -> None:
        first, second, third = moved.hosts
        reason = await spoil(moved, second)
        await moved.now.step()
        instance = await moved.instance()
        assert (instance.state, instance.host, instance.alternates) == (ASSIGNED, third, ())
        assert moved.attempts() == [
            (first, BUILD_FAILED, "no IP"),
            (second, REFUSED, reason),
            (third, PENDING, None),
        ]
        assert instance.selection is not None
        assert (await moved.now.claims())[ONE] == instance.selection.allocations

    within(tmp_path, work)


def test_when_none_is_left_all_reasons_are_told_and_the_claim_is_freed(tmp_path) -> None:
    async def work(moved: Moved) -> None:
        first, second, third = moved.hosts
        await disable(moved, second)
        await silence(moved, third)
        await moved.now.step()
        instance = await moved.instance()
        assert (instance.state, instance.selection) == (ERROR, None)
        assert instance.reason == (
            f"Exceeded maximum number of retries after 1 attempts: attempt 1 on {first}: no IP; "
            f"alternate {second}: the host is disabled; "
            f"alternate {third}: the host has not been seen for 60 seconds"
        )
        assert moved.attempts() == [
            (first, BUILD_FAILED, "no IP"),
            (second, REFUSED, "the host is disabled"),
            (third, REFUSED, "the host has not been seen for 60 seconds"),
        ]
        assert await moved.now.used() == 0

    within(tmp_path, work)


def test_filters_are_asked_again(tmp_path) -> None:
    async def work(moved: Moved) -> None:
        _, second, third = moved.hosts
        aggregates = moved.now.aggregates
        zone = await aggregates.create("zone", {"availability_zone": "elsewhere"})
        await aggregates.change_members(zone.uuid, [second], [])
        await moved.now.feed.refresh()
        await moved.now.step()
        assert (await moved.instance()).host == third
        assert "rules it out" in str(moved.attempts()[1][2])

    within(tmp_path, work, availability_zone="nova")


def test_claim_that_was_moved_before_a_crash_is_taken_up(tmp_path) -> None:
    """The swap is durable, the assignment is not; the alternate is full by now, of the instance itself."""

    async def work(moved: Moved) -> None:
        _, second, _ = moved.hosts
        cell = moved.now.cells["cell1"]
        failures = [DatabaseUnavailable("gone")]

        async def lost(work, write):
            if failures:
                raise failures.pop()
            return await write(work)

        intercept(cell, reassign_instance, lost)
        with pytest.raises(DatabaseUnavailable):
            await moved.now.step()
        await disable(moved, second)
        await moved.now.step()
        assert (await moved.instance()).host == second
        held = await moved.now.placement.allocations_of(ONE)
        assert held is not None
        assert held.consumer.generation == 2, "it was moved once more"

    within(tmp_path, work, vcpus=VCPUS)


def test_conductor_that_was_stopped_moves_no_instance_that_another_one_took_over(tmp_path) -> None:
    async def work(moved: Moved) -> None:
        _, second, third = moved.hosts
        stopped = moved.now.of_cell["cell1"]
        conductor = moved.now.conductor_of("cell1", "second")
        use = moved.now.scheduler.use_alternate
        waiting: list[asyncio.Event] = [asyncio.Event()]

        async def late(*arguments, **named):
            if waiting:
                event = waiting.pop()
                await event.wait()
            return await use(*arguments, **named)

        event = waiting[0]
        moved.now.scheduler.use_alternate = late  # type: ignore[method-assign]
        stale = asyncio.create_task(stopped.step())
        while waiting:
            await asyncio.sleep(0)
        await conductor.step()
        assert (await moved.instance()).attempt == 1, "the instance has an owner"
        await moved.now.cells["cell1"].write(vacate_leases([await lease_of(moved, stopped)]))
        await conductor.step()
        assert (await moved.instance()).host == second
        await moved.now.build([second])
        await conductor.step()
        assert (await moved.instance()).host == third
        event.set()
        await stale
        instance = await moved.instance()
        assert (instance.host, instance.attempt, instance.state) == (third, 3, ASSIGNED)
        assert await moved.now.claims() == {ONE: {instance.node: {"VCPU": 1}}}

    within(tmp_path, work)


async def lease_of(moved: Moved, conductor: CellConductor) -> Lease:
    leases = await moved.now.cells["cell1"].read(leases_of_kind(KIND))
    [held] = [lease for lease in leases if lease.holder == conductor.work.tenure.holder]
    return held


def test_late_swap_of_an_instance_that_has_ended_claims_nothing(tmp_path) -> None:
    async def work(moved: Moved) -> None:
        conductor = moved.now.of_cell["cell1"]
        use = moved.now.scheduler.use_alternate

        async def deleted_meanwhile(*arguments, **named):
            other = moved.now.conductor_of("cell1", "second")
            await moved.now.super.delete([ONE])
            await moved.now.cells["cell1"].destroyed([(await moved.now.cells["cell1"].find([ONE]))[ONE]])
            moved.now.scheduler.use_alternate = use  # type: ignore[method-assign]
            await other.step()
            assert await moved.now.instances() == {}
            return await use(*arguments, **named)

        moved.now.scheduler.use_alternate = deleted_meanwhile  # type: ignore[method-assign]
        await conductor.step()
        assert await moved.now.instances() == {}
        assert await moved.now.used() == 0

    within(tmp_path, work)


def test_instance_of_an_earlier_version_has_no_spec_and_moves_nevertheless(tmp_path) -> None:
    async def work(moved: Moved) -> None:
        _, second, third = moved.hosts
        await moved.now.cells["cell1"].database.write(
            lambda connection: connection.execute(sa.update(instances).values(spec=None, selection=None))
        )
        await fill(moved, second)
        await moved.now.step()
        assert (await moved.instance()).host == third

    within(tmp_path, work)


def test_member_of_an_anti_affinity_group_does_not_move_to_the_host_of_another_member(tmp_path) -> None:
    """The other member came after the alternates were chosen, by a request of its own."""

    async def work(moved: Moved) -> None:
        _, second, third = moved.hosts
        others = frozenset("abcde") - {second}
        other = request(policy="anti-affinity", ignore_hosts=others)
        await moved.now.run(msgspec.structs.replace(other, request_id="later", instances=("later",)))
        assert (await moved.now.instances())["later"].host == second
        moved.now.records.attempts.clear()
        await moved.now.step()
        assert (await moved.instance()).host == third
        assert "ServerGroupAntiAffinityFilter" in str(moved.attempts()[1][2])

    within(tmp_path, work, policy="anti-affinity")
