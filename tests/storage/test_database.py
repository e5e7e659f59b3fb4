"""One database: writes share transactions, errors are their own work's, trouble is said in one line."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DataError, OperationalError, ProgrammingError

from roost.storage import ANSWER_SECONDS, Database, DatabaseUnavailable
from roost.storage.exact import EXACT
from support.databases import SERVERS, Place

INSERT = "INSERT INTO things VALUES ({})"


def put(number: int) -> Callable[[sa.Connection], int]:
    def work(connection: sa.Connection) -> int:
        connection.exec_driver_sql(INSERT.format(number))
        return number

    return work


def things(database: Database) -> list[int]:
    query = sa.text("SELECT number FROM things ORDER BY number")
    return database.read_now(lambda connection: list(connection.execute(query).scalars()))


def using(where: Path | Place, use: Callable[[Database], Any], answer_seconds: float = ANSWER_SECONDS) -> Any:
    """Run ``use`` with a database that has an empty table of things."""

    async def run() -> Any:
        url = f"sqlite:///{where}" if isinstance(where, Path) else where.url
        database = Database(url, answer_seconds=answer_seconds)
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


def test_writes_that_wait_together_share_a_transaction(place):
    async def use(database: Database) -> None:
        commits = count_commits(database)
        assert await asyncio.gather(*(database.write(put(number)) for number in range(50))) == list(range(50))
        assert len(commits) <= 2
        assert things(database) == list(range(50))

    using(place, use)


def test_an_error_is_only_its_own_works(place):
    async def use(database: Database) -> None:
        def half_done(connection: sa.Connection) -> None:
            put(60)(connection)
            raise LookupError("changed my mind")

        works = [put(1), put(100), put(2), half_done, put(1), put(3)]
        answers = await asyncio.gather(*map(database.write, works), return_exceptions=True)
        kinds = [type(answer).__name__ for answer in answers]
        assert kinds == ["int", "IntegrityError", "int", "LookupError", "IntegrityError", "int"]
        assert things(database) == [1, 2, 3]

    using(place, use)


def test_a_write_that_nobody_waits_for_any_more_harms_no_other(place):
    async def use(database: Database) -> None:
        tasks = [asyncio.create_task(database.write(put(number))) for number in range(5)]
        await asyncio.sleep(0)
        tasks[2].cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [answer for answer in answers if isinstance(answer, int)] == [0, 1, 3, 4]

    using(place, use)


def test_closing_finishes_what_waits_and_refuses_what_comes(place):
    async def use(database: Database) -> None:
        tasks = [asyncio.create_task(database.write(put(number))) for number in range(5)]
        await asyncio.sleep(0)
        await database.close()
        assert await asyncio.gather(*tasks) == list(range(5))
        for late in (database.write(put(6)), database.read(lambda connection: 1)):
            with pytest.raises(DatabaseUnavailable, match="is closed"):
                await late

    using(place, use)


def undone_by_server(code: object) -> OperationalError:
    """What the MariaDB driver says of a deadlock or a failed certification (1213), or of something else."""
    return OperationalError("statement", None, Exception(code, "try restarting transaction"))


def test_what_the_server_undid_for_anothers_sake_is_run_again(place):
    async def use(database: Database) -> None:
        refusals = [1213, 1213]

        def work(connection: sa.Connection) -> int:
            put(7)(connection)
            if refusals:
                raise undone_by_server(refusals.pop())
            return 7

        assert await database.write(work) == 7
        assert things(database) == [7]

    using(place, use)


def test_what_the_server_undoes_every_time_ends_with_its_error(place):
    async def use(database: Database) -> None:
        def work(connection: sa.Connection) -> None:
            raise undone_by_server(1213)

        with pytest.raises(DatabaseUnavailable, match="try restarting"):
            await database.write(work)

    using(place, use)


def test_a_batch_whose_fate_is_unknown_is_not_repeated(place):
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

    using(place, use)


def at_two(
    place: Place, one: Callable[..., Any], other: Callable[..., Any], answer_seconds: float = ANSWER_SECONDS
) -> list[Any]:
    """Run two works at once, each on a database of its own; what became of them."""

    async def use(database: Database) -> list[Any]:
        databases = [Database(place.at(number), answer_seconds=answer_seconds) for number in (1, 2)]
        database.write_now(lambda connection: [put(number)(connection) for number in (1, 2)])
        answers = await asyncio.gather(
            databases[0].write(one), databases[1].write(other), return_exceptions=True
        )
        for each in databases:
            await each.close()
        return [*answers, things(database)]

    answers: list[Any] = using(place, use)
    return answers


@pytest.mark.parametrize("place", SERVERS, indirect=True)
def test_two_that_wait_for_each_other_are_both_done(place):
    """A deadlock; on Galera, where they meet only at COMMIT, a failed certification."""
    met = Barrier(2)

    def moving(*numbers: int) -> Callable[[sa.Connection], int]:
        runs = []

        def work(connection: sa.Connection) -> int:
            runs.append(1)
            for number in numbers:
                connection.exec_driver_sql(f"UPDATE things SET number = number + 10 WHERE number = {number}")
                if len(runs) == 1 and number == numbers[0]:
                    met.wait(10)
            return len(runs)

        return work

    first, second, left = at_two(place, moving(1, 2), moving(2, 1))
    assert max(first, second) > 1
    assert left == [11, 12]


@pytest.mark.parametrize("place", ["postgresql", "mariadb"], indirect=True)
def test_a_lock_is_waited_for_no_longer_than_an_operation_may_take(place):
    taken, done = Barrier(2), Barrier(2)

    def holding(connection: sa.Connection) -> str:
        connection.exec_driver_sql("UPDATE things SET number = 11 WHERE number = 1")
        taken.wait(10)
        done.wait(10)
        return "done"

    def waiting(connection: sa.Connection) -> None:
        taken.wait(10)
        try:
            connection.exec_driver_sql("UPDATE things SET number = 21 WHERE number = 1")
        finally:
            done.wait(10)

    first, second, left = at_two(place, holding, waiting, answer_seconds=4)
    assert first == "done"
    assert isinstance(second, DatabaseUnavailable)
    assert left == [2, 11]


def test_text_compares_exactly(place):
    names = ["a", "A", "a ", "á", "a\N{COMBINING ACUTE ACCENT}", "ﬁ", "fi", "\N{PILE OF POO}"]
    metadata = sa.MetaData()
    table = sa.Table("names", metadata, sa.Column("name", sa.String(255), primary_key=True), **EXACT)

    async def use(database: Database) -> None:
        database.write_now(metadata.create_all)
        database.write_now(
            lambda connection: connection.execute(sa.insert(table), [{"name": name} for name in names])
        )
        for name in names:
            found = sa.select(table.c.name).where(table.c.name == name)
            found_in = sa.select(table.c.name).where(table.c.name.in_([name, "b"]))
            for query in (found, found_in):
                assert database.read_now(lambda c, q=query: c.execute(q).scalars().all()) == [name]

    using(place, use)


def test_what_does_not_fit_is_refused_not_cut(place):
    metadata = sa.MetaData()
    table = sa.Table("names", metadata, sa.Column("name", sa.String(5), primary_key=True), **EXACT)

    async def use(database: Database) -> None:
        database.write_now(metadata.create_all)
        with pytest.raises(DataError):
            database.write_now(lambda connection: connection.execute(sa.insert(table), {"name": "longer"}))

    if place.kind != "sqlite":  # which knows no lengths
        using(place, use)


@pytest.mark.parametrize("place", ["galera"], indirect=True)
def test_what_one_node_was_told_is_done_is_seen_at_the_others(place):
    async def use(database: Database) -> None:
        others = [Database(place.at(1)), Database(place.at(2))]
        for number in range(99):
            await database.write(put(number))
            for other in others:
                assert len(things(other)) == number + 1
        for other in others:
            await other.close()

    using(place, use)


def test_a_batch_that_cannot_begin_waits_for_the_database_once(path):
    async def use(database: Database) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            writes = asyncio.gather(*(database.write(put(n)) for n in range(20)), return_exceptions=True)
            answers = await asyncio.wait_for(writes, 2)
        assert {str(answer) for answer in answers} == {f"database sqlite:///{path}: database is locked"}

    using(path, use, answer_seconds=0.4)


def count(connection: sa.Connection) -> int:
    return int(connection.execute(sa.text("SELECT count(*) FROM things")).scalar_one())


def test_a_look_sees_what_another_has_just_written(place):
    async def use(database: Database) -> None:
        other = Database(place.url)
        assert await database.look(count) == 0
        await other.write(put(1))
        assert await database.look(count) == 1
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
        numbers = [await way(number) for way in (database.look, database.read, database.write)]
        assert database._looking is not None
        other = Database(place.url)
        for each in numbers:
            other.write_now(lambda connection, each=each: connection.exec_driver_sql(end.format(each)))
        await other.close()
        assert await asyncio.gather(*(database.look(count) for _ in range(3))) == [0, 0, 0]
        assert await database.read(count) == 0
        await database.write(put(1))
        assert await database.read(count) == 1

    using(place, use)


def test_a_look_that_fails_leaves_the_next_one_alone(place):
    async def use(database: Database) -> None:
        assert await database.look(count) == 0
        with pytest.raises((ProgrammingError, DatabaseUnavailable)):
            await database.look(lambda connection: connection.execute(sa.text("SELECT * FROM no_such")))
        assert await database.look(count) == 0

    using(place, use)


def test_a_look_that_went_wrong_in_every_way_leaves_the_next_one_alone(path, monkeypatch):
    def no_rollback(_: object) -> None:
        raise sqlite3.OperationalError("no rollback either")

    async def use(database: Database) -> None:
        assert await database.look(count) == 0
        with monkeypatch.context() as patched:
            patched.setattr(database._look_engine.dialect, "do_rollback", no_rollback)
            with pytest.raises(DatabaseUnavailable):
                await database.look(lambda connection: connection.execute(sa.text("SELECT * FROM no_such")))
        with pytest.raises(LookupError):
            await database.look(lambda connection: {}["nothing"])
        assert await database.look(count) == 0

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
