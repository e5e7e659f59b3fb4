"""A whole system in one process: opened, worked, closed, opened again."""

import asyncio
import sqlite3
from contextlib import closing

import msgspec
import pytest

from roost.conductor.hosts.cells import CellRegistry
from roost.ledger.retention import CommitRetention
from roost.model.errors import OperatorError
from roost.model.instance import ACTIVE, ERROR
from roost.model.inventory import Inventory
from roost.scheduler.nodes.feed import NodeFeed
from roost.server.all_in_one.layout import kept_layout, uniform_layout
from roost.state.leases import Tenure
from roost.storage import DatabaseUnavailable
from support.systems import SMALL, differences, opened_system, states, wanted
from support.waiting import patience


def test_what_is_asked_for_runs_and_what_is_deleted_is_gone(tmp_path) -> None:
    async def run() -> None:
        async with opened_system(tmp_path) as system:
            for name in ("first", "second"):
                await system.super_conductor.accept(wanted(name, 5))
            await system.settle()
            assert set((await states(system)).values()) == {ACTIVE}
            await system.super_conductor.delete(["first-0", "second-4"])
            await system.settle()
            assert len(await states(system)) == 8
        assert await differences(tmp_path) == []

    asyncio.run(run())


def test_system_that_is_closed_at_once_goes_on_when_it_is_opened_again(tmp_path) -> None:
    async def run() -> None:
        async with opened_system(tmp_path) as system:
            await system.super_conductor.accept(wanted("first", 5))
        async with opened_system(tmp_path, failure_rate=0.5) as system:
            await system.super_conductor.accept(wanted("second", 5))
            await asyncio.sleep(0.02)
        async with opened_system(tmp_path) as system:
            await system.settle()
            found = await states(system)
            assert len(found) == 10
            assert set(found.values()) <= {ACTIVE, ERROR}
            assert [state for name, state in found.items() if name.startswith("first")] == [ACTIVE] * 5
        assert await differences(tmp_path) == []

    asyncio.run(run())


def test_system_is_not_settled_while_work_waits_for_an_owner(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with opened_system(tmp_path) as system:
            # As on a machine that is so slow that the process renews its lease too late.
            monkeypatch.setattr(Tenure, "holds", lambda self, now: False)
            await system.super_conductor.accept(wanted("first", 5))
            settling = asyncio.create_task(system.settle())
            await asyncio.sleep(0.3)
            assert not settling.done()
            monkeypatch.undo()
            await settling
            assert [*(await states(system)).values()] == [ACTIVE] * 5

    asyncio.run(run())


def test_builds_that_fail_are_tried_on_alternates(tmp_path) -> None:
    async def run() -> None:
        async with opened_system(tmp_path, failure_rate=0.4) as system:
            await system.super_conductor.accept(wanted("first", 20))
            await system.settle()
            every = [each for cell in system.cells.values() for each in await cell.every()]
            assert len(every) == 20
            assert any(each.attempt > 1 for each in every)
            for each in every:
                assert each.state == ACTIVE or each.reason
        assert await differences(tmp_path) == []

    asyncio.run(run())


def test_reason_that_cannot_be_encoded_stops_neither_the_system_nor_its_next_start(tmp_path) -> None:
    async def run() -> None:
        for life in ("first", "second"):
            async with opened_system(tmp_path, failure_rate=1.0, reason="no \udc80 IP\0") as system:
                await system.super_conductor.accept(wanted(life, 2))
                await system.settle()
                every = [each for cell in system.cells.values() for each in await cell.every()]
                assert {each.state for each in every} == {ERROR}
                assert all("no \ufffd IP\ufffd" in (each.reason or "") for each in every)
        assert await differences(tmp_path) == []

    asyncio.run(run())


def test_request_with_text_that_cannot_be_encoded_is_carried_out(tmp_path) -> None:
    async def run() -> None:
        asked = wanted("first")
        spec = msgspec.structs.replace(asked.spec, scheduler_hints={"query\0": ("\udc80",)})
        async with opened_system(tmp_path) as system:
            await system.super_conductor.accept(msgspec.structs.replace(asked, spec=spec))
            await system.settle()
            assert set((await states(system)).values()) == {ACTIVE}

    asyncio.run(run())


def test_request_that_cannot_be_read_does_not_keep_the_others_from_being_resumed(tmp_path) -> None:
    async def run() -> None:
        async with opened_system(tmp_path) as system:
            await system.super_conductor.accept(wanted("first"))
            await system.settle()
        with closing(sqlite3.connect(tmp_path / "api.db")) as database, database:
            database.execute("INSERT INTO build_requests VALUES ('bad', '{\"request_id\": 5}', 1.0, NULL, 0)")
        async with opened_system(tmp_path) as system:
            await system.super_conductor.accept(wanted("second"))
            await system.settle()
            assert set((await states(system)).values()) == {ACTIVE}

    asyncio.run(run())


def test_part_that_dies_is_noticed(tmp_path, monkeypatch) -> None:
    async def fail(feed: NodeFeed) -> None:
        raise ZeroDivisionError("a defect")

    async def run() -> None:
        async with opened_system(tmp_path) as system:
            # Machines are begun again after a defect; the feed of the node table is none.
            monkeypatch.setattr(NodeFeed, "refresh", fail)
            error = await asyncio.wait_for(system.broken(), patience(60))
            assert "ZeroDivisionError" in repr(error)
            with pytest.raises(ZeroDivisionError):
                await system.settle()

    asyncio.run(run())


def test_trimming_outlives_an_outage(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with opened_system(tmp_path, retention=CommitRetention(interval=0.01)) as system:
            calls = []

            async def fail(keep: int, older_than: float, pause: float) -> int:
                calls.append(keep)
                raise DatabaseUnavailable("gone")

            monkeypatch.setattr(system.ledger, "trim", fail)
            async with asyncio.timeout(patience(60)):
                while len(calls) < 3:
                    await asyncio.sleep(0.01)
            await system.settle()

    asyncio.run(run())


def test_layout_is_kept_and_cannot_be_another(tmp_path) -> None:
    async def run() -> None:
        async with opened_system(tmp_path):
            pass
        assert kept_layout(tmp_path) == SMALL
        larger = uniform_layout(7, 2, {"VCPU": Inventory(4)})
        with pytest.raises(OperatorError, match="set up with other hosts"):
            async with opened_system(tmp_path, larger):
                pass
        assert kept_layout(tmp_path) == SMALL

    asyncio.run(run())


def test_system_starts_with_a_cell_down_and_its_hosts_join_when_its_database_is_back(tmp_path) -> None:
    path = tmp_path / "cell2.db"

    async def run() -> None:
        async with opened_system(tmp_path):
            pass
        whole = path.read_bytes()
        path.write_bytes(b"This is not a database. " * 1000)
        async with opened_system(tmp_path) as system:
            cells = CellRegistry(
                system.api, system.cells, system.super_conductor.watch, system.aggregates.words
            )
            counted = {seen.mapping.name: seen.counts is not None for seen in await cells.list()}
            assert counted == {"cell0": True, "cell1": True, "cell2": False}
            # The hosts of the other cell take as many as they have room for.
            await system.super_conductor.accept(wanted("first", 12))
            await system.super_conductor.idle()
            assert len(await system.cells["cell1"].every()) == 12
            path.write_bytes(whole)
            async with asyncio.timeout(patience(60)):
                while system.table.seen_since(0.0).sum() < 6:
                    await asyncio.sleep(0.05)
            await system.super_conductor.accept(wanted("second", 12))
            await system.settle()
            assert set((await states(system)).values()) == {ACTIVE}
            assert len(await system.cells["cell2"].every()) == 12
        assert await differences(tmp_path) == []

    asyncio.run(run())


def test_hosts_are_dealt_out_to_cells_in_turn() -> None:
    layout = uniform_layout(5, 2, {})
    names = {cell: [there.host.name for there in hosts] for cell, hosts in layout.cells.items()}
    assert names == {"cell1": ["host-0001", "host-0003", "host-0005"], "cell2": ["host-0002", "host-0004"]}
    assert layout.hosts == 5


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("api.db", "no database"),
        ("records.db", "no database"),
        *((name, "newer") for name in ("api.db", "cell0.db", "cell2.db", "records.db")),
    ],
)
def test_damaged_file_is_named_and_left_as_it_is(tmp_path, name, damage) -> None:
    path = tmp_path / name

    async def set_up() -> None:
        async with opened_system(tmp_path):
            pass

    async def open_again() -> None:
        with pytest.raises(OperatorError, match=name):
            async with opened_system(tmp_path):
                pass

    asyncio.run(set_up())
    if damage == "newer":
        with closing(sqlite3.connect(path)) as connection, connection:
            tables = connection.execute("select name from sqlite_master where name like '%_schema'")
            for (table,) in tables.fetchall():
                connection.execute(f"update {table} set version_num = 'ffff'")
    else:
        path.write_bytes(b"This is not a database. " * 1000)
    before = path.read_bytes()
    asyncio.run(open_again())
    assert path.read_bytes() == before
