"""The log of events: in order of commits, read from positions, each observed event once."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy.engine import Connection

from roost.state.api_database import events
from roost.state.api_database.event_types import CloudEvent
from roost.state.api_database.events import (
    EventFilter,
    MarkedEvent,
    ReadEvents,
    append_events,
    events_after,
    observe_events,
    prune_events,
)
from roost.state.api_database.tables import SCHEMA
from roost.storage import Database
from support.databases import Place
from support.upgrading import two_processes, upgrade_empty
from support.waiting import patience


def event(host: str, at: float = 1.0, cell: str | None = "cell1") -> CloudEvent:
    return CloudEvent(at=at, kind="host_up", cell=cell, host=host)


def append(database: Database, *new: CloudEvent) -> None:
    database.write_now(lambda connection: append_events(connection, new))


def after(database: Database, position: int | None, most: int = 9, **wanted: object) -> ReadEvents:
    found = database.read_now(events_after(position, most, EventFilter(**wanted)))  # type: ignore[arg-type]
    assert found is not None
    assert [position for position, _ in found.numbered] == list(found.ids)
    return found._replace(until=None, ids=())


def test_events_are_read_by_page_and_filter(place: Place) -> None:
    with two_processes(place, SCHEMA) as (first, second):
        assert after(second, None) == ReadEvents([], 0, 0)
        new = [event("a", 1.0), event("b", 2.0), event("a", 3.0, cell=None)]
        append(first, *new[:2])
        append(second, new[2])
        assert after(first, None) == ReadEvents(new, 3, 3)
        assert after(first, None, most=2) == ReadEvents(new[:2], 2, 3)
        assert after(first, 2) == ReadEvents(new[2:], 3, 3)
        assert after(first, 3) == ReadEvents([], 3, 3)
        assert after(first, None, host="a").events == [new[0], new[2]]
        assert after(first, None, cell="cell1", host="a").events == new[:1]
        assert after(first, None, since=2.0) == ReadEvents(new[1:], 3, 3)
        assert after(first, None, since=9.0) == ReadEvents([], 3, 3)
        assert first.read_now(events_after(4, 9)) is None, "a position of a later time"


def test_what_is_rolled_back_has_not_happened(place: Place) -> None:
    def fail(connection: Connection) -> None:
        append_events(connection, [event("never")])
        raise LookupError

    with two_processes(place, SCHEMA) as (first, second):
        with pytest.raises(LookupError):
            first.write_now(fail)
        append(first, event("a"))
        assert after(second, None).events == [event("a")]


def test_reader_misses_nothing_while_an_earlier_writer_has_not_committed(place: Place) -> None:
    appended, go, begun = threading.Event(), threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        append_events(connection, [event("slow")])
        appended.set()
        assert go.wait(patience(30))

    def quick(connection: Connection) -> None:
        begun.set()
        append_events(connection, [event("quick")])

    with two_processes(place, SCHEMA) as (first, second), ThreadPoolExecutor(2) as threads:
        writes = [threads.submit(first.write_now, slow)]
        assert appended.wait(patience(30))
        writes.append(threads.submit(second.write_now, quick))
        begun.wait(0.2)  # SQLite lets the second transaction begin only after the first one
        seen: list[CloudEvent] = []
        position = None
        try:
            for _ in range(5):
                page = after(second, position)
                seen += page.events
                position = page.position
        finally:
            go.set()
        for write in writes:
            write.result(patience(30))
        seen += after(second, position).events
        assert seen == after(second, None).events, "in the order in which they were committed"
        # A cluster with several writers prefers the quick one, and the slow one is run again.
        assert sorted(each.host or "" for each in seen) == ["quick", "slow"]


def test_what_several_observe_is_one_event(place: Place) -> None:
    both = threading.Barrier(2, timeout=patience(30))
    seen = [MarkedEvent(f"mark {number}", event(f"h{number}")) for number in range(20)]

    def observe(database: Database, part: list[MarkedEvent]) -> int:
        both.wait()
        return database.write_now(observe_events(tuple(part)))

    with two_processes(place, SCHEMA) as databases, ThreadPoolExecutor(2) as threads:
        written = list(threads.map(observe, databases, (seen[:15], seen[5:])))
        assert sum(written) == 20, written
        found = after(databases[0], None, most=99).events
        assert sorted(each.host or "" for each in found) == sorted(f"h{number}" for number in range(20))
        assert databases[0].write_now(observe_events(tuple(seen))) == 0, "a second time changes nothing"
        assert databases[0].write_now(observe_events((seen[0], seen[0]))) == 0


def test_old_events_are_pruned_and_positions_stay(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(events, "LOOKED_AT_ONCE", 3)
    database = Database(f"sqlite:///{tmp_path}/api.db")
    upgrade_empty(SCHEMA, database)
    append(database, *(event(f"h{number}", float(number)) for number in range(10)))
    assert database.write_now(prune_events(6.0)) == 6
    assert after(database, None, most=2) == ReadEvents([event("h6", 6.0), event("h7", 7.0)], 8, 10)
    assert after(database, 1, most=2).position == 8, "what was pruned is skipped"
    # A filter that lets nothing pass looks through a bounded part, and the reader goes on from there.
    assert after(database, None, host="h9") == ReadEvents([], 9, 10)
    assert after(database, 9, host="h9") == ReadEvents([event("h9", 9.0)], 10, 10)
    database.write_now(prune_events(99.0))
    assert after(database, None) == ReadEvents([], 10, 10)
    append(database, event("later"))
    assert after(database, 10).events == [event("later")]
    asyncio.run(database.close())


def test_details_are_bounded_and_hide_secrets(tmp_path) -> None:
    database = Database(f"sqlite:///{tmp_path}/api.db")
    upgrade_empty(SCHEMA, database)
    said = CloudEvent(at=1.0, kind="host_disabled", host="a", detail="password=hunter2 " + "x" * 5000)
    append(database, said)
    [found] = after(database, None).events
    assert found.detail is not None
    assert "hunter2" not in found.detail
    assert len(found.detail) <= events.MOST_OF_DETAIL
    asyncio.run(database.close())
