"""Records in a SQL database: many runs, the tables, errors."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.engine import Connection

from roost.records import RecordsUnavailable, Retention
from roost.records import sql as sql_module
from roost.records.backend import open_sql_records
from roost.records.tables import SCHEMA, attempts, metadata, run_instances, runs
from roost.storage import Database

T = TypeVar("T")


def in_database(url: str, work: Callable[[Connection], T]) -> T:
    """Run ``work`` in a transaction of its own."""
    database = Database(url)
    try:
        return database.write_now(work)
    finally:
        asyncio.run(database.close())


def table_sizes(url: str) -> dict[str, int]:
    def count(connection):
        return {
            table.name: connection.scalar(sa.select(sa.func.count()).select_from(table))
            for table in (runs, run_instances, attempts)
        }

    return in_database(url, count)


def test_more_runs_are_read_than_one_query_takes(using_sql, make, write):
    made = [make(number) for number in range(1100)]

    async def use(records):
        await write(records, made)
        return await records.last(2000)

    assert using_sql(use) == made[::-1]


def test_runs_are_counted_by_the_minute(using_sql, make, write):
    made = [
        make(number, tries=number % 3, at=at) for number, at in enumerate((59.9, 60.0, 61.5, 119.99, 240.0))
    ]

    async def use(records):
        await write(records, made)
        return await records.by_minute(60.0, 100), await records.by_minute(0.0, 2)

    assert using_sql(use) == ([(1, 3, 1), (4, 1, 0)], [(1, 1, 1), (4, 1, 0)])


def test_trim_leaves_nothing_of_a_run_behind(using_sql, database_url, make, write, monkeypatch):
    monkeypatch.setattr(sql_module, "TRIM_CHUNK", 2)

    async def use(records):
        await write(records, [make(number, tries=3, instances=4) for number in range(1, 8)])
        gone = await records.trim(now=0.0)
        await records.write([], make(1).attempts)
        await records.trim(now=0.0)
        return gone

    assert using_sql(use, Retention(days=0, runs=1)) == 6
    assert table_sizes(database_url) == {"runs": 1, "run_instances": 4, "attempts": 3}


def test_migrations_lead_to_the_tables(tmp_path):
    database = Database(f"sqlite:///{tmp_path / 'records.sqlite'}")
    SCHEMA.upgrade(database)

    def differences(connection):
        return compare_metadata(
            MigrationContext.configure(connection, opts={"version_table": "records_schema"}), metadata
        )

    try:
        assert database.read_now(differences) == []
    finally:
        asyncio.run(database.close())


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite:////nowhere/at/all.sqlite", "sqlite:////nowhere/at/all.sqlite: .*unable to open"),
        ("oracledb://user:hunter2@host/x", "no database or driver 'oracledb'"),
        ("records please", "not a database URL: 'records please'"),
    ],
)
def test_a_database_that_cannot_be_opened_is_named(url, says):
    with pytest.raises(RecordsUnavailable, match=says) as refused:
        asyncio.run(open_sql_records(url, Retention()))
    assert "hunter2" not in str(refused.value)


def test_a_file_that_is_no_database_is_named(tmp_path):
    path = tmp_path / "records.sqlite"
    path.write_text("no database " * 100)
    with pytest.raises(RecordsUnavailable, match=f"{path}: .*file is not a database"):
        asyncio.run(open_sql_records(f"sqlite:///{path}", Retention()))


def test_tables_of_a_newer_roost_are_left_alone(using_sql, database_url):
    newer = sa.text("UPDATE records_schema SET version_num = '9999'")
    in_database(database_url, lambda connection: connection.execute(newer))
    with pytest.raises(RecordsUnavailable, match="revision 9999, newer than this program"):
        using_sql(lambda records: records.last(1))


def test_a_table_that_is_gone_is_a_clear_error(using_sql, database_url, make, write):
    async def use(records):
        in_thread = asyncio.to_thread(in_database, database_url, drop)
        await in_thread
        await write(records, [make(1)])

    def drop(connection):
        connection.exec_driver_sql("DROP TABLE attempts")

    with pytest.raises(RecordsUnavailable, match=r"no such table|does not exist|doesn't exist"):
        using_sql(use)
