"""Several super conductors on one API database: they share the work, and a late one changes nothing."""

import asyncio
from typing import Any

import msgspec
import pytest

from roost.conductor.instances.types import InstancesQuery
from roost.conductor.instances.views import InstanceViews
from roost.conductor.request_worker import FAILED_SECONDS
from roost.conductor.super_conductor import SuperConductor
from roost.model.instance import ACTIVE, ASSIGNED, ERROR
from roost.state.api_database.build_requests import find_free_requests
from roost.state.api_database.cell_mappings import CELL0
from roost.state.cell_database.arrivals import AddInstances
from roost.storage import DatabaseUnavailable
from support.conducting import BACKOFF, HOSTS, NOW, VCPUS, Conductors, request
from support.several_conductors import ONE, Gate, found_dead, within
from support.waiting import patience


def test_nobody_takes_the_work_of_the_living(tmp_path, monkeypatch) -> None:
    async def work(now: Conductors, other: SuperConductor) -> None:
        gate = Gate(now.scheduler.select_destinations)
        monkeypatch.setattr(now.scheduler, "select_destinations", gate)
        await now.super.accept(request(2))
        await gate.reached.wait()
        await other.step()
        assert other.in_progress == 0
        gate.opened.set()
        await now.arrive()
        assert len(await now.instances()) == 2
        await now.check()

    within(tmp_path, work)


def test_a_look_for_work_leaves_alone_what_was_accepted_meanwhile(tmp_path, monkeypatch) -> None:
    """The look finds the request, which this process carries since the look began."""

    async def work(now: Conductors, other: SuperConductor) -> None:
        asking = Gate(now.scheduler.select_destinations)
        monkeypatch.setattr(now.scheduler, "select_destinations", asking)
        looking = Gate(now.ledger.database.read, find_free_requests)
        monkeypatch.setattr(now.ledger.database, "read", looking)
        look = asyncio.create_task(now.super.step())
        await looking.reached.wait()
        await now.super.accept(request(1))
        await asking.reached.wait()
        looking.opened.set()
        await look
        asking.opened.set()
        await now.arrive()
        assert (await now.instances())[ONE].epoch == 1, "its owner has taken it over from itself"
        await now.check()

    within(tmp_path, work)


@pytest.mark.parametrize("late", ["claim", "insert"])
def test_a_conductor_that_was_stopped_is_overtaken_and_changes_nothing(tmp_path, monkeypatch, late) -> None:
    """It stops before its claim, or between its mapping and its insert, and goes on when all is over."""

    async def work(now: Conductors, other: SuperConductor) -> None:
        place = now.scheduler.select_destinations
        gates = [Gate(place)]
        if late == "claim":
            monkeypatch.setattr(now.scheduler, "select_destinations", gates[0])
        else:
            gates = []
            for cell in now.cells.values():
                gate = Gate(cell.write, AddInstances)
                monkeypatch.setattr(cell, "write", gate)
                gates.append(gate)
        await now.super.accept(request(1))
        while not any(gate.stopped for gate in gates):
            await asyncio.sleep(0.001)
        await found_dead(now)
        await other.step()
        await other.idle()
        first = await now.instances()
        assert first.keys() == {ONE}
        held = await now.placement.allocations_of(ONE)
        assert held is not None
        assert held.consumer.generation == first[ONE].selection.generation == (1 if late == "claim" else 2)
        for gate in gates:
            gate.opened.set()
        await now.arrive()
        assert now.super.failure is None
        assert await now.instances() == first, "the late one has changed something"
        assert await now.placement.allocations_of(ONE) == held
        await now.check()

    within(tmp_path, work)


def test_instances_deleted_on_their_way_are_not_missing_to_the_others(tmp_path, monkeypatch) -> None:
    """All of a request were wanted. One is deleted before its next owner places the rest."""

    async def work(now: Conductors, other: SuperConductor) -> None:
        gate = Gate(now.scheduler.select_destinations)
        monkeypatch.setattr(now.scheduler, "select_destinations", gate)
        await now.super.accept(request(2))
        await gate.reached.wait()
        await other.delete([ONE])
        await found_dead(now)
        await other.step()
        await other.idle()
        assert {uuid: each.state for uuid, each in (await now.instances()).items()} == {"i1": ASSIGNED}

    within(tmp_path, work)


def test_what_has_arrived_is_adopted_by_the_next_owner(tmp_path, monkeypatch) -> None:
    async def work(now: Conductors, other: SuperConductor) -> None:
        late = now.cells["cell2"]
        gate = Gate(late.write, AddInstances)
        monkeypatch.setattr(late, "write", gate)
        await now.super.accept(request(10))
        await gate.reached.wait()
        while not await now.cells["cell1"].every():
            await asyncio.sleep(0.001)
        there = {each.uuid: each for each in await now.cells["cell1"].every()}
        await found_dead(now)
        await other.step()
        await other.idle()
        gate.opened.set()
        await now.arrive()
        found = await now.instances()
        assert len(found) == 10
        assert {uuid: found[uuid] for uuid in there} == there
        assert await now.used() == 10
        await now.check()

    within(tmp_path, work)


def test_work_of_a_process_without_a_lease_is_done_by_the_others(tmp_path) -> None:
    async def work(now: Conductors, other: SuperConductor) -> None:
        idle = SuperConductor(now.ledger.database, now.scheduler, now.placement, now.cells)
        await idle.accept(request(2))
        assert idle.in_progress == 0
        assert len(await now.ledger.database.read(find_free_requests("nobody", 10))) == 1
        await other.step()
        await other.idle()
        assert {each.state for each in (await now.instances()).values()} == {ASSIGNED}
        await idle.delete(["i1"])
        await now.settle()
        await other.step()
        assert set(await now.instances()) == {ONE}

    within(tmp_path, work)


def test_a_cell_that_is_down_hides_its_own_instances_alone(tmp_path, monkeypatch) -> None:
    async def work(now: Conductors, other: SuperConductor) -> None:
        await now.run(request(8))
        await now.settle()
        down = [each.uuid for each in await now.cells["cell2"].every()]
        assert 0 < len(down) < 8

        async def gone(*_: object, **__: object) -> None:
            raise DatabaseUnavailable("gone")

        for name in ("read", "write"):
            monkeypatch.setattr(now.cells["cell2"].database, name, gone)
        views = InstanceViews(now.requests, now.cells, now.placement)
        listed = (await views.page(InstancesQuery(), "project")).instances
        assert {each.uuid: each.state for each in listed} == {
            f"i{number}": "unknown" if f"i{number}" in down else ACTIVE for number in range(8)
        }
        shown = await views.find(down[0])
        assert shown is not None
        assert (shown.state, shown.cell, shown.project_id) == ("unknown", "cell2", "project")
        # Deletions are accepted, and reach the cell when it is back.
        up = next(
            uuid for uuid in (await now.requests.cells_of([f"i{n}" for n in range(8)])) if uuid not in down
        )
        assert sorted(await now.super.delete([down[0], up])) == sorted([down[0], up])
        await now.super.resume()
        assert (await now.cells["cell1"].find([up]))[up].state == "deleting"
        # Others' requests go on.
        more = msgspec.structs.replace(
            request(1, ignore_hosts=frozenset("de")), request_id="more", instances=("j0",)
        )
        await now.run(more)
        assert HOSTS[(await now.cells["cell1"].find(["j0"]))["j0"].host or ""] == "cell1"
        monkeypatch.undo()
        await now.settle()
        assert set(await now.instances()) == {f"i{n}" for n in range(8)} - {down[0], up} | {"j0"}
        await now.check()

    within(tmp_path, work)


def test_an_outage_of_placement_ends_no_machine(tmp_path, monkeypatch) -> None:
    async def work(now: Conductors, other: SuperConductor) -> None:
        calls = []

        async def away(*_: object) -> None:
            calls.append(True)
            raise ConnectionRefusedError("refused")

        await now.super.resume()
        # It never reached a cell, so its claim is looked for.
        gate = Gate(now.scheduler.select_destinations)
        monkeypatch.setattr(now.scheduler, "select_destinations", gate)
        await now.super.accept(request(2))
        await gate.reached.wait()
        await now.super.delete([ONE])
        monkeypatch.setattr(now.placement, "holdings", away)
        gate.opened.set()
        async with asyncio.timeout(patience(30)):
            while not calls:
                await asyncio.sleep(0.01)
            monkeypatch.undo()
            while ONE in await now.requests.mappings([ONE]):
                await now.super.delete([])
                await asyncio.sleep(0.01)
        assert set(await now.instances()) == {"i1"}
        assert await now.used() == 1
        assert now.super.failure is None

    within(tmp_path, work)


def test_a_request_that_ended_with_an_error_is_taken_up_again_after_a_while(tmp_path, monkeypatch) -> None:
    async def work(now: Conductors, other: SuperConductor) -> None:
        async def defect(*_: Any, **__: Any) -> Any:
            raise RuntimeError("a defect")

        passed = [0.0]
        third = SuperConductor(
            now.ledger.database,
            now.scheduler,
            now.placement,
            now.cells,
            backoff=BACKOFF,
            clock=lambda: NOW,
            monotonic=lambda: passed[0],
        )
        await third.begin()
        monkeypatch.setattr(now.cells[CELL0], "write", defect)
        await third.accept(request(1, vcpus=VCPUS + 1))
        await third.idle()
        assert isinstance(third.failure, RuntimeError)
        monkeypatch.undo()
        await third.step()
        assert third.in_progress == 0
        passed[0] += FAILED_SECONDS
        await third.begin()
        await third.step()
        await third.idle()
        assert {each.state for each in (await now.instances()).values()} == {ERROR}
        await third.close()
        await now.check()

    within(tmp_path, work)
