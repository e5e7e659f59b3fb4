"""What an older version of a cell stored is there after the upgrade."""

import asyncio
from pathlib import Path

import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from roost.cells import SCHEMA, Cell
from roost.cells.arriving import Arrival
from roost.cells.attempts import AttemptsOf
from roost.model.instance import BuildResult, Fault
from roost.model.node import NodeReport
from roost.storage import Database
from support.cells import instance

HOSTS = "0004"
"""The last revision with a table of hosts."""
FAULTS = "0005"
"""The last revision with a table of faults."""


def old_database(path: Path, last: str, *statements: sa.TextClause) -> None:
    """Make a database of the revision ``last`` and execute statements in it."""
    engine = sa.create_engine(f"sqlite:///{path}")
    revisions = [*ScriptDirectory(str(SCHEMA.scripts)).walk_revisions("base", last)]
    with engine.begin() as connection:
        with Operations.context(MigrationContext.configure(connection)):
            for revision in reversed(revisions):
                revision.module.upgrade()
        connection.execute(sa.text("CREATE TABLE cell_schema (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
        connection.execute(sa.text(f"INSERT INTO cell_schema VALUES ('{last}')"))
        for statement in statements:
            connection.execute(statement)
    engine.dispose()


def test_hosts_become_nodes(tmp_path) -> None:
    path = tmp_path / "cell.db"
    aggregates = '[{"uuid": "agg", "name": "zone", "metadata": {"availability_zone": "az1"}}]'
    host = sa.text("INSERT INTO hosts VALUES ('a', 'node-a', 0, 10.0, 2, '{\"heat\": 1.5}', :aggregates)")
    old_database(path, HOSTS, host.bindparams(aggregates=aggregates))

    async def run() -> None:
        database = Database(f"sqlite:///{path}")
        SCHEMA.upgrade(database)
        assert await Cell("cell1", database).nodes() == [
            NodeReport(
                host="a",
                node="node-a",
                cell="cell1",
                enabled=False,
                failed_builds=2,
                metrics={"heat": 1.5},
            )
        ]
        assert not await database.read(lambda connection: sa.inspect(connection).has_table("hosts"))
        await database.close()

    asyncio.run(run())


def test_faults_become_attempts_and_instances_get_fences(tmp_path) -> None:
    path = tmp_path / "cell.db"
    columns = "uuid, request_id, run, project_id, user_id, flavor, state, host, node, attempt, alternates"
    old_database(
        path,
        FAULTS,
        sa.text(
            f"INSERT INTO instances ({columns}, changed_at)"
            " VALUES ('i', 'req', 'run', 'project', 'user', 'small', 'assigned', 'b', 'node-b', 2, '[]', 20)"
        ),
        sa.text("INSERT INTO faults VALUES ('i', 1, 'a', 'no IP', 10.0)"),
    )

    async def run() -> None:
        database = Database(f"sqlite:///{path}")
        SCHEMA.upgrade(database)
        cell = Cell("cell1", database, lambda: 30.0)
        assert await cell.faults_of("i") == [Fault("i", 1, "a", "no IP", 10.0)]
        assert await cell.find(["i"]) == {"i": instance(host="b", attempt=2)}
        assert await cell.add([instance()]) == {"i": Arrival.THERE}
        # The present attempt began when the row was written last.
        await cell.report([BuildResult("i", "b", 2, "no disk")])
        [_, last] = await database.read(AttemptsOf("i"))
        assert (last.began, last.ended, last.node) == (20.0, 30.0, "node-b")
        await database.close()

    asyncio.run(run())
