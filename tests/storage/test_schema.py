"""Schemas: made, upgraded and checked; the tables in the code are those that the migrations make."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy.exc import IntegrityError

from roost.ledger import SCHEMA as LEDGER
from roost.ledger import Ledger
from roost.ledger.feed import commits_after, decode_changes
from roost.ledger.holdings import held_by_all
from roost.ledger.tables import commits
from roost.ledger.verify import verify
from roost.model.allocation import GroupClaim
from roost.model.assignment import AssignedCell, Assignment
from roost.model.change import AllocationsChanged
from roost.placement.commands.allocations import ConsumerWrite, FreeConsumers, WriteAllocations
from roost.storage import Database, Schema, SchemaTooNew, SchemaTooOld
from support.ledgers import claim, host, run, whole
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


def test_check_names_the_command_that_makes_missing_tables(database):
    with pytest.raises(SchemaTooOld, match=r"has no ledger tables: run 'roost db upgrade\b.*--database"):
        LEDGER.check(database)


def test_a_database_that_is_behind_is_upgraded_only_if_asked(database):
    LEDGER.upgrade(database)
    # What 0002 brought.
    database.write_now(lambda connection: connection.exec_driver_sql("DROP TABLE waiting_writers"))
    set_revision(database, LEDGER, "0001")
    needed = f"is at ledger revision 0001, this program needs {LEDGER.revisions[-1]}"
    with pytest.raises(SchemaTooOld, match=needed):
        LEDGER.prepare(database)
    LEDGER.upgrade(database)
    LEDGER.check(database)
    assert "waiting_writers" in database.read_now(lambda connection: sa.inspect(connection).get_table_names())


def test_commits_outlive_the_change_of_their_key(database):
    LEDGER.upgrade(database)
    rows = [(seq, "writer", seq / 10, "[]") for seq in (1, 2, 2**40)]

    def age(connection: sa.Connection) -> None:
        if database.is_sqlite:  # as 0002 had it
            connection.exec_driver_sql("DROP TABLE commits")
            connection.exec_driver_sql(
                "CREATE TABLE commits (seq BIGINT NOT NULL, writer VARCHAR(36) NOT NULL, "
                "committed_at DOUBLE NOT NULL, changes TEXT NOT NULL, PRIMARY KEY (seq))"
            )
        names = [column.name for column in commits.columns]
        connection.execute(sa.insert(commits), [dict(zip(names, row, strict=True)) for row in rows])

    database.write_now(age)
    set_revision(database, LEDGER, "0002")
    LEDGER.upgrade(database)
    kept = database.read_now(lambda connection: connection.execute(sa.select(commits)).all())
    assert [tuple(row) for row in kept] == rows
    if database.is_sqlite:
        plan = "EXPLAIN QUERY PLAN SELECT * FROM commits WHERE seq >= 2 ORDER BY seq"
        how = database.read_now(lambda connection: connection.exec_driver_sql(plan).all())
        assert [step.detail for step in how] == ["SEARCH commits USING INTEGER PRIMARY KEY (rowid>?)"]


def upgrade_to(database: Database, schema: Schema, revision: str) -> None:
    scripts = ScriptDirectory(str(schema.scripts))

    def run(connection: sa.Connection) -> None:
        steps = {"fn": lambda at, _: scripts._upgrade_revs(revision, at)}
        context = MigrationContext.configure(
            connection, opts={"version_table": f"{schema.name}_schema", **steps}
        )
        with Operations.context(context):
            context.run_migrations()

    database.write_now(run)


@pytest.mark.parametrize("cut_off", ["", "before the swap", "after the swap"])
def test_consumers_keep_what_they_hold_when_they_get_ids(database, cut_off):
    upgrade_to(database, LEDGER, "0003")
    before = [
        "INSERT INTO resource_classes VALUES (0, 'VCPU'), (1, 'DISK_GB')",
        "INSERT INTO resource_providers VALUES (0, 'p', 'p', NULL, 1, 0.0), (1, 'q', 'q', NULL, 1, 0.0)",
        "INSERT INTO consumers VALUES ('b', 'project', 'user', 'INSTANCE', 3, 0.5)",
        "INSERT INTO consumers VALUES ('a', 'project', 'user', 'MIGRATION', 1, 0.0)",
        "INSERT INTO allocations VALUES ('b', 0, 0, 2), ('b', 1, 1, 5), ('a', 0, 0, 1)",
    ]
    if cut_off == "before the swap":
        before.append("CREATE TABLE new_consumers (id INTEGER)")
    run_all(database, before)
    if cut_off == "after the swap":
        upgrade_to(database, LEDGER, "0004")
        run_all(database, ["CREATE TABLE old_allocations (id INTEGER)"])
        set_revision(database, LEDGER, "0003")
    LEDGER.upgrade(database)
    held = database.read_now(held_by_all)
    assert {each: (held[each].consumer.generation, held[each].allocations) for each in held} == {
        "a": (1, {"p": {"VCPU": 1}}),
        "b": (3, {"p": {"VCPU": 2}, "q": {"DISK_GB": 5}}),
    }
    names = database.read_now(lambda connection: sa.inspect(connection).get_table_names())
    assert not [name for name in names if name.startswith(("old_", "new_"))]
    indexes = database.read_now(lambda connection: sa.inspect(connection).get_indexes("allocations"))
    assert "allocations_by_provider" in {index["name"] for index in indexes}
    for refused in ("(1, 0, 1, 0)", "(1, 0, 0, 2)"):  # nothing used, and once more the same
        with pytest.raises(IntegrityError):
            run_all(database, [f"INSERT INTO allocations VALUES {refused}"])
    differences = database.read_now(
        lambda connection: compare_metadata(MigrationContext.configure(connection), LEDGER.metadata)
    )
    assert [each for each in differences if "ledger_schema" not in str(each)] == []


def test_a_filled_database_gets_server_groups_and_assignments(database):
    """Consumers, commits and their history stay; members can join at once."""
    LEDGER.upgrade(database)

    async def fill() -> dict[str, Any]:
        ledger = await Ledger.open(database)
        await run(ledger, *host("a", VCPU=8), *host("b", VCPU=8))
        await run(ledger, claim("x", "a", VCPU=1), claim("y", "b", VCPU=2), FreeConsumers(("y",)))
        before = whole(await ledger.current())
        await ledger.close()
        return before

    before = asyncio.run(fill())

    def age(connection: sa.Connection) -> None:
        for seq, text in connection.execute(sa.select(commits.c.seq, commits.c.changes)).all():
            old = text.replace(',"group":null', "").replace(',"assignment":null', "")
            connection.execute(sa.update(commits).where(commits.c.seq == seq).values(changes=old))

    database.write_now(age)
    on = "" if database.is_sqlite or "postgresql" in str(database.url) else " ON consumers"
    run_all(
        database,
        [
            f"DROP INDEX consumers_by_group{on}",
            "ALTER TABLE consumers DROP COLUMN server_group",
            "ALTER TABLE consumers DROP COLUMN assignment",
        ],
    )
    set_revision(database, LEDGER, "0005")
    texts = database.read_now(
        lambda connection: connection.execute(sa.select(commits.c.changes)).scalars().all()
    )
    assert any("generation" in text for text in texts)
    assert not any("group" in text or "assignment" in text for text in texts)
    LEDGER.upgrade(database)

    assignment = Assignment("b", (AssignedCell(0, 1, pinned=((0, 4),)),))

    async def use() -> None:
        ledger = await Ledger.open(database)
        assert whole(await ledger.current()) == before
        changes = await ledger.database.read(lambda connection: commits_after(connection, 0, 100, 2**20))
        consumers = [
            each.after
            for commit in changes.commits
            for each in decode_changes(commit.changes)
            if isinstance(each, AllocationsChanged)
        ]
        assert [each and each.group for each in consumers] == [None] * 3
        assert [each and each.assignment for each in consumers] == [None] * 3
        member = ConsumerWrite(
            consumer="x",
            allocations={"b": {"VCPU": 1}},
            project_id="p",
            user_id="u",
            group=GroupClaim("g", "anti-affinity"),
            assignment=assignment,
        )
        await ledger.execute(WriteAllocations((member,)))
        await ledger.close()

    asyncio.run(use())
    assert database.read_now(verify) == []
    owner = database.read_now(held_by_all)["x"].consumer
    assert (owner.group, owner.assignment) == ("g", assignment)


def run_all(database: Database, statements: list[str]) -> None:
    def work(connection: sa.Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    database.write_now(work)


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
