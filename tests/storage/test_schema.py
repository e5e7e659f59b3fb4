"""Schemas: made, upgraded and checked; the tables in the code are those that the migrations make."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from roost.ledger import SCHEMA as LEDGER
from roost.storage import Database, ForeignTables, Schema, SchemaTooNew, SchemaTooOld
from support.preparing import SCHEMAS, prepare

by_name = pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    asyncio.run(database.close())


def set_revision(database: Database, schema: Schema, revision: str) -> None:
    statement = sa.text(f"UPDATE {schema.name}_schema SET version_num = :revision")
    database.write_now(lambda connection: connection.execute(statement, {"revision": revision}))


@by_name
def test_the_tables_are_what_the_migrations_make(database, schema):
    schema.upgrade(database)
    assert schema.revision(database) == schema.newest

    def differences(connection: sa.Connection) -> list[object]:
        context = MigrationContext.configure(
            connection,
            opts={
                "version_table": f"{schema.name}_schema",
                "compare_server_default": True,
                "compare_type": True,
            },
        )
        return compare_metadata(context, schema.metadata)

    assert database.read_now(differences) == []


def checks(database: Database) -> dict[str, set[str]]:
    def read(connection: sa.Connection) -> dict[str, set[str]]:
        inspector = sa.inspect(connection)
        found = {
            table: {str(check["name"]) for check in inspector.get_check_constraints(table)}
            for table in inspector.get_table_names()
        }
        return {table: names for table, names in found.items() if names}

    return database.read_now(read)


@by_name
def test_the_migrations_make_every_check(database, schema):
    """Which Alembic does not compare."""
    schema.upgrade(database)
    declared = {
        table.name: {str(part.name) for part in table.constraints if isinstance(part, sa.CheckConstraint)}
        for table in schema.metadata.tables.values()
    }
    assert checks(database) == {table: names for table, names in declared.items() if names}


def test_all_schemas_fit_into_one_database(database):
    for schema in SCHEMAS:
        schema.upgrade(database)
    for schema in SCHEMAS:
        schema.check(database)


@by_name
@pytest.mark.parametrize("use", ["check", "upgrade", "prepare", "refuse_foreign"])
def test_the_database_of_another_program_is_refused_and_left_as_it_is(database, schema, use):
    """Such as Nova's API database, four of whose tables have the names of the conductor's."""
    name = min(schema.metadata.tables)
    made = sa.text(f"CREATE TABLE {name} (other INTEGER)")
    database.write_now(lambda connection: connection.execute(made))
    said = f"belongs to another program.* a table {name},.*{schema.name}_schema"
    with pytest.raises(ForeignTables, match=said):
        getattr(schema, use)(database)
    assert database.read_now(lambda connection: sa.inspect(connection).get_table_names()) == [name]


def test_check_names_the_command_that_makes_missing_tables(database):
    with pytest.raises(SchemaTooOld, match=r"has no ledger tables: run 'roost db upgrade\b.*--database"):
        LEDGER.check(database)


def test_a_database_that_is_behind_is_upgraded_only_if_asked(database):
    LEDGER.upgrade(database)
    # What 0008 brought.
    database.write_now(lambda connection: connection.exec_driver_sql("DROP TABLE operator_word"))
    set_revision(database, LEDGER, "0007")
    needed = f"is at ledger revision 0007, this program needs {LEDGER.newest}"
    with pytest.raises(SchemaTooOld, match=needed):
        LEDGER.prepare(database)
    LEDGER.upgrade(database)
    LEDGER.check(database)
    assert "operator_word" in database.read_now(lambda connection: sa.inspect(connection).get_table_names())


@pytest.mark.parametrize("use", [Schema.prepare, Schema.check, Schema.upgrade])
def test_a_database_of_a_newer_program_is_left_alone(database, use: Callable[[Schema, Database], None]):
    LEDGER.upgrade(database)
    set_revision(database, LEDGER, "9999")
    with pytest.raises(SchemaTooNew) as caught:
        use(LEDGER, database)
    assert str(caught.value) == (
        f"database {database} is at ledger revision 9999, newer than this program, which knows up to "
        f"{LEDGER.newest}: run a newer Roost"
    )
    assert LEDGER.revision(database) == "9999"


@by_name
@pytest.mark.parametrize("use", [Schema.prepare, Schema.check, Schema.upgrade])
def test_a_database_of_before_the_first_revision_is_left_alone(
    database, schema: Schema, use: Callable[[Schema, Database], None]
):
    schema.upgrade(database)
    # Its programs said that they work with the tables of yet earlier ones.
    age = sa.text(f"UPDATE {schema.name}_schema SET version_num = '0000', works_from = '0000 0000'")
    database.write_now(lambda connection: connection.execute(age))
    with pytest.raises(SchemaTooOld) as caught:
        use(schema, database)
    assert str(caught.value) == (
        f"database {database} is at {schema.name} revision 0000, and this program upgrades from "
        f"{schema.oldest} on: upgrade it first by 'roost db upgrade' of the Roost of commit 39efe71"
    )
    assert schema.revision(database) == "0000"


def test_only_a_sqlite_file_is_prepared_unasked(database):
    if database.is_sqlite:
        LEDGER.prepare(database)
        LEDGER.check(database)
    else:
        with pytest.raises(SchemaTooOld, match="run 'roost db upgrade"):
            LEDGER.prepare(database)


@by_name
def test_an_upgrade_that_was_cut_off_is_finished_by_the_next(database, schema):
    """MariaDB commits every statement that makes a table by itself."""
    last = schema.metadata.sorted_tables[-1].name
    schema.upgrade(database)

    def undo(connection: sa.Connection) -> None:
        connection.exec_driver_sql(f"DROP TABLE {last}")
        connection.exec_driver_sql(f"DELETE FROM {schema.name}_schema")

    database.write_now(undo)
    schema.upgrade(database)
    schema.check(database)
    assert last in database.read_now(lambda connection: sa.inspect(connection).get_table_names())


@by_name
def test_all_text_compares_exactly(database, schema):
    """What MariaDB does not do unless each table says so; see roost.storage.schema."""
    schema.upgrade(database)
    query = sa.text(
        "SELECT table_name, column_name, collation_name FROM information_schema.columns "
        "WHERE table_schema = database() AND collation_name IS NOT NULL AND table_name NOT LIKE '%schema'"
    )
    if database.url.get_backend_name() == "mysql":
        columns = database.read_now(lambda connection: connection.execute(query).all())
        assert columns
        assert {row[2] for row in columns} == {"utf8mb4_nopad_bin"}


def test_upgrading_twice_changes_nothing(database):
    LEDGER.upgrade(database)
    LEDGER.upgrade(database)
    LEDGER.check(database)


def test_processes_that_prepare_one_file_at_once_agree(tmp_path):
    forks = get_context("forkserver")
    forks.set_forkserver_preload(["roost.cli.db", "alembic.command"])  # imports are most of their time
    with ProcessPoolExecutor(4, mp_context=forks) as pool:
        for number in range(5):
            urls = [f"sqlite:///{tmp_path / f'{number}.db'}"] * 4
            assert list(pool.map(prepare, urls)) == ["prepared"] * 4


@by_name
def test_the_revisions_are_those_that_alembic_finds(schema):
    found = [script.revision for script in ScriptDirectory(str(schema.scripts)).walk_revisions()]
    assert list(schema.revisions) == found[::-1]


def test_a_server_that_upgrades_nothing_imports_neither_alembic_nor_the_scheduler():
    program = "import sys, roost.cli.programs; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not [name for name in done.stdout.split() if name.startswith(("alembic", "roost.scheduler"))]
