"""Records in a SQL database: searching, the tables, errors."""

import asyncio
import re

import msgspec
import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from roost.records import RecordRefused, RecordsUnavailable, Retention
from roost.records import sql as sql_module
from roost.records.backend import open_sql_records
from roost.records.rows import _ATTEMPT_COLUMNS, _INSTANCE_COLUMNS, _RUN_COLUMNS, _statement
from roost.records.tables import SCHEMA, attempts, metadata, run_instances, runs
from roost.storage import Database


def table_sizes(database: Database) -> dict[str, int]:
    def count(connection):
        return {
            table.name: connection.scalar(sa.select(sa.func.count()).select_from(table))
            for table in (runs, run_instances, attempts)
        }

    return database.read_now(count)


def test_runs_are_found_by_request_and_by_instance(using_sql, make, write):
    made = [make(number, instances=3) for number in range(5)]

    async def use(records):
        await write(records, made)
        return (
            await records.find(request_id="req-3"),
            await records.find(instance="instance-4-2"),
            await records.find(request_id="req-1", instance="instance-1-0"),
            await records.find(request_id="req-1", instance="instance-2-0"),
        )

    assert using_sql(use) == ([made[3]], [made[4]], [made[1]], [])


def test_an_instance_is_found_though_nothing_was_tried_for_it(using_sql, make, write):
    none, other = make(1, tries=0), make(2, instances=2)

    async def use(records):
        await write(records, [none, other])
        return await records.find(instance="instance-1-0"), await records.find(instance="instance-2-1")

    assert using_sql(use) == ([none], [other])


def test_find_gives_the_newest_up_to_its_limit(using_sql, make):
    made = [make(number).run for number in range(5)]
    same = [msgspec.structs.replace(run, instances=("same",)) for run in made]

    async def use(records):
        await records.write(same, [])
        return await records.find(instance="same", limit=2)

    assert [one.run for one in using_sql(use)] == same[:2:-1]


def test_find_without_anything_to_find_is_a_mistake(using_sql):
    with pytest.raises(ValueError, match="request id or an instance"):
        using_sql(lambda records: records.find())


def test_more_runs_are_read_than_one_query_takes(using_sql, make, write):
    made = [make(number) for number in range(1100)]

    async def use(records):
        await write(records, made)
        return await records.last(2000)

    assert using_sql(use) == made[::-1]


def test_a_run_recorded_twice_is_refused_and_its_neighbours_are_not(using_sql, make, write):
    async def use(records):
        await write(records, [make(1)])
        outcomes = await asyncio.gather(
            write(records, [make(2)]),
            write(records, [make(1)]),
            write(records, [make(3)]),
            return_exceptions=True,
        )
        return outcomes, await records.last(9)

    (first, second, third), left = using_sql(use)
    assert first is None
    assert third is None
    assert isinstance(second, RecordRefused)
    assert re.search(r"/\w+(\.db)?: .*(UNIQUE|unique|Duplicate entry)", str(second))
    assert left == [make(3), make(2), make(1)]


def test_trim_leaves_nothing_of_a_run_behind(using_sql, make, write, monkeypatch):
    monkeypatch.setattr(sql_module, "TRIM_CHUNK", 2)

    async def use(records):
        await write(records, [make(number, tries=3, instances=4) for number in range(1, 8)])
        gone = await records.trim(now=0.0)
        await records.write([], make(1).attempts)
        await records.trim(now=0.0)
        return gone, table_sizes(records._database)

    assert using_sql(use, Retention(days=0, runs=1)) == (
        6,
        {"runs": 1, "run_instances": 4, "attempts": 3},
    )


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


@pytest.mark.parametrize("url", ["sqlite://", "postgresql+psycopg://", "mariadb+pymysql://"])
def test_every_value_goes_into_the_column_of_its_name(url):
    dialect = sa.create_engine(url).dialect
    for table, columns in (
        (runs, _RUN_COLUMNS),
        (run_instances, _INSTANCE_COLUMNS),
        (attempts, _ATTEMPT_COLUMNS),
    ):
        statement, _ = _statement(table, columns, dialect)
        named = statement.replace("`", "").partition("(")[2].partition(")")[0].split(", ")
        assert tuple(named) == columns
        assert "RETURNING" not in statement


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite:////nowhere/at/all.sqlite", "sqlite:////nowhere/at/all.sqlite: .*unable to open"),
        ("oracledb://user:hunter2@host/x", r"oracledb://user:\*\*\*@host/x"),
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


def test_tables_of_a_newer_roost_are_left_alone(using_sql, tmp_path):
    async def use(records):
        records._database.write_now(
            lambda connection: connection.exec_driver_sql("UPDATE records_schema SET version_num = '9999'")
        )

    using_sql(use)
    with pytest.raises(RecordsUnavailable, match="revision 9999, newer than this program"):
        using_sql(use)


def test_a_table_that_is_gone_is_a_clear_error(using_sql, make, write):
    async def use(records):
        records._database.write_now(lambda connection: connection.exec_driver_sql("DROP TABLE attempts"))
        await write(records, [make(1)])

    with pytest.raises(RecordsUnavailable, match=r"no such table|does not exist|doesn't exist"):
        using_sql(use)
