"""The log of state changes of a cell: read by position, in order of commits, each change once."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import AttemptKey, BuildResult, DestroyOrder
from roost.state.cell_database import SCHEMA, state_changes
from roost.state.cell_database.arrivals import AddInstances
from roost.state.cell_database.building import ConfirmAttempt, ReportResults
from roost.state.cell_database.deletions import DeleteInstances, forget_destroyed, note_destroyed
from roost.state.cell_database.state_changes import (
    ReadChanges,
    changes_after,
    has_unnumbered,
    number_new_changes,
    prune_changes,
)
from roost.state.cell_database.tables import state_changes_position
from roost.storage import Database
from support.cells import instance, selection
from support.databases import Place
from support.state_changes import check_log
from support.upgrading import two_processes, upgrade_empty
from support.waiting import patience


def add(database: Database, *uuids: str, at: float = 1.0) -> None:
    new = tuple(instance(uuid, selection=selection("a")) for uuid in uuids)
    database.write_now(AddInstances(new, at))


def number(database: Database) -> int:
    return database.write_now(number_new_changes())


def after(database: Database, position: int | None, most: int = 99, **wanted: object) -> ReadChanges:
    return database.read_now(changes_after(after=position, most=most, **wanted))  # type: ignore[arg-type]


def brief(found: ReadChanges) -> list[tuple[str, str]]:
    return [(each.instance, each.transition.state) for each in found.changes]


def test_the_life_of_an_instance_is_told_by_position(place: Place) -> None:
    with two_processes(place, SCHEMA) as (first, second):
        assert after(second, None) == ReadChanges([], 0, 0, None)
        add(first, "i", "j")
        first.write_now(ConfirmAttempt(AttemptKey("i", 1), "a", 2.0))
        second.write_now(ReportResults((BuildResult("i", "a", 1),), 3.0, "cell1"))
        assert after(second, None).changes == [], "a change has no position before it is numbered"
        assert second.read_now(has_unnumbered())
        assert number(second) == 4
        assert (number(first), first.read_now(has_unnumbered())) == (0, False)
        begun = after(first, None, most=3)
        assert brief(begun) == [("i", "assigned"), ("j", "assigned"), ("i", "starting")]
        assert [each.host for each in begun.changes] == ["a"] * 3
        assert (begun.until, begun.end < begun.last) == (2.0, True)
        first.write_now(DeleteInstances(("i",), 4.0, "cell1"))
        first.write_now(note_destroyed((DestroyOrder("i", 1, "a"),), 5.0))
        second.write_now(forget_destroyed(("i",), 6.0))
        assert number(first) == 3
        rest = after(second, begun.end)
        assert brief(rest) == [("i", state) for state in ("active", "deleting", "destroyed", "gone")]
        assert rest.end == rest.last
        assert brief(after(first, None, state="gone", instance="i", host="a", since=6.0)) == [("i", "gone")]
        assert brief(after(first, None, instance="j")) == [("j", "assigned")]
        assert after(first, None, host="b").end == rest.last
        assert brief(after(first, None, since=5.0)) == [("i", "destroyed"), ("i", "gone")]
        first.read_now(check_log)


def test_reader_misses_nothing_that_is_committed_late(place: Place) -> None:
    """The second writer commits while the first one, which drew the lower id, has not."""
    added, go = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        AddInstances((instance("slow", selection=selection("a")),), 1.0)(connection)
        added.set()
        assert go.wait(patience(30))

    with two_processes(place, SCHEMA) as (first, second), ThreadPoolExecutor(2) as threads:
        writes = [threads.submit(first.write_now, slow)]
        assert added.wait(patience(30))
        if place.kind != "sqlite":  # it has one writer at a time
            add(second, "quick")
            assert number(second) == 1
        seen = after(second, None)
        go.set()
        for write in writes:
            write.result(patience(30))
        assert number(second) == 1
        later = after(second, seen.end)
        assert [each.instance for each in (*seen.changes, *later.changes)][-1] == "slow"
        assert brief(after(second, None)) == [*brief(seen), *brief(later)]


def test_several_processes_number_each_change_once(place: Place) -> None:
    both = threading.Barrier(2, timeout=patience(30))
    uuids = [f"i{each}" for each in range(60)]

    def work(database: Database, mine: list[str]) -> None:
        both.wait()
        for uuid in mine:
            add(database, uuid)
            number(database)

    with two_processes(place, SCHEMA) as databases, ThreadPoolExecutor(2) as threads:
        list(threads.map(work, databases, (uuids[::2], uuids[1::2])))
        while databases[0].read_now(has_unnumbered()):
            number(databases[0])
        found = after(databases[1], None)
        assert sorted(each.instance for each in found.changes) == sorted(uuids)
        positions = [each.position for each in found.changes]
        assert len(set(positions)) == len(positions)
        assert found.last == positions[-1]


def test_who_numbers_does_not_wait_for_another(place: Place) -> None:
    """Else two transactions, each with other works, may wait for each other."""
    if place.kind == "sqlite":
        return  # it has one writer at a time
    held, go = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        connection.execute(sa.select(state_changes_position.c.position).with_for_update())
        held.set()
        assert go.wait(patience(30))

    with two_processes(place, SCHEMA) as (first, _), ThreadPoolExecutor(1) as threads:
        second = Database(place.at(0))
        add(first, "i")
        holding = threads.submit(first.write_now, hold)
        assert held.wait(patience(30))
        assert number(second) == 0
        go.set()
        holding.result(patience(30))
        assert number(second) == 1
        asyncio.run(second.close())


def test_a_read_looks_through_a_bounded_part_and_old_changes_are_pruned(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(state_changes, "LOOKED_AT_ONCE", 3)
    database = Database(f"sqlite:///{tmp_path}/cell.db")
    upgrade_empty(SCHEMA, database)
    for each in range(10):
        add(database, f"i{each}", at=float(each))
    number(database)
    none = after(database, None, instance="i9")
    assert (none.changes, none.end, none.last, none.until) == ([], 3, 10, 2.0)
    assert brief(after(database, 9, instance="i9")) == [("i9", "assigned")]
    assert database.write_now(prune_changes(6.0)) == 6
    assert [each.position for each in after(database, None).changes] == [7, 8, 9, 10]
    assert [each.position for each in after(database, None, host="a").changes] == [7, 8, 9]
    assert [each.position for each in after(database, 1).changes] == [7, 8, 9, 10], "the rest is skipped"
    database.write_now(prune_changes(99.0))
    assert after(database, None) == ReadChanges([], 10, 10, None)
    add(database, "later", at=100.0)
    number(database)
    assert [each.position for each in after(database, 10).changes] == [11]
    assert after(database, 99).end == 11, "the position of a later time than the database's"
    asyncio.run(database.close())
