"""Programs of earlier revisions work with later tables, as far as the revisions say so."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory

from roost.storage import Database, Schema, SchemaTooNew
from support.preparing import SCHEMAS

SCRIPT = """
import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = {before!r}
branch_labels = None
depends_on = None
{works_from}

def upgrade() -> None:
    op.create_table("t{revision}", sa.Column("id", sa.Integer, primary_key=True), if_not_exists=True)
"""


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(database_url)
    yield database
    asyncio.run(database.close())


def program(folder: Path, *works_from: str | None) -> Schema:
    """A program with revisions 0001 and on, and what each says of the programs before it."""
    scripts = folder / str(len(works_from))
    (scripts / "versions").mkdir(parents=True)
    before = None
    for number, said in enumerate(works_from, 1):
        text = SCRIPT.format(
            revision=f"{number:04}", before=before, works_from=f'works_from = "{said}"' if said else ""
        )
        before = f"{number:04}"
        (scripts / "versions" / f"{before}_made.py").write_text(text)
    return Schema("made", scripts, sa.MetaData())


@pytest.mark.parametrize(
    ("said", "oldest"),
    [
        ([None], "0001"),
        ([None, None], "0002"),
        ([None, "0001"], "0001"),
        ([None, "0001", "0002"], "0002"),
        ([None, "0001", "0001"], "0001"),
        ([None, None, "0001"], "0002"),
        ([None, "0001", None, "0001"], "0003"),
        ([None, "0001", "0002", "0001", "0003"], "0003"),
    ],
)
def test_a_program_works_if_each_later_revision_leaves_it_working(
    tmp_path: Path, said: list[str | None], oldest: str
) -> None:
    assert program(tmp_path, *said).works_from(f"{len(said):04}") == oldest


def test_programs_of_earlier_revisions_work_as_long_as_the_tables_say_so(
    tmp_path: Path, database: Database
) -> None:
    first = program(tmp_path, None)
    second = program(tmp_path, None, "0001")
    fourth = program(tmp_path, None, "0001", "0001", "0002")
    first.upgrade(database)
    assert second.leaves_working("0001") and not fourth.leaves_working("0001")
    second.upgrade(database)
    for each in (first, second):
        each.check(database)
        each.prepare(database)
    fourth.upgrade(database)
    for each in (second, fourth):
        each.check(database)
    with pytest.raises(SchemaTooNew, match="at made revision 0004, newer than this program"):
        first.check(database)
    # An earlier program does not touch tables that it does not know, though it works with them.
    with pytest.raises(SchemaTooNew):
        second.upgrade(database)


def test_what_an_upgrade_that_was_cut_off_has_not_written_counts_for_nothing(
    tmp_path: Path, database: Database
) -> None:
    first, second = program(tmp_path, None), program(tmp_path, None, "0001")
    second.upgrade(database)
    raised = sa.text("UPDATE made_schema SET version_num = '0003'")
    database.write_now(lambda connection: connection.execute(raised))
    for each in (first, second):
        with pytest.raises(SchemaTooNew):
            each.check(database)


def test_tables_of_a_program_that_kept_nothing_of_this_are_brought_up(
    tmp_path: Path, database: Database
) -> None:
    first, second = program(tmp_path, None), program(tmp_path, None, "0001")
    first.upgrade(database)
    dropped = "ALTER TABLE made_schema DROP COLUMN works_from"
    database.write_now(lambda connection: connection.exec_driver_sql(dropped))
    first.check(database)
    second.upgrade(database)
    first.check(database)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.name)
def test_a_revision_takes_nothing_from_the_programs_that_it_leaves_working(
    database: Database, schema: Schema
) -> None:
    """Each column stays as it is, and what is new need not be given."""
    upgrade_to(database, schema, schema.works_from(schema.newest))
    before = tables(database)
    schema.upgrade(database)
    after = tables(database)
    for name, columns in before.items():
        for column, told in columns.items():
            assert after[name][column] == told, f"{name}.{column}"
        for column in after[name].keys() - columns.keys():
            told = after[name][column]
            assert told["nullable"] or told["default"] is not None, f"{name}.{column}"


def upgrade_to(database: Database, schema: Schema, revision: str) -> None:
    scripts = ScriptDirectory(str(schema.scripts))

    def run(connection: sa.Connection) -> None:
        options = {
            "version_table": f"{schema.name}_schema",
            "fn": lambda at, _: scripts._upgrade_revs(revision, at),
        }
        context = MigrationContext.configure(connection, opts=options)
        with Operations.context(context):
            context.run_migrations()

    database.write_now(run)


def tables(database: Database) -> dict[str, dict[str, Any]]:
    """The columns of each table: type, whether they may be NULL, and the default of the server."""

    def read(connection: sa.Connection) -> dict[str, dict[str, Any]]:
        inspector = sa.inspect(connection)
        return {
            name: {
                each["name"]: {
                    "type": str(each["type"]),
                    "nullable": each["nullable"],
                    "default": each["default"],
                }
                for each in inspector.get_columns(name)
            }
            for name in inspector.get_table_names()
            if not name.endswith("_schema")
        }

    return database.read_now(read)
