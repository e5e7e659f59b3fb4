"""Two super conductors on a database of each kind: one dies in the middle of its work, the other ends it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roost.conductor.super_conductor import KIND
from roost.ledger import SCHEMA as LEDGER
from roost.ledger import Ledger
from roost.model.instance import ASSIGNED
from roost.state.api_database.cell_mappings import CELL0
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database import SCHEMA as CELL
from roost.state.cell_database.arrivals import AddInstances
from roost.state.leases import leases_of_kind, vacate_leases
from roost.storage import Database
from support.conducting import HOSTS, NOW, VCPUS, Conductors, intercept, request
from support.databases import Place
from support.driven_cell import DrivenCell
from support.upgrading import upgrade_empty
from support.waiting import patience

REQUESTS = len(HOSTS) * VCPUS // 2
"""Each for two instances: together they fill the hosts."""


@asynccontextmanager
async def conductors(place: Place, directory: Path, number: int) -> AsyncIterator[Conductors]:
    """A process: its ledger, its conductors. The API database and cell1 are on the server."""
    api = Database(place.at(number))
    databases = {name: Database(f"sqlite:///{directory / name}.db") for name in (CELL0, "cell2")}
    ledger = await Ledger.open(api, lambda: NOW)
    cells = {
        name: DrivenCell(name, databases.get(name, api), lambda: NOW) for name in (CELL0, "cell1", "cell2")
    }
    now = Conductors(ledger, cells, None)
    try:
        if number == 0:
            await now.set_up()
        else:
            await now.feed.refresh()
            await now.super.begin()
        yield now
    finally:
        await now.super.close()
        await ledger.close()
        for database in databases.values():
            await database.close()
        await api.close()


def named(number: int) -> Any:
    uuids = (f"{number}-a", f"{number}-b")
    return msgspec.structs.replace(request(2), request_id=f"r{number}", instances=uuids)


NIGHTLY = [pytest.param(kind, marks=pytest.mark.nightly) for kind in ("sqlite", "mariadb", "galera")]


@pytest.mark.parametrize("place", ["postgresql", *NIGHTLY], indirect=True)
def test_one_dies_in_the_middle_of_its_work_and_the_other_ends_it(place, tmp_path) -> None:
    database = Database(place.url)
    for schema in (LEDGER, CONDUCTOR, CELL):
        upgrade_empty(schema, database)
    asyncio.run(database.close())

    async def run() -> None:
        async with conductors(place, tmp_path, 0) as one, conductors(place, tmp_path, 1) as other:
            lost = set(range(0, REQUESTS, 3))

            async def never(work: AddInstances, write: Any) -> Any:
                if any(int(each.uuid.split("-")[0]) in lost for each in work.new):
                    await asyncio.Event().wait()
                return await write(work)

            for cell in one.cells.values():
                intercept(cell, AddInstances, never)
            accepting = [
                (one if number % 2 == 0 or number in lost else other).super.accept(named(number))
                for number in range(REQUESTS)
            ]
            await asyncio.gather(*accepting)
            await other.arrive()
            async with asyncio.timeout(patience(30)):
                while one.super.in_progress > len(lost):
                    await asyncio.sleep(0.01)
            assert set(await other.super.delete(["0-a", "1-a"])) == {"0-a", "1-a"}
            leases = await one.ledger.database.read(leases_of_kind(KIND))
            dead = [lease for lease in leases if lease.holder == one.super.holder]
            assert await other.ledger.database.write(vacate_leases(dead)) == 1
            await other.super.step()
            await other.arrive()
            await other.settle()
            await other.super.step()
            found = await other.instances()
            assert found.keys() == {f"{n}-{x}" for n in range(REQUESTS) for x in "ab"} - {"0-a", "1-a"}
            assert await other.used() == len(found)
            for uuid, instance in found.items():
                assert instance.state != ASSIGNED
                held = await other.placement.allocations_of(uuid)
                assert held is not None and instance.selection is not None
                assert held.allocations.keys() == {instance.node}
                assert held.consumer.generation == instance.selection.generation
            assert [each async for each in other.requests.waiting()] == []

    asyncio.run(run())
