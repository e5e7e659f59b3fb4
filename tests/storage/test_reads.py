"""Reads and looks: what they see, and what a connection that failed leaves behind."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import ProgrammingError

from roost.storage import Database, DatabaseUnavailable
from support.things import count, put, things, using


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "things.db"


def test_a_look_sees_what_another_has_just_written(place):
    async def use(database: Database) -> None:
        other = Database(place.url)
        assert await database.autocommit_read(count) == 0
        await other.write(put(1))
        assert await database.autocommit_read(count) == 1
        await other.close()

    using(place, use)


def test_connections_that_died_while_nobody_used_them_are_replaced(place):
    own = {"postgresql": "SELECT pg_backend_pid()", "sqlite": "SELECT 1"}.get(
        place.kind, "SELECT CONNECTION_ID()"
    )
    end = {"postgresql": "SELECT pg_terminate_backend({})", "sqlite": "SELECT {}"}.get(place.kind, "KILL {}")

    def number(connection: sa.Connection) -> int:
        return connection.exec_driver_sql(own).scalar_one()

    async def use(database: Database) -> None:
        numbers = [await way(number) for way in (database.autocommit_read, database.read, database.write)]
        other = Database(place.url)
        for each in numbers:
            other.write_now(lambda connection, each=each: connection.exec_driver_sql(end.format(each)))
        if place.kind == "postgresql":
            # The server only says to its processes that they are to end.
            there = f"SELECT count(*) FROM pg_stat_activity WHERE pid IN ({', '.join(map(str, numbers))})"
            while other.write_now(lambda connection: connection.exec_driver_sql(there).scalar_one()):
                await asyncio.sleep(0.01)
        await other.close()
        assert await asyncio.gather(*(database.autocommit_read(count) for _ in range(3))) == [0, 0, 0]
        assert await database.read(count) == 0
        await database.write(put(1))
        assert await database.read(count) == 1

    using(place, use)


def test_an_autocommit_read_that_fails_leaves_the_next_one_alone(place):
    async def use(database: Database) -> None:
        assert await database.autocommit_read(count) == 0
        with pytest.raises((ProgrammingError, DatabaseUnavailable)):
            await database.autocommit_read(
                lambda connection: connection.execute(sa.text("SELECT * FROM no_such"))
            )
        assert await database.autocommit_read(count) == 0

    using(place, use)


def test_a_look_that_went_wrong_in_every_way_leaves_the_next_one_alone(path, monkeypatch):
    def no_rollback(*_: object) -> None:
        raise sqlite3.OperationalError("no rollback either")

    async def use(database: Database) -> None:
        assert await database.autocommit_read(count) == 0
        with monkeypatch.context() as patched:
            patched.setattr(SQLiteDialect_pysqlite, "do_rollback", no_rollback)
            with pytest.raises(DatabaseUnavailable):
                await database.autocommit_read(
                    lambda connection: connection.execute(sa.text("SELECT * FROM no_such"))
                )
        with pytest.raises(LookupError):
            await database.autocommit_read(lambda connection: {}["nothing"])
        assert await database.autocommit_read(count) == 0

    using(path, use)


def test_a_read_sees_one_snapshot(place):
    async def use(database: Database) -> None:
        other = Database(place.url)

        def look(connection: sa.Connection) -> tuple[int, int]:
            count = sa.text("SELECT count(*) FROM things")
            before = connection.execute(count).scalar_one()
            other.write_now(put(1))
            return before, connection.execute(count).scalar_one()

        assert await database.read(look) == (0, 0)
        assert things(database) == [1]
        await other.close()

    using(place, use)


def test_no_short_read_waits_for_a_long_one(place):
    async def use(database: Database) -> None:
        began, ended = threading.Event(), threading.Event()

        def long(connection: sa.Connection) -> int:
            found = count(connection)
            began.set()
            ended.wait()
            return found

        reading = asyncio.create_task(database.read(long))
        await asyncio.to_thread(began.wait)
        try:
            assert await database.autocommit_read(count) == 0
            assert await database.read(count, by_key=True) == 0
            assert await database.load(count) == 0
            await database.write(put(1))
            assert not reading.done()
        finally:
            ended.set()
        assert await reading == 0

    using(place, use)
