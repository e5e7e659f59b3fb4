"""The newest events of several logs, read backwards: each once, in order of time, whatever the pages."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from roost.conductor.events.newest import LATEST, NewestEvents, NewestQuery
from roost.conductor.hosts.watch import ServiceWatch
from roost.state import newest_rows
from roost.state.api_database.event_types import CloudEvent
from roost.state.api_database.events import append_events
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.api_database.tables import events
from roost.state.cell_database import SCHEMA as CELL
from roost.state.cell_database import Cell
from roost.state.cell_database.tables import state_changes
from roost.storage import Database, DatabaseUnavailable

CELLS = ("cell1", "cell2")
TIMES = st.lists(st.integers(0, 6), max_size=12)


class Logs:
    """The logs of an API database and of two cells, to be filled with events at given times."""

    def __init__(self, folder: Path) -> None:
        self.api = Database(f"sqlite:///{folder / 'api.db'}")
        CONDUCTOR.prepare(self.api)
        self.cells = {name: Cell(name, Database(f"sqlite:///{folder / name}.db")) for name in CELLS}
        for cell in self.cells.values():
            CELL.prepare(cell.database)
        self.reader = NewestEvents(self.api, self.cells, ServiceWatch(self.api, self.cells))

    async def fill(self, api: list[int], *of_cells: list[int]) -> None:
        def write(connection: sa.Connection) -> None:
            connection.execute(sa.delete(events))
            new = [
                CloudEvent(at=float(at), kind="host_up", host=f"h{number % 2}", name=f"api {number}")
                for number, at in enumerate(api)
            ]
            append_events(connection, new)

        await self.api.write(write)
        for cell, times in zip(self.cells.values(), of_cells, strict=True):
            rows = [
                {
                    "at": float(at),
                    "state": "active",
                    "instance_uuid": f"{cell.name} {number}",
                    "host": f"h{number % 2}",
                    "line": f'{{"state":"active","at":{float(at)},"attempt":1,"ordinal":1}}\n',
                }
                for number, at in enumerate(times)
            ]

            def write_changes(connection: sa.Connection, rows: list[dict[str, Any]] = rows) -> None:
                connection.execute(sa.delete(state_changes))
                if rows:
                    connection.execute(sa.insert(state_changes), rows)

            await cell.write(write_changes)

    async def read(self, limit: int, **wanted: Any) -> list[tuple[float, str]]:
        """All events, page by page: the time and a name of each."""
        found: list[tuple[float, str]] = []
        query = NewestQuery(limit=limit, **wanted)
        for _ in range(300):
            page = await self.reader.page(query)
            found += [(each.at, each.name or each.instance or "") for each in page.events]
            assert len(page.events) <= limit
            if page.until is None:
                return found
            query = NewestQuery(limit=limit, **{**wanted, "until": page.until, "skip": page.skip})
        raise AssertionError("the pages do not end")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logs]:
    opened = Logs(tmp_path_factory.mktemp("logs"))
    yield opened
    for database in (opened.api, *(cell.database for cell in opened.cells.values())):
        asyncio.run(database.close())


@given(TIMES, TIMES, TIMES, st.integers(1, 5))
def test_each_event_is_on_one_page_in_order_of_time(
    logs: Logs, api: list[int], one: list[int], two: list[int], limit: int
) -> None:
    async def check() -> None:
        await logs.fill(api, one, two)
        found = await logs.read(limit)
        assert [at for at, _ in found] == sorted(map(float, (*api, *one, *two)), reverse=True)
        assert len({name for _, name in found}) == len(found)
        late = await logs.read(limit, since=3.0, until=5.0)
        assert late == [(at, name) for at, name in found if 3.0 <= at <= 5.0]

    asyncio.run(check())


@given(st.integers(1, 5), st.integers(0, 1000))
def test_a_filter_that_lets_few_pass_is_looked_for_in_windows(logs: Logs, limit: int, seed: int) -> None:
    drawn = random.Random(seed)
    api, one, two = (sorted(drawn.sample(range(200), 40)) for _ in range(3))

    async def check() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(newest_rows, "LOOKED_AT_ONCE", 7)
            await logs.fill(api, one, two)
            found = await logs.read(limit, host="h1")
        times = sorted(
            (times[number] for times in (api, one, two) for number in range(1, 40, 2)), reverse=True
        )
        assert [at for at, _ in found] == times
        assert len({name for _, name in found}) == len(found)

    asyncio.run(check())


def test_kinds_and_cells_are_asked_for(logs: Logs) -> None:
    async def check() -> None:
        await logs.fill([1, 2], [3], [4])
        assert await logs.read(10, kinds=("host_up",)) == [(2.0, "api 1"), (1.0, "api 0")]
        assert await logs.read(10, kinds=("host_down",)) == []
        assert await logs.read(10, kinds=("instance_active",)) == [(4.0, "cell2 0"), (3.0, "cell1 0")]
        assert await logs.read(10, kinds=("instance_lost",)) == []
        assert await logs.read(10, kinds=("host_up", "instance_active"), cell="cell1") == [(3.0, "cell1 0")]
        assert await logs.read(10, instance="cell2 0") == [(4.0, "cell2 0")]
        assert await logs.read(10, cell="elsewhere") == []

    asyncio.run(check())


def test_a_cell_that_is_away_is_named(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(work: object) -> object:
        raise DatabaseUnavailable("away")

    async def check() -> None:
        await logs.fill([1], [3], [4])
        monkeypatch.setattr(logs.cells["cell2"], "read", fail)
        page = await logs.reader.page(NewestQuery(limit=10))
        assert page.cells_down == ["cell2"]
        assert [each.at for each in page.events] == [3.0, 1.0]
        assert NewestQuery(limit=1).until == LATEST

    asyncio.run(check())
