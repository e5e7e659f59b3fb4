"""The row of this scheduler in Nova's table of services."""

import asyncio
import datetime
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from roost.nova.database.tables import CELL, services
from roost.nova.service_row import OwnServiceRow, SchedulerHostTaken
from roost.storage import Database, DatabaseUrl

START = datetime.datetime(2026, 1, 1, 12)


class Services:
    """Nova's table of services, and a clock that moves when the row waits."""

    def __init__(self, url: str) -> None:
        self.now = START
        self.engine = sa.create_engine(url)
        CELL.create_all(self.engine, [services])
        self.database = Database(DatabaseUrl(url), deferred=True)
        self.while_waiting: Callable[[], None] = lambda: None

    async def sleep(self, seconds: float) -> None:
        self.now += datetime.timedelta(seconds=seconds)
        self.while_waiting()

    def row_of(self, host: str = "here") -> OwnServiceRow:
        return OwnServiceRow(
            self.database, host, report_seconds=10, down_seconds=60, sleep=self.sleep, clock=lambda: self.now
        )

    def add(self, host: str = "here", binary: str = "nova-scheduler", **values: Any) -> None:
        new = {"host": host, "binary": binary, "topic": binary, "version": 70, "last_seen_up": self.now}
        self.execute(sa.insert(services).values(**{**new, **values}))

    def execute(self, statement: Any) -> None:
        with self.engine.begin() as connection:
            connection.execute(statement)

    def report_of_another(self) -> None:
        self.execute(sa.update(services).values(report_count=services.c.report_count + 1))

    def rows(self, binary: str = "nova-scheduler") -> list[Any]:
        with self.engine.connect() as connection:
            found = sa.select(services).where(services.c.binary == binary).order_by(services.c.id)
            return list(connection.execute(found))


@contextmanager
def services_in(url: str) -> Iterator[Services]:
    made = Services(url)
    yield made
    CELL.drop_all(made.engine, [services])
    made.engine.dispose()


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Services]:
    with services_in(f"sqlite:///{tmp_path / 'nova.db'}") as made:
        yield made


@pytest.fixture
def each_table(database_url: str) -> Iterator[Services]:
    with services_in(database_url) as made:
        yield made


def run(table: Services, scenario: Callable[[], Awaitable[None]]) -> None:
    async def all_of_it() -> None:
        await scenario()
        await table.database.close()

    asyncio.run(all_of_it())


def test_a_row_is_created_reported_and_ended(each_table: Services) -> None:
    async def scenario() -> None:
        each_table.add("control", "nova-conductor", version=73)
        each_table.add("compute", "nova-compute", version=99)
        own = each_table.row_of()
        await own.start()
        [row] = each_table.rows()
        assert (row.host, row.topic, row.version, row.report_count) == ("here", "scheduler", 73, 1)
        assert (row.deleted, row.disabled, row.forced_down) == (0, False, False)
        assert (row.created_at, row.last_seen_up) == (START, START) and len(row.uuid) == 36
        each_table.execute(sa.update(services).where(services.c.host == "control").values(version=74))
        await each_table.sleep(10)
        await own.report()
        [row] = each_table.rows()
        assert (row.version, row.report_count, row.last_seen_up) == (74, 2, each_table.now)
        assert row.created_at == START
        await own.stop()
        [row] = each_table.rows()
        assert row.last_seen_up is None

    run(each_table, scenario)


@pytest.mark.parametrize("begun", ["start", "report"])
def test_a_row_is_ended_though_a_write_was_cut_off(table: Services, begun: str) -> None:
    """The write that was under way at the end takes effect, and its answer was not waited for."""

    class Slow:
        """A database whose writes are answered once ``answers`` is set."""

        def __init__(self) -> None:
            self.read = table.database.read
            self.answers = asyncio.Event()
            self.wrote = asyncio.Event()

        async def write(self, work: Any) -> Any:
            done = await table.database.write(work)
            self.wrote.set()
            await self.answers.wait()
            return done

    async def scenario() -> None:
        own, slow = table.row_of(), Slow()
        if begun == "report":
            await own.start()
        own._database = slow  # type: ignore[assignment]
        cut_off = asyncio.create_task(own.start() if begun == "start" else own.report())
        await slow.wrote.wait()
        cut_off.cancel()
        await asyncio.gather(cut_off, return_exceptions=True)
        stopping = asyncio.create_task(own.stop())
        slow.answers.set()
        await stopping
        [row] = table.rows()
        assert row.last_seen_up is None

    run(table, scenario)


def test_the_row_of_one_that_has_ended_is_taken_over(table: Services) -> None:
    async def scenario() -> None:
        table.add(report_count=7, disabled=True, last_seen_up=START - datetime.timedelta(minutes=5))
        await table.row_of().start()
        [row] = table.rows()
        assert table.now == START  # without a wait
        assert (row.report_count, row.last_seen_up, row.disabled) == (8, START, True)

    run(table, scenario)


def test_one_that_died_a_moment_ago_is_watched_first(table: Services) -> None:
    async def scenario() -> None:
        table.add(report_count=7)
        await table.row_of().start()
        assert table.now == START + datetime.timedelta(seconds=15)
        assert [row.report_count for row in table.rows()] == [8]

    run(table, scenario)


def test_one_that_is_up_is_not_replaced(table: Services) -> None:
    async def scenario() -> None:
        table.add(report_count=7)
        table.while_waiting = table.report_of_another
        with pytest.raises(SchedulerHostTaken, match="here"):
            await table.row_of().start()
        assert [row.report_count for row in table.rows()] == [8]

    run(table, scenario)


def test_of_two_that_start_at_once_one_is_refused(each_table: Services) -> None:
    async def scenario() -> None:
        first, second = each_table.row_of(), each_table.row_of()
        ends = await asyncio.gather(first.start(), second.start(), return_exceptions=True)
        assert len([end for end in ends if isinstance(end, SchedulerHostTaken)]) == 1
        assert len(each_table.rows()) == 1

    run(each_table, scenario)


def test_a_deleted_row_stays_deleted_until_the_next_start(table: Services) -> None:
    async def scenario() -> None:
        own = table.row_of()
        await own.start()
        table.execute(sa.update(services).values(deleted=services.c.id))
        with capture_logs() as logs:
            await own.report()
            await own.report()
        assert len(logs) == 1 and "deleted" in logs[0]["event"]
        await table.row_of().start()
        deleted, created = table.rows()
        assert (deleted.report_count, created.report_count, created.deleted) == (1, 1, 0)

    run(table, scenario)


def test_the_row_is_left_to_the_worker_that_replaces_this_one(table: Services) -> None:
    async def scenario() -> None:
        own, successor = table.row_of(), table.row_of()
        await own.start()
        await successor.start(checked=True)
        with capture_logs() as logs:
            await own.report()
            await own.report()
            await own.stop()
            await successor.report()
        assert [(each["event"], each["log_level"]) for each in logs] == [
            ("another process has taken over the row of this service", "warning")
        ]
        [row] = table.rows()
        assert (row.report_count, row.last_seen_up) == (3, START)

    run(table, scenario)


def test_a_database_that_is_away_is_tried_again(table: Services) -> None:
    async def scenario() -> None:
        own = table.row_of()
        await own.start()
        CELL.drop_all(table.engine, [services])

        def come_back() -> None:
            if table.now > START + datetime.timedelta(seconds=40):
                CELL.create_all(table.engine, [services])
                table.add(id=1, report_count=1)
                table.while_waiting = end_after_two

        def end_after_two() -> None:
            if table.rows()[0].report_count == 3:
                raise asyncio.CancelledError

        table.while_waiting = come_back
        with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
            await own.run()
        assert [each["log_level"] for each in logs] == ["warning", "info"]

    run(table, scenario)
