"""The super conductor: what is accepted is carried out, whatever happens, and once."""

import asyncio

import pytest

from roost.conductor.super_conductor import KIND
from roost.model.instance import ACTIVE, ASSIGNED, DELETING, DESTROYED, ERROR
from roost.model.spec import RequestedDestination
from roost.placement.commands.allocations import ConsumerWrite
from roost.state.api_database.build_requests import FinishRequest
from roost.state.api_database.cell_mappings import CELL0
from roost.state.api_database.mappings import page_of_mappings
from roost.state.cell_database.arrivals import AddInstances
from roost.state.leases import leases_of_kind
from roost.storage import DatabaseUnavailable
from support.conducting import HOSTS, VCPUS, Dead, Death, conducting, intercept, request
from support.waiting import patience

NIGHTLY = pytest.mark.nightly
"""The simulation of machines has the same moments, and more of them, in every run."""


def test_request_is_durable_before_it_is_accepted(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            looked = asyncio.Event()

            async def later(work, write):
                await looked.wait()
                return await write(work)

            for cell in now.cells.values():
                intercept(cell, AddInstances, later)
            await now.super.accept(request(2))
            assert [each async for each in now.requests.waiting()] == [request(2)]
            looked.set()
            await now.arrive()
            assert [each async for each in now.requests.waiting()] == []

    asyncio.run(run())


def test_placed_instances_are_claimed_assigned_and_mapped(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await now.run(request(3))
            found = await now.instances()
            assert found.keys() == {"i0", "i1", "i2"}
            claims = await now.claims()
            for uuid, instance in found.items():
                assert (instance.state, instance.attempt) == (ASSIGNED, 1)
                assert claims[uuid] == {instance.node: {"VCPU": 1}}
                others = [other.host for other in instance.alternates]
                assert len(set(others) - {instance.host}) == 2 or HOSTS[instance.host] == "cell2"
                assert {HOSTS[other] for other in others} == {HOSTS[instance.host]}
            mapped = await now.requests.cells_of(found)
            assert mapped == {uuid: HOSTS[instance.host] for uuid, instance in found.items()}
            await now.check()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (
            request(2, vcpus=VCPUS + 1),
            f"No valid host was found: none of 5 hosts has {VCPUS + 1} VCPU free; the closest, ",
        ),
        (request(1, vcpus=0), "flavor small asks for no resources"),
        (request(1, required_traits=frozenset({"HW_CPU_X86_AVX"})), "HW_CPU_X86_AVX"),
        (request(1, requested_destination=RequestedDestination(host="nowhere")), "nowhere"),
        (request(1, availability_zone="moon"), "none of 5 hosts is in the availability zone moon"),
    ],
)
def test_refusal_goes_to_cell0_with_the_reason(tmp_path, wanted, reason) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await now.run(wanted)
            assert now.super.failure is None
            cell0 = now.cells[CELL0]
            for uuid in wanted.instances:
                instance = (await cell0.find([uuid]))[uuid]
                assert (instance.state, instance.host) == (ERROR, None)
                [fault] = await cell0.faults_of(uuid)
                assert instance.reason == fault.reason
                assert reason in fault.reason
            assert await now.used() == 0
            await now.check()

    asyncio.run(run())


def test_fewer_than_min_count_places_none(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await now.run(request(len(HOSTS) + 1, vcpus=VCPUS))
            assert {each.state for each in (await now.instances()).values()} == {ERROR}
            assert await now.used() == 0

    asyncio.run(run())


def test_min_count_places_what_fits_and_says_so_of_the_rest(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await now.run(request(len(HOSTS) + 2, min_count=2, vcpus=VCPUS))
            found = (await now.instances()).values()
            assert sum(each.state == ASSIGNED for each in found) == len(HOSTS)
            assert {each.reason for each in found if each.state == ERROR} == {
                "No valid host was found: 5 of 7 instances fit"
            }
            await now.check()

    asyncio.run(run())


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [1, 3, *(pytest.param(at, marks=NIGHTLY) for at in (2, 4, 5))])
@pytest.mark.parametrize(
    "wanted",
    [request(4, min_count=1), request(7, min_count=2, vcpus=VCPUS), request(2, vcpus=VCPUS + 1)],
    ids=["all fit", "some fit", "none fits"],
)
def test_killed_at_any_write_it_carries_on_after_the_next_start(
    tmp_path, monkeypatch, wanted, at, after
) -> None:
    death = Death(monkeypatch)

    async def first_life() -> bool:
        async with conducting(tmp_path) as now:
            death.comes(at, after)
            try:
                await now.super.accept(wanted)
            except Dead:
                return False
            finally:
                await now.arrive()
            return True

    async def second_life(accepted: bool) -> None:
        async with conducting(tmp_path) as now:
            known = bool([each async for each in now.requests.waiting()] or await now.instances())
            assert known or not accepted, "what was accepted is lost"
            await now.super.resume()
            await now.settle()
            found = await now.instances()
            assert set(found) == (set(wanted.instances) if known else set())
            running = [each for each in found.values() if each.state == ACTIVE]
            claims = await now.claims()
            assert claims == {
                each.uuid: {each.node: {"VCPU": wanted.spec.flavor.vcpus}} for each in running
            }, "claimed twice, or not at all"
            assert await now.used() == sum(claim[node]["VCPU"] for claim in claims.values() for node in claim)
            assert [each async for each in now.requests.waiting()] == []
            await now.check()

    accepted = asyncio.run(first_life())
    death.revive()
    asyncio.run(second_life(accepted))


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, 5))
def test_killed_while_deleting_it_forgets_neither_more_nor_less(tmp_path, monkeypatch, at, after) -> None:
    death = Death(monkeypatch)

    async def first_life() -> bool:
        async with conducting(tmp_path) as now:
            await now.run(request(4))
            await now.settle()
            death.comes(at, after)
            try:
                await now.super.delete(["i0", "i1"])
            except Dead:
                return False
            return True

    async def second_life(deleted: bool) -> None:
        async with conducting(tmp_path) as now:
            await now.super.resume()
            await now.settle()
            found = await now.instances()
            assert {"i2", "i3"} <= set(found)
            assert not deleted or set(found) == {"i2", "i3"}
            mapped = {each.instance_uuid for each in await now.requests.page(page_of_mappings(most=100))}
            assert mapped == found.keys(), "a mapping leads nowhere"
            assert await now.used() == len(found)
            await now.check()

    deleted = asyncio.run(first_life())
    death.revive()
    asyncio.run(second_life(deleted))


def test_lease_is_kept_while_the_work_of_the_start_is_taken_up(tmp_path, monkeypatch) -> None:
    """After an outage there may be more of it than a conductor takes up while a lease lasts."""

    async def run() -> None:
        async with conducting(tmp_path) as now:

            async def stamp() -> object:
                [lease] = await now.ledger.database.read(leases_of_kind(KIND))
                return lease.stamp

            async def taking_long() -> None:
                before = await stamp()
                while await stamp() == before:
                    await asyncio.sleep(0.01)

            monkeypatch.setattr(now.super, "step", taking_long)
            async with asyncio.timeout(patience(60)):
                await now.super.resume()

    asyncio.run(run())


def test_members_of_a_group_stay_apart_though_a_crash_came_between_them(tmp_path, monkeypatch) -> None:
    wanted = request(5, min_count=1, policy="anti-affinity")

    async def first_life() -> None:
        async with conducting(tmp_path) as now:
            fail(now, monkeypatch, "cell2", [DatabaseUnavailable("gone")] * 1000)
            await now.super.accept(wanted)
            while len(await now.instances()) < 3:
                await asyncio.sleep(0.01)
            await now.super.close()
            assert {HOSTS[each.host or ""] for each in (await now.instances()).values()} == {"cell1"}
        monkeypatch.undo()

    async def second_life() -> None:
        async with conducting(tmp_path) as now:
            await now.super.resume()
            await now.arrive()
            hosts = [each.host for each in (await now.instances()).values()]
            assert sorted(hosts) == sorted(HOSTS)
            await now.check()

    asyncio.run(first_life())
    asyncio.run(second_life())


def fail(now, monkeypatch, cell: str, errors: list[Exception]) -> None:
    """The next writes to a cell's database raise these errors."""
    database = now.cells[cell].database
    write = database.write

    async def perhaps(work):
        if errors:
            raise errors.pop()
        return await write(work)

    monkeypatch.setattr(database, "write", perhaps)


def test_outage_delays_a_request_and_claims_nothing_twice(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            failures = [DatabaseUnavailable("gone")] * 2
            fail(now, monkeypatch, "cell2", failures)
            await now.run(request(10))
            assert not failures
            assert now.super.failure is None
            assert {each.state for each in (await now.instances()).values()} == {ASSIGNED}
            assert await now.used() == 10
            await now.check()

    asyncio.run(run())


def test_retry_waits_for_the_writes_of_the_first_try(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            failures = [DatabaseUnavailable("gone")]
            late = now.cells["cell1"].database.write

            async def slowly(work):
                await asyncio.sleep(0.1)
                return await late(work)

            monkeypatch.setattr(now.cells["cell1"].database, "write", slowly)
            fail(now, monkeypatch, "cell2", failures)
            await now.run(request(10))
            assert not failures
            assert len(await now.instances()) == 10
            await now.check()

    asyncio.run(run())


def test_instance_that_holds_something_already_is_decided_anew(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            held = ConsumerWrite(
                consumer="i0", allocations={"node-a": {"VCPU": 2}}, project_id="p", user_id="u"
            )
            await now.placement.write_allocations([held])
            await now.run(request(2))
            assert await now.used() == 2
            await now.check()

    asyncio.run(run())


def test_defect_is_noticed_and_the_request_kept(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            monkeypatch.setattr(FinishRequest, "__call__", None)
            await now.run(request())
            assert isinstance(now.super.failure, TypeError)
            assert [each async for each in now.requests.waiting()] == [request()]
            await now.super.step()
            assert now.super.in_progress == 0, "this process does not try it again"

    asyncio.run(run())


def test_delete_knows_what_is_in_cells(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await now.run(request(3))
            assert sorted(await now.super.delete(["i0", "i2", "unknown"])) == ["i0", "i2"]
            assert await now.super.delete(["i0"]) == ["i0"], "as long as something of it is left"
            found = await now.instances()
            assert [found[uuid].state for uuid in ("i0", "i1", "i2")] == [DELETING, ASSIGNED, DELETING]
            await now.settle()
            assert set(await now.instances()) == {"i1"}
            assert await now.super.delete(["i0"]) == []
            assert await now.used() == 1
            await now.check()

    asyncio.run(run())


def test_deleted_refusal_needs_no_host(tmp_path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await now.run(request(1, vcpus=VCPUS + 1))
            await now.super.delete(["i0"])
            assert (await now.instances())["i0"].state == DESTROYED
            await now.step()
            assert await now.instances() == {}

    asyncio.run(run())


def test_closed_conductor_carries_nothing_on(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:

            async def forever(work) -> None:
                await asyncio.Event().wait()

            monkeypatch.setattr(now.cells["cell1"].database, "write", forever)
            await now.super.accept(request())
            await asyncio.sleep(0.05)
            assert now.super.in_progress == 1
            await now.super.close()
            assert now.super.in_progress == 0
            assert now.super.failure is None

    asyncio.run(run())
