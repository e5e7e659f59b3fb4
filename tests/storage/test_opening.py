"""Opening a database: to read only, and what cannot be opened is named in one line."""

import asyncio
from pathlib import Path

import pytest

from roost.storage import Database, DatabaseUnavailable
from support.things import put, things, using


def test_read_only_reads_and_does_not_write(place):
    async def use(database: Database) -> None:
        await database.write(put(1))

    async def read() -> None:
        database = Database(place.url, read_only=True)
        assert things(database) == [1]
        with pytest.raises(DatabaseUnavailable, match=r"(?i)read.?only"):
            database.write_now(put(2))
        await database.close()

    using(place, use)
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


def test_a_new_file_is_not_for_others(tmp_path):
    path = tmp_path / "new.db"
    database = Database(f"sqlite:///{path}")
    database.write_now(lambda connection: connection.exec_driver_sql("CREATE TABLE t (x INTEGER)"))
    assert {file.stat().st_mode & 0o007 for file in (path, tmp_path / "new.db-wal")} == {0}
    asyncio.run(database.close())


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
        ("nosuch://x/y", "no database or driver 'nosuch'"),
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


def test_deferred_database_is_opened_when_it_is_up(tmp_path):
    """Each operation tries to open it, and says why it cannot; what prepares it runs once."""
    folder = tmp_path / "later"
    prepared = []

    async def run() -> None:
        database = Database(f"sqlite:///{folder / 'x.db'}", deferred=True)

        def prepare(opened: Database) -> None:
            prepared.append(opened)
            opened.write_now(lambda connection: connection.exec_driver_sql("CREATE TABLE t (x INTEGER)"))

        database.when_open(prepare)
        for operation in (database.read, database.write, database.autocommit_read):
            with pytest.raises(DatabaseUnavailable, match="unable to open database file"):
                await operation(lambda connection: None)
        folder.mkdir()
        assert (
            await database.read(lambda connection: connection.exec_driver_sql("SELECT * FROM t").all()) == []
        )
        database.when_open(lambda opened: prepared.append(opened))
        assert prepared == [database, database]
        await database.close()

    asyncio.run(run())
