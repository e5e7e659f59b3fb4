"""Deletions with several super conductors: carried once, by one of them, to their end."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from roost.conductor import deletions
from roost.conductor.super_conductor import SuperConductor
from roost.model.instance import DELETING
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import ConcurrentUpdate
from roost.state.api_database.mappings import ANYWHERE
from roost.state.api_database.tables import instance_mappings
from roost.state.cell_database.arrivals import AddInstances
from roost.storage import DatabaseUnavailable
from support.conducting import BACKOFF, NOW, Conductors, request
from support.several_conductors import ONE, Gate, found_dead, within


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
