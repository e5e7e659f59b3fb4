"""A cell's conductor: failed builds move to alternates, with their claims, or end with every reason."""

import asyncio
from itertools import pairwise

import pytest

from roost.model.instance import ACTIVE, ASSIGNED, ERROR
from roost.model.inventory import Inventory
from roost.model.record import FAILED as BUILD_FAILED
from roost.model.record import PENDING, REFUSED
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.commands.reshape import NewInventories
from roost.state.cell_database.conductor_work import reassign_instance
from roost.storage import DatabaseUnavailable
from support.conducting import VCPUS, Conductors, Dead, Death, conducting, intercept, request
from support.waiting import patience

ONE = "i0"


async def one(now: Conductors):
    return (await now.instances())[ONE]


async def fill(now: Conductors, host: str) -> None:
    """Leave no room on a host."""
    write = ConsumerWrite(
        consumer=f"other on {host}",
        allocations={f"node-{host}": {"VCPU": VCPUS}},
        project_id="other",
        user_id="other",
    )
    await now.placement.write_allocations([write])


async def place_and_fail(now: Conductors) -> list[str]:
    """Place one instance in cell1 and have its first build fail; returns its hosts in order."""
    await now.run(request(ignore_hosts=frozenset("de")))
    instance = await one(now)
    await now.build([instance.host or ""])
    return [instance.host or "", *(other.host for other in instance.alternates)]


def test_failed_build_moves_with_its_claim_to_the_first_alternate(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            hosts = await place_and_fail(now)
            await now.step()
            instance = await one(now)
            assert (instance.state, instance.attempt, instance.host) == (ASSIGNED, 2, hosts[1])
            assert [other.host for other in instance.alternates] == hosts[2:]
            assert await now.claims() == {ONE: {instance.node: {"VCPU": 1}}}
            await now.check()
            await now.settle()
            assert (await one(now)).state == ACTIVE

    asyncio.run(run())


def test_claim_moves_in_one_write(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            hosts = await place_and_fail(now)
            written = []
            execute = now.ledger.execute

            async def watched(command):
                written.append(command)
                return await execute(command)

            now.ledger.execute = watched  # type: ignore[method-assign]
            await now.step()
            assert len(written) == 1
            held = await now.placement.allocations_of(ONE)
            assert held is not None
            assert held.allocations == {f"node-{hosts[1]}": {"VCPU": 1}}
            assert held.consumer.generation == 2, "the consumer was emptied and begun again"

    asyncio.run(run())


@pytest.mark.parametrize("end", ["moved", "given up", "deleted"])
def test_instance_whose_claim_was_reshaped_before_its_row_is_known(tmp_path, end) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            hosts = await place_and_fail(now)
            node, child = f"node-{hosts[0]}", "numa-cell"
            await now.placement.ensure_provider(child, child, node)
            write = ConsumerWrite(
                consumer=ONE, allocations={child: {"VCPU": 1}}, project_id="p", user_id="u", generation=1
            )
            new = [NewInventories(node, {}), NewInventories(child, {"VCPU": Inventory(VCPUS)})]
            await now.placement.reshape(new, [write])
            for host in hosts[1:] if end == "given up" else ():
                await fill(now, host)
            if end == "deleted":
                await now.super.delete([ONE])
            await now.settle()
            state = {each.uuid: each.state for each in (await now.instances()).values()}
            assert state == {"moved": {ONE: ACTIVE}, "given up": {ONE: ERROR}, "deleted": {}}[end]
            assert (await now.claims() == {}) == (end != "moved")
            if end == "moved":
                await now.check()

    asyncio.run(run())


def test_alternate_that_is_full_is_passed_over(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            hosts = await place_and_fail(now)
            await fill(now, hosts[1])
            await now.step()
            instance = await one(now)
            assert (instance.host, instance.attempt, instance.alternates) == (hosts[2], 2, ())
            results = [(attempt.host, attempt.result) for attempt in now.records.attempts]
            assert results == [
                (hosts[0], PENDING),
                (hosts[0], BUILD_FAILED),
                (hosts[1], REFUSED),
                (hosts[2], PENDING),
            ]
            await now.check()

    asyncio.run(run())


def test_given_up_instance_has_every_reason_and_no_claim(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            hosts = await place_and_fail(now)
            await now.step()
            await fill(now, hosts[2])
            await now.build([hosts[1]], reason="no disk")
            await now.step()
            instance = await one(now)
            assert (instance.state, instance.attempt) == (ERROR, 2)
            assert instance.reason is not None
            assert instance.reason.startswith("Exceeded maximum number of retries after 2 attempts")
            for part in (f"attempt 1 on {hosts[0]}: no IP", f"attempt 2 on {hosts[1]}: no disk"):
                assert part in instance.reason
            assert f"alternate {hosts[2]}: Unable to allocate inventory" in instance.reason
            assert await now.claims() == {}
            await now.check()

    asyncio.run(run())


def test_destroyed_instances_are_freed_and_forgotten(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await now.run(request(10, min_count=1))
            await now.settle(failing="d")
            await now.super.delete([f"i{number}" for number in range(10)])
            await now.settle()
            assert await now.instances() == {}
            assert await now.used() == 0
            await now.check()

    asyncio.run(run())


def test_instance_that_is_deleted_during_its_retry_is_not_assigned(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await place_and_fail(now)

            async def delete_meanwhile(work, write):
                await now.super.delete([ONE])
                return await write(work)

            intercept(now.cells["cell1"], reassign_instance, delete_meanwhile)
            await now.step()
            assert (await one(now)).attempt == 1
            await now.settle()
            assert await now.instances() == {}
            assert await now.used() == 0

    asyncio.run(run())


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 4))
@pytest.mark.parametrize("case", ["swap", "passed over", "given up", "freed"])
def test_killed_between_any_two_steps_it_goes_on(tmp_path, monkeypatch, case, at, after) -> None:
    death = Death(monkeypatch)

    async def first_life() -> None:
        async with conducting(tmp_path) as now:
            hosts = await place_and_fail(now)
            if case in ("passed over", "given up"):
                await fill(now, hosts[1])
            if case == "given up":
                await fill(now, hosts[2])
            if case == "freed":
                await now.super.delete([ONE])
                await now.cells["cell1"].destroyed([await one(now)])
            death.comes(at, after)
            try:
                await now.step()
            except Dead:
                pass
            finally:
                # If it never came.
                death.comes(0, after)

    async def second_life() -> None:
        async with conducting(tmp_path) as now:
            await now.check()
            await now.super.resume()
            await now.settle()
            found = await now.instances()
            if case == "freed":
                assert found == {}
            else:
                assert found[ONE].state == (ERROR if case == "given up" else ACTIVE)
                assert found[ONE].attempt == (1 if case == "given up" else 2)
            for uuid, claim in (await now.claims()).items():
                assert claim == {found[uuid].node: {"VCPU": 1}}
            others = {"swap": 0, "passed over": VCPUS, "given up": 2 * VCPUS, "freed": 0}[case]
            running = sum(each.state == ACTIVE for each in found.values())
            assert await now.used() == others + running
            await now.check()

    asyncio.run(first_life())
    death.revive()
    asyncio.run(second_life())


def test_outage_is_survived(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await place_and_fail(now)
            failures = [DatabaseUnavailable("gone")] * 2

            async def perhaps(work, write):
                if failures:
                    raise failures.pop()
                return await write(work)

            intercept(now.cells["cell1"], reassign_instance, perhaps)
            task = asyncio.create_task(now.of_cell["cell1"].run())
            async with asyncio.timeout(patience(60)):
                while (await one(now)).attempt == 1:
                    await asyncio.sleep(0.01)
            assert not failures
            assert not task.done()
            task.cancel()
            await asyncio.wait([task])
            await now.check()

    asyncio.run(run())


def test_retry_of_one_instance_waits_for_those_of_the_others(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await now.run(request(2, ignore_hosts=frozenset("de")))
            await now.build("abc")
            seen = []

            async def perhaps(work, write):
                seen.append(work)
                if len(seen) == 1:
                    raise DatabaseUnavailable("gone")
                await asyncio.sleep(0.05)
                return await write(work)

            intercept(now.cells["cell1"], reassign_instance, perhaps)
            with pytest.raises(DatabaseUnavailable):
                await now.of_cell["cell1"].step()
            attempts = sorted(each.attempt for each in (await now.instances()).values())
            assert attempts == [1, 2], "the other one is still under way"

    asyncio.run(run())


def test_attempts_of_an_instance_are_recorded_in_order(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await place_and_fail(now)
            await now.settle(failing="abc")
            results = [attempt.result for attempt in now.records.attempts]
            assert results == [PENDING, BUILD_FAILED] * 3
            hosts = [attempt.host for attempt in now.records.attempts]
            assert all(claimed == failed for claimed, failed in list(pairwise(hosts))[::2])
            assert (await one(now)).state == ERROR

    asyncio.run(run())
