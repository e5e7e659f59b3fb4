"""A database without space says so until a write succeeds, and a trim makes room."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.cli import db
from roost.ledger import SCHEMA
from roost.model.errors import OperatorError
from roost.placement.readiness import database_verdict
from roost.storage import Database, DatabaseFull, check_writes, make_room


@pytest.fixture
def database(tmp_path: Path) -> Database:
    database = Database(f"sqlite:///{tmp_path}/roost.db")
    SCHEMA.upgrade(database)
    return database


def write_much(connection: Connection) -> None:
    connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS much (text)")
    connection.exec_driver_sql("INSERT INTO much VALUES (zeroblob(1000000))")


def limit(pages: int) -> Callable[[Connection], None]:
    def work(connection: Connection) -> None:
        now = connection.exec_driver_sql("PRAGMA page_count").scalar() or 0
        connection.exec_driver_sql(f"PRAGMA max_page_count = {now + pages}")

    return work


def test_a_full_database_is_not_ready_until_a_write_succeeds(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        await check_writes(database, SCHEMA)
        await database.write(limit(0))
        with pytest.raises(DatabaseFull):
            await database.write(write_much)
        assert isinstance(database.refused, DatabaseFull)
        with monkeypatch.context() as away:
            # The disk itself: even a write of what is there has no space.
            away.setattr(type(SCHEMA), "write_same", lambda self, connection: write_much(connection))
            with pytest.raises(DatabaseFull) as refused:
                await check_writes(database, SCHEMA)
        assert "no space left: every write fails" in (database_verdict(refused.value) or "")
        await check_writes(database, SCHEMA)
        assert database.refused is None
        await database.close()

    asyncio.run(run())


def test_no_write_is_made_while_none_was_refused(database: Database) -> None:
    with database.engine.connect() as connection:
        before = connection.scalar(sa.text("PRAGMA data_version"))
        asyncio.run(check_writes(database, SCHEMA))
        assert connection.scalar(sa.text("PRAGMA data_version")) == before
    asyncio.run(database.close())


def test_room_is_made_of_the_log(database: Database, tmp_path: Path) -> None:
    database.write_now(write_much)
    log = tmp_path / "roost.db-wal"
    assert log.stat().st_size > 1_000_000
    make_room(database)
    assert log.stat().st_size == 0
    asyncio.run(database.close())


def test_a_trim_without_space_takes_less_at_once_and_then_says_how(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    left = [3]

    def trim(connection: Connection, keep: int, older_than: float, at_once: int) -> int:
        asked.append(at_once)
        if at_once > fits:
            raise DatabaseFull("no space")
        left[0] -= 1
        return left[0]

    monkeypatch.setattr(db, "trim_commits", trim)
    fits = 100
    assert sum(db._trimmed(database, 1, 0.0)) == 3
    assert asked == [1000, 100, 100, 100]
    fits, asked[:] = 0, []
    with pytest.raises(OperatorError, match="free some MiB on the disk"):
        list(db._trimmed(database, 1, 0.0))
    assert asked == [1000, 100, 10, 1]
    asyncio.run(database.close())
