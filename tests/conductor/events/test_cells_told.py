"""Cells whose databases go away and come back are told once, however many conductors see it."""

import asyncio
from typing import Any

from roost.conductor.events.observed import SeenOutage, note_outages_now
from roost.conductor.hosts.watch import ServiceWatch
from roost.state.api_database.cell_mappings import CellMapping, write_cell_mappings
from roost.state.api_database.events import events_after
from roost.state.api_database.tables import SCHEMA
from roost.state.leases import LeaseTimes
from roost.storage import Database, DatabaseUnavailable
from support.conductor_api import ADMIN, api
from support.databases import Place
from support.upgrading import upgrade_empty

EVENTS = "/v1/events"


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def away(monkeypatch: Any, url: str) -> set[str]:
    """The URLs of databases that do not answer, to be changed by a test; at first ``url``."""
    silent = {url}
    read = Database.read

    async def perhaps(database: Database, *works: Any, **named: Any) -> Any:
        if str(database.url) in silent:
            raise DatabaseUnavailable("cannot reach password=hunter2")
        return await read(database, *works, **named)

    monkeypatch.setattr(Database, "read", perhaps)
    return silent


def test_a_cell_that_is_away_and_back_is_told_once_by_two_conductors(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            clock, lease = Clock(), LeaseTimes().lease

            def watch() -> ServiceWatch:
                return ServiceWatch(now.requests.database, now.cells, monotonic=clock, clock=clock)

            first, second = watch(), watch()

            async def told() -> list[tuple[str, str, str]]:
                await asyncio.gather(first.look(), second.look())
                page = (await client.get(EVENTS, headers=ADMIN)).json()
                return [(each["kind"], each["cell"], each["detail"]) for each in page["events"]]

            assert await told() == []
            silent = away(monkeypatch, str(now.cells["cell2"].database.url))
            assert await told() == [], "it may be back at once"
            silent.clear()
            clock.now += lease
            assert await told() == []
            silent.add(str(now.cells["cell2"].database.url))
            await told()
            clock.now += lease
            [(kind, cell, why)] = await told()
            assert (kind, cell) == ("cell_down", "cell2")
            assert "cannot reach" in why
            assert "hunter2" not in why
            clock.now += lease
            assert len(await told()) == 1
            # The conductors that saw it go are gone, too: a later one tells that it is back.
            first, second = watch(), watch()
            clock.now += 60.0
            assert len(await told()) == 1
            silent.clear()
            assert (await told())[1:] == [("cell_up", "cell2", "after 68 s")]
            assert len(await told()) == 2

    asyncio.run(run())


def test_a_conductor_that_begins_while_a_cell_is_away_tells_it(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            clock = Clock()
            away(monkeypatch, str(now.cells["cell1"].database.url))
            watch = ServiceWatch(now.requests.database, now.cells, monotonic=clock, clock=clock)
            await watch.look()
            clock.now += LeaseTimes().lease
            await watch.look()
            page = (await client.get(EVENTS, params={"kind": "cell_down"}, headers=ADMIN)).json()
            assert [each["cell"] for each in page["events"]] == ["cell1"]

    asyncio.run(run())


def test_two_processes_tell_an_outage_once(place: Place) -> None:
    async def run() -> None:
        first, second = (Database(place.at(number)) for number in range(2))
        upgrade_empty(SCHEMA, first)
        await first.write(write_cell_mappings((CellMapping("c", "cell_c"),)))
        for away, at in ((True, 1.0), (False, 4.0)):
            seen = note_outages_now((SeenOutage("c", away, at, "gone"),))
            await asyncio.gather(*(database.write(seen) for database in (first, second, first)))
        found = await second.read(events_after(None, 99))
        assert found is not None
        told = [(each.kind, each.detail) for each in found.events]
        assert told == [("cell_down", "gone"), ("cell_up", "after 3 s")]
        for database in (first, second):
            await database.close()

    asyncio.run(run())
