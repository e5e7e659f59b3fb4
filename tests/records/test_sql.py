"""Records in a SQL database: many runs, the tables, errors."""

import asyncio
import importlib
from collections.abc import Callable
from typing import TypeVar

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
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


def test_an_upgrade_keeps_runs_of_before_global_ids_and_completes_an_interrupted_one(
    database_url, using_sql, make, write
):
    using_sql(lambda records: write(records, [make(1)]))

    def age(connection):
        mysql = connection.dialect.name in ("mysql", "mariadb")
        connection.exec_driver_sql("DROP INDEX runs_by_global_request" + (" ON runs" if mysql else ""))
        connection.exec_driver_sql("UPDATE records_schema SET version_num = '0002'")

    def drop_column(connection):
        connection.exec_driver_sql("ALTER TABLE runs DROP COLUMN global_request_id")

    for steps in ((age,), (age, drop_column)):
        for step in steps:
            in_database(database_url, step)
        database = Database(database_url)
        SCHEMA.upgrade(database)
        asyncio.run(database.close())
        assert using_sql(lambda records: records.last(9)) == [make(1)]


OLD_ATTEMPTS = [
    ("run-1", "i", 1.0, "a", "refused", "full"),
    ("run-1", "i", 1.1, "b", "claimed", None),
    ("run-1", "i", 1.1, "b", "claimed", None),
    ("run-1", "i", 2.0, "b", "failed", "no image"),
    ("run-1", "i", 2.1, "c", "claimed", None),
    ("run-1", "j", 1.2, "b", "claimed", None),
    ("run-2", "i", 3.0, "b", "failed", "of a run that is gone"),
]
NEW_ATTEMPTS = [
    ("run-1", "i", 1, 1.0, "a", "refused", "full", 1.0),
    ("run-1", "i", 2, 1.1, "b", "failed", "no image", 2.0),
    ("run-1", "i", 3, 2.1, "c", "pending", None, None),
    ("run-1", "j", 1, 1.2, "b", "pending", None, None),
    ("run-2", "i", 1, 3.0, "b", "failed", "of a run that is gone", 3.0),
]


@pytest.mark.parametrize("cut", ["", "copied", "renamed"])
def test_an_upgrade_gives_each_attempt_one_row(database_url, cut):
    def old_tables(connection):
        old = importlib.import_module("roost.records.migrations.versions.0001_runs_and_attempts")
        with Operations.context(MigrationContext.configure(connection)):
            old.upgrade()
        rows = [(*row[:2], "req", *row[2:4], "cell1", 1.0, *row[4:]) for row in OLD_ATTEMPTS]
        names = ("run", "instance", "request_id", "at", "host", "cell", "weight", "result", "reason")
        table = sa.table("attempts", *map(sa.column, names))
        connection.execute(table.insert(), [dict(zip(names, row, strict=True)) for row in rows])
        version = sa.Table("records_schema", sa.MetaData(), sa.Column("version_num", sa.String(32)))
        version.create(connection)
        connection.execute(version.insert(), {"version_num": "0001"})

    def attempts_now(connection):
        columns = ("run", "instance", "ordinal", "at", "host", "result", "reason", "finished_at")
        query = sa.select(*(attempts.c[name] for name in columns)).order_by(
            *attempts.c["run", "instance", "ordinal"]
        )
        return [tuple(row) for row in connection.execute(query)]

    def interrupt(connection):
        """Leave the tables as an upgrade leaves them that is cut off after this step."""
        if cut == "copied":
            new = sa.Table(
                "attempts_with_ends", sa.MetaData(), *(column._copy() for column in attempts.columns)
            )
            new.create(connection)
        elif cut == "renamed":
            connection.exec_driver_sql("UPDATE records_schema SET version_num = '0005'")

    database = Database(database_url)
    database.write_now(old_tables)
    if cut == "renamed":
        SCHEMA.upgrade(database)
    database.write_now(interrupt)
    SCHEMA.upgrade(database)
    try:
        assert database.read_now(attempts_now) == NEW_ATTEMPTS
    finally:
        asyncio.run(database.close())


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
