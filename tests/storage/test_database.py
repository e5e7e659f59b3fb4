"""One database: writes share transactions, errors are their own work's, trouble is said in one line."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from roost.storage import Database, DatabaseUnavailable

INSERT = "INSERT INTO things VALUES ({})"


def put(number: int) -> Callable[[sa.Connection], int]:
    def work(connection: sa.Connection) -> int:
        connection.exec_driver_sql(INSERT.format(number))
        return number

    return work


def things(database: Database) -> list[int]:
    query = sa.text("SELECT number FROM things ORDER BY number")
    return database.read_now(lambda connection: list(connection.execute(query).scalars()))


def using(path: Path, use: Callable[[Database], Any]) -> Any:
    """Run ``use`` with a database that has an empty table of things."""

    async def run() -> Any:
        database = Database(f"sqlite:///{path}")
        create = "CREATE TABLE IF NOT EXISTS things (number INTEGER PRIMARY KEY CHECK (number < 100))"
        database.write_now(lambda connection: connection.exec_driver_sql(create))
        try:
            return await use(database)
        finally:
            await database.close()

    return asyncio.run(run())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "things.db"


def count_commits(database: Database) -> list[object]:
    commits: list[object] = []
    sa.event.listen(database.engine, "commit", commits.append)
    return commits


def test_writes_that_wait_together_share_a_transaction(path):
    async def use(database: Database) -> None:
        commits = count_commits(database)
        assert await asyncio.gather(*(database.write(put(number)) for number in range(50))) == list(range(50))
        assert len(commits) <= 2
        assert things(database) == list(range(50))

    using(path, use)


def test_an_error_is_only_its_own_works(path):
    async def use(database: Database) -> None:
        def half_done(connection: sa.Connection) -> None:
            put(60)(connection)
            raise LookupError("changed my mind")

        works = [put(1), put(100), put(2), half_done, put(1), put(3)]
        answers = await asyncio.gather(*map(database.write, works), return_exceptions=True)
        kinds = [type(answer).__name__ for answer in answers]
        assert kinds == ["int", "IntegrityError", "int", "LookupError", "IntegrityError", "int"]
        assert things(database) == [1, 2, 3]

    using(path, use)


def test_a_write_that_nobody_waits_for_any_more_harms_no_other(path):
    async def use(database: Database) -> None:
        tasks = [asyncio.create_task(database.write(put(number))) for number in range(5)]
        await asyncio.sleep(0)
        tasks[2].cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [answer for answer in answers if isinstance(answer, int)] == [0, 1, 3, 4]

    using(path, use)


def test_closing_finishes_what_waits_and_refuses_what_comes(path):
    async def use(database: Database) -> None:
        tasks = [asyncio.create_task(database.write(put(number))) for number in range(5)]
        await asyncio.sleep(0)
        await database.close()
        assert await asyncio.gather(*tasks) == list(range(5))
        for late in (database.write(put(6)), database.read(lambda connection: 1)):
            with pytest.raises(DatabaseUnavailable, match="is closed"):
                await late

    using(path, use)


def undone_by_server(code: object) -> OperationalError:
    """What the MariaDB driver says of a deadlock or a failed certification (1213), or of something else."""
    return OperationalError("statement", None, Exception(code, "try restarting transaction"))


def test_what_the_server_undid_for_anothers_sake_is_run_again(path):
    async def use(database: Database) -> None:
        refusals = [1213, 1213]

        def work(connection: sa.Connection) -> int:
            put(7)(connection)
            if refusals:
                raise undone_by_server(refusals.pop())
            return 7

        assert await database.write(work) == 7
        assert things(database) == [7]

    using(path, use)


def test_what_the_server_undoes_every_time_ends_with_its_error(path):
    async def use(database: Database) -> None:
        def work(connection: sa.Connection) -> None:
            raise undone_by_server(1213)

        with pytest.raises(DatabaseUnavailable, match="try restarting"):
            await database.write(work)

    using(path, use)


def test_a_batch_whose_fate_is_unknown_is_not_repeated(path):
    async def use(database: Database) -> None:
        runs: list[int] = []

        def lost(connection: sa.Connection) -> None:
            runs.append(1)
            error = undone_by_server(2013)
            error.connection_invalidated = True
            raise error

        answers = await asyncio.gather(*(database.write(lost) for _ in range(3)), return_exceptions=True)
        assert [type(answer).__mro__[1] for answer in answers] == [DatabaseUnavailable] * 3
        assert len(runs) == 1

    using(path, use)


def test_a_batch_that_cannot_begin_waits_for_the_database_once(path, monkeypatch):
    monkeypatch.setattr("roost.storage.engine.BUSY_SECONDS", 0.2)

    async def use(database: Database) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            writes = asyncio.gather(*(database.write(put(n)) for n in range(20)), return_exceptions=True)
            answers = await asyncio.wait_for(writes, 2)
        assert {str(answer) for answer in answers} == {f"database sqlite:///{path}: database is locked"}

    using(path, use)


def test_a_read_sees_one_snapshot(path):
    async def use(database: Database) -> None:
        def look(connection: sa.Connection) -> tuple[int, int]:
            count = sa.text("SELECT count(*) FROM things")
            before = connection.execute(count).scalar_one()
            with closing(sqlite3.connect(path)) as other, other:
                other.execute(INSERT.format(1))
            return before, connection.execute(count).scalar_one()

        assert await database.read(look) == (0, 0)
        assert things(database) == [1]

    using(path, use)


def test_read_only_reads_and_does_not_write(path):
    async def use(database: Database) -> None:
        await database.write(put(1))

    async def read() -> None:
        database = Database(f"sqlite:///{path}", read_only=True)
        assert things(database) == [1]
        with pytest.raises(DatabaseUnavailable, match="readonly"):
            database.write_now(put(2))
        await database.close()

    using(path, use)
    asyncio.run(read())


def test_read_only_makes_no_file(tmp_path):
    path = tmp_path / "missing.db"
    with pytest.raises(DatabaseUnavailable, match=r"there is no file .*missing\.db"):
        Database(f"sqlite:///{path}", read_only=True)
    assert not path.exists()


def text_file(folder: Path) -> Path:
    path = folder / "notes.txt"
    path.write_text("no database at all\n" * 50)
    return path


@pytest.mark.parametrize(
    ("place", "why"),
    [
        (text_file, "file is not a database"),
        (lambda folder: folder, "unable to open database file"),
        (lambda folder: folder / "no folder" / "x.db", "unable to open database file"),
        (lambda folder: text_file(folder) / "x.db", "unable to open database file"),
        (lambda folder: Path("/proc/roost.db"), "unable to open database file"),
    ],
)
def test_what_is_no_database_is_named_in_one_line(tmp_path, place, why):
    path = place(tmp_path)
    with pytest.raises(DatabaseUnavailable) as caught:
        Database(f"sqlite:///{path}")
    assert str(caught.value) == f"cannot open database sqlite:///{path}: {why}"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("roost.db", "not a database URL: 'roost.db'"),
        ("sqlite://", "name a file, as in sqlite:///roost.db"),
        ("sqlite:///:memory:", "name a file, as in sqlite:///roost.db"),
        ("nosuch://x/y", "Can't load plugin: sqlalchemy.dialects:nosuch"),
        ("mssql+pyodbc://x/y", "No module named 'pyodbc'"),
        ("postgresql+psycopg://user:secret@127.0.0.1:1/x", "cannot open database postgresql"),
        ("mysql+pymysql://user:secret@127.0.0.1:1/x", "cannot open database mysql"),
    ],
)
def test_a_url_that_cannot_be_used_is_said_in_one_line_without_its_password(url, why):
    with pytest.raises(DatabaseUnavailable) as caught:
        Database(url)
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
