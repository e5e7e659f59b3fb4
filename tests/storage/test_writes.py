"""Writes: they share transactions, and an error is only its own work's."""

import asyncio
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from roost.storage import Database, DatabaseUnavailable
from support.things import put, things, using
from support.waiting import patience


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


def test_a_close_that_is_cancelled_leaves_writes_their_outcomes(place):
    async def use(database: Database) -> None:
        write = asyncio.create_task(database.write(put(1)))
        await asyncio.sleep(0)
        closing = asyncio.create_task(database.close())
        await asyncio.sleep(0)
        closing.cancel()
        async with asyncio.timeout(patience(30)):
            assert await write == 1

    using(place, use)


def test_a_work_that_ends_an_iterator_fails_alone(place):
    async def use(database: Database) -> None:
        def ends_an_iterator(connection: sa.Connection) -> None:
            put(60)(connection)
            next(iter(()))

        async with asyncio.timeout(patience(30)):
            for works in ([ends_an_iterator], [put(1), ends_an_iterator, put(2)]):
                answers = await asyncio.gather(*map(database.write, works), return_exceptions=True)
                [failed] = [answer for answer in answers if isinstance(answer, Exception)]
                assert isinstance(failed, RuntimeError)
                assert isinstance(failed.__cause__, StopIteration)
            with pytest.raises(RuntimeError, match="StopIteration"):
                await database.read(lambda connection: next(iter(())))
        assert things(database) == [1, 2]

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


def test_a_batch_that_cannot_begin_waits_for_the_database_once(path):
    async def use(database: Database) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            writes = asyncio.gather(*(database.write(put(n)) for n in range(20)), return_exceptions=True)
            answers = await asyncio.wait_for(writes, 6)
        assert {str(answer) for answer in answers} == {f"database sqlite:///{path}: database is locked"}

    using(path, use, answer_seconds=0.4)


def test_a_writer_gets_its_turn_beside_another_one_that_writes_without_a_pause(path):
    """Another process has the lock of the file nearly always, in transactions of which none takes long."""
    done = threading.Event()
    most = 400

    def write_without_a_pause(other: Database) -> int:
        def take_long(connection: sa.Connection) -> None:
            connection.exec_driver_sql("UPDATE things SET number = number")
            time.sleep(0.02)

        written = 0
        while not done.is_set() and written < most:
            other.write_now(take_long)
            written += 1
        return written

    async def use(database: Database) -> None:
        database.write_now(put(0))
        other = Database(f"sqlite:///{path}")
        writing = asyncio.create_task(asyncio.to_thread(write_without_a_pause, other))
        try:
            await asyncio.sleep(0.1)
            await database.write(put(1))
        finally:
            done.set()
            written = await writing
            await other.close()
        # With SQLite's own waiting the other one writes as often as it can.
        assert written < most

    using(path, use, answer_seconds=patience(60))
