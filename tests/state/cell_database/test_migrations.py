"""What an older version of a cell stored is there after the upgrade."""

import asyncio

import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from roost.model.instance import BuildResult, Transition
from roost.state.cell_database import SCHEMA, Cell
from roost.state.cell_database.state_changes import changes_after, number_new_changes
from roost.storage import Database

STATE_CHANGES = "0014"
"""The last revision without the log of state changes."""


def made_at(connection: sa.Connection, last: str) -> None:
    """Make the tables of the revision ``last``."""
    revisions = [*ScriptDirectory(str(SCHEMA.scripts)).walk_revisions("base", last)]
    with Operations.context(MigrationContext.configure(connection)):
        for revision in reversed(revisions):
            revision.module.upgrade()
    connection.execute(sa.text("CREATE TABLE cell_schema (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
    connection.execute(sa.text(f"INSERT INTO cell_schema VALUES ('{last}')"))


def test_changes_are_told_from_the_upgrade_on(place) -> None:
    columns = "uuid, request_id, run, project_id, user_id, flavor, state, host, node, attempt, alternates"
    engine = sa.create_engine(place.url)
    with engine.begin() as connection:
        made_at(connection, STATE_CHANGES)
        connection.execute(
            sa.text(
                f"INSERT INTO instances ({columns}, changed_at) VALUES"
                " ('i', 'req', 'run', 'project', 'user', 'small', 'starting', 'a', 'node-a', 1, '[]', 1.0)"
            )
        )
    engine.dispose()

    async def run() -> None:
        database = Database(place.url)
        SCHEMA.upgrade(database)
        cell = Cell("cell1", database, lambda: 2.0)
        await cell.report([BuildResult("i", "a", 1)])
        assert await database.write(number_new_changes()) == 1
        [change] = (await database.read(changes_after(after=None, most=9))).changes
        assert (change.position, change.instance, change.host) == (1, "i", "a")
        assert change.transition == Transition(state="active", at=2.0)
        await database.close()

    asyncio.run(run())
