"""Several super conductors on one API database: they share the work, and a late one changes nothing."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from roost.conductor import deletions
from roost.conductor.instance_types import InstancesQuery
from roost.conductor.instance_views import InstanceViews
from roost.conductor.request_worker import FAILED_SECONDS
from roost.conductor.super_conductor import KIND, SuperConductor
from roost.model.instance import ACTIVE, ASSIGNED, DELETING, ERROR
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import ConcurrentUpdate
from roost.state.api_database.build_requests import find_free_requests
from roost.state.api_database.cell_mappings import CELL0
from roost.state.api_database.late_claims import LOOKS, count_look, noted_instances_after
from roost.state.api_database.mappings import ANYWHERE
from roost.state.api_database.tables import instance_mappings
from roost.state.cell_database.arrivals import AddInstances
from roost.state.leases import leases_of_kind, vacate_leases
from roost.storage import DatabaseUnavailable
from support.conducting import BACKOFF, HOSTS, NOW, VCPUS, Conductors, conducting, request
from support.waiting import patience
from support.works import is_of

ONE = "i0"


def within(tmp_path, work: Callable[[Conductors, SuperConductor], Awaitable[None]]) -> None:
    """Run with two super conductors: ``now.super`` and another one."""

    async def run() -> None:
        async with conducting(tmp_path) as now:
            other = SuperConductor(
                now.ledger.database,
                now.scheduler,
                now.placement,
                now.cells,
                backoff=BACKOFF,
                clock=lambda: NOW,
            )
            await other.begin()
            try:
                await work(now, other)
            finally:
                await other.close()

    asyncio.run(run())


class Gate:
    """Stops calls of something until it is opened."""

    def __init__(self, works: Callable[..., Any], only: Callable[..., Any] | None = None) -> None:
        self._works = works
        self._only = only
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()
        self.stopped = 0

    async def __call__(self, *arguments: Any, **named: Any) -> Any:
        if (self._only is None or is_of(arguments[0], self._only)) and not self.reached.is_set():
            self.stopped += 1
            self.reached.set()
            await self.opened.wait()
        return await self._works(*arguments, **named)


async def found_dead(now: Conductors) -> None:
    """All that hold leases, but the last one to begin, are seen to stand still."""
    found = await now.ledger.database.read(leases_of_kind(KIND))
    await now.ledger.database.write(
        vacate_leases([each for each in found if each.holder == now.super.holder])
    )


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


def test_many_deletions_are_taken_over_some_at_a_time(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(deletions, "AT_ONCE", 2)

    async def work(now: Conductors, other: SuperConductor) -> None:
        await now.super.accept(request(5))
        await now.super.idle()

        async def gone(*_: object, **__: object) -> None:
            raise DatabaseUnavailable("gone")

        with monkeypatch.context() as outage:
            for name in ("cell1", "cell2"):
                outage.setattr(now.cells[name].database, "write", gone)
            assert len(await now.super.delete([*await now.instances()])) == 5
        await found_dead(now)
        await other.step()
        assert {each.state for each in (await now.instances()).values()} == {DELETING}

    within(tmp_path, work)


def test_a_cell_that_is_mapped_later_is_told_of_deletions(tmp_path) -> None:
    """An instance whose mapping an earlier version wrote may be there, too."""

    async def work(now: Conductors, other: SuperConductor) -> None:
        await now.super.accept(request(5))
        await now.arrive()
        [*_, uuid] = [each.uuid for each in await now.cells["cell2"].every()]
        later = now.cells.pop("cell2")
        conductor = SuperConductor(
            now.ledger.database, now.scheduler, now.placement, now.cells, backoff=BACKOFF, clock=lambda: NOW
        )
        await conductor.begin()
        now.cells["cell2"] = later
        mine = instance_mappings.c.instance_uuid == uuid
        anywhere = sa.update(instance_mappings).where(mine).values(cell=None, epoch=ANYWHERE)
        await now.ledger.database.write(lambda connection: connection.execute(anywhere) and None)
        try:
            assert await conductor.delete([uuid]) == [uuid]
            assert (await later.find([uuid]))[uuid].state == DELETING
        finally:
            await conductor.close()

    within(tmp_path, work)


def test_a_deletion_stops_an_instance_that_is_about_to_arrive(tmp_path, monkeypatch) -> None:
    async def work(now: Conductors, other: SuperConductor) -> None:
        gates = []
        for cell in now.cells.values():
            gate = Gate(cell.write, AddInstances)
            monkeypatch.setattr(cell, "write", gate)
            gates.append(gate)
        await now.super.accept(request(1))
        while not any(gate.stopped for gate in gates):
            await asyncio.sleep(0.001)
        assert await other.delete([ONE]) == [ONE]
        await other.step()
        assert await now.used() == 1, "the request is not finished: its owner may claim"
        for gate in gates:
            gate.opened.set()
        await now.arrive()
        assert await now.instances() == {}
        await other.step()
        assert await now.used() == 0
        assert await now.requests.mappings([ONE]) == {}
        await now.check()

    within(tmp_path, work)


def test_a_claim_that_is_made_after_the_end_of_its_instance_is_freed(tmp_path, monkeypatch) -> None:
    async def work(now: Conductors, other: SuperConductor) -> None:
        gate = Gate(now.scheduler.select_destinations)
        monkeypatch.setattr(now.scheduler, "select_destinations", gate)
        await now.super.accept(request(1))
        await gate.reached.wait()
        await found_dead(now)
        await other.delete([ONE])
        await other.step()
        await other.idle()
        await other.step()
        assert await now.requests.mappings([ONE]) == {}
        gate.opened.set()
        await now.arrive()
        assert await now.used() == 1
        await other.step()
        assert await now.used() == 0
        assert await now.instances() == {}

    within(tmp_path, work)


@pytest.mark.parametrize("deleted", [True, False])
def test_a_claim_that_comes_after_the_end_of_its_asker_and_its_instance_is_freed(
    tmp_path, monkeypatch, deleted
) -> None:
    """Its asker is killed; the scheduler claims later. The instance is deleted, or in cell0."""

    async def work(now: Conductors, other: SuperConductor) -> None:
        gate = Gate(now.scheduler.select_destinations)
        monkeypatch.setattr(now.scheduler, "select_destinations", gate)
        await now.super.accept(request(1, vcpus=1 if deleted else VCPUS + 1))
        await gate.reached.wait()
        await now.super.close()
        if deleted:
            await other.delete([ONE])
        await other.step()
        await other.idle()
        await other.step()
        assert bool(await now.instances()) is not deleted
        late = ConsumerWrite(
            consumer=ONE,
            allocations={"node-a": {"VCPU": 1}},
            project_id="project",
            user_id="user",
            consumer_type="INSTANCE",
        )
        await now.placement.write_allocations([late])
        with monkeypatch.context() as outage:

            async def away(*_: object) -> None:
                raise ConnectionRefusedError("refused")

            outage.setattr(now.placement, "holdings", away)
            await other.step()
        assert await now.used() == 1
        await other.step()
        assert await now.used() == 0
        await now.check()
        for _ in range(LOOKS):
            await now.ledger.database.write(count_look())
        assert await now.ledger.database.read(noted_instances_after()) == {}

    within(tmp_path, work)


def test_an_instance_that_one_conductor_alone_has_carried_is_not_noted_at_its_end(tmp_path) -> None:
    async def work(now: Conductors, other: SuperConductor) -> None:
        await now.run(request(2))
        await now.settle()
        await now.super.delete([ONE])
        await now.settle()
        await now.super.step()
        assert set(await now.instances()) == {"i1"}
        assert await now.ledger.database.read(noted_instances_after()) == {}

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


def test_a_claim_that_placement_refuses_to_free_keeps_no_other_deletion(tmp_path, monkeypatch) -> None:
    async def work(now: Conductors, other: SuperConductor) -> None:
        gate = Gate(now.scheduler.select_destinations)
        monkeypatch.setattr(now.scheduler, "select_destinations", gate)
        await now.super.accept(request(2))
        await gate.reached.wait()
        await now.super.delete(["i0", "i1"])
        gate.opened.set()
        await now.arrive()
        write = now.placement.write_allocations
        asked = []

        async def refused(writes: Sequence[ConsumerWrite]) -> Any:
            asked.append([each.consumer for each in writes])
            if "i0" in asked[-1]:
                raise ConcurrentUpdate("refused")
            return await write(writes)

        monkeypatch.setattr(now.placement, "write_allocations", refused)
        await now.super.step()
        assert asked == [["i0", "i1"], ["i0"], ["i1"]]
        assert (await now.requests.mappings(["i0", "i1"])).keys() == {"i0"}
        monkeypatch.undo()
        await now.super.step()
        assert not await now.requests.mappings(["i0", "i1"])
        await now.check()

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


def test_an_instance_whose_cell_has_its_tombstone_ends_and_leaves_nothing(tmp_path) -> None:
    """Its uuid was an earlier one's, or the API database was taken back to before the deletion."""

    async def work(now: Conductors, other: SuperConductor) -> None:
        await now.run(request(1, ignore_hosts=frozenset("de")))
        await now.settle()
        await now.super.delete([ONE])
        await now.settle()
        assert await now.requests.mappings([ONE]) == {}
        again = request(2, ignore_hosts=frozenset("de"))
        await now.run(msgspec.structs.replace(again, request_id="again"))
        await now.settle()
        await now.super.step()
        assert set(await now.instances()) == {"i1"}
        assert (await now.requests.mappings([ONE, "i1"])).keys() == {"i1"}
        assert await now.used() == 1
        await now.check()

    within(tmp_path, work)


def test_a_taken_over_heap_of_deletions_is_freed_together(tmp_path, monkeypatch) -> None:
    """One question and one write for all: one after the other they held up each other's end for minutes."""

    async def work(now: Conductors, other: SuperConductor) -> None:
        gate = Gate(now.scheduler.select_destinations)
        monkeypatch.setattr(now.scheduler, "select_destinations", gate)
        await now.super.accept(request(5))
        await gate.reached.wait()
        uuids = [f"i{number}" for number in range(5)]
        await now.super.delete(uuids)
        gate.opened.set()
        await now.arrive()
        asked, written = [], []
        holdings, write = now.placement.holdings, now.placement.write_allocations

        async def ask(consumers: Sequence[str]) -> Any:
            asked.append(sorted(consumers))
            return await holdings(consumers)

        async def note(writes: Sequence[ConsumerWrite]) -> Any:
            written.append(sorted(each.consumer for each in writes))
            return await write(writes)

        monkeypatch.setattr(now.placement, "holdings", ask)
        monkeypatch.setattr(now.placement, "write_allocations", note)
        await now.super.step()
        assert (asked, written) == ([uuids], [uuids])
        assert not await now.requests.mappings(uuids)
        await now.check()

    within(tmp_path, work)
