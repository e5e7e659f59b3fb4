"""Hosts that an older version of a cell stored are its nodes after the upgrade."""

import asyncio

import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from roost.cells import SCHEMA, Cell
from roost.model.node import NodeReport
from roost.storage import Database

OLD = "0004"
"""The last revision with a table of hosts."""


def test_hosts_become_nodes(tmp_path) -> None:
    path = tmp_path / "cell.db"
    engine = sa.create_engine(f"sqlite:///{path}")
    revisions = [*ScriptDirectory(str(SCHEMA.scripts)).walk_revisions("base", OLD)]
    with engine.begin() as connection:
        with Operations.context(MigrationContext.configure(connection)):
            for revision in reversed(revisions):
                revision.module.upgrade()
        connection.execute(sa.text("CREATE TABLE cell_schema (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
        connection.execute(sa.text(f"INSERT INTO cell_schema VALUES ('{OLD}')"))
        connection.execute(
            sa.text("INSERT INTO hosts VALUES ('a', 'node-a', 0, 10.0, 2, '{\"heat\": 1.5}', :aggregates)"),
            {"aggregates": '[{"uuid": "agg", "name": "zone", "metadata": {"availability_zone": "az1"}}]'},
        )
    engine.dispose()

    async def run() -> None:
        database = Database(f"sqlite:///{path}")
        SCHEMA.upgrade(database)
        assert await Cell("cell1", database).nodes() == [
            NodeReport(
                host="a",
                node="node-a",
                cell="cell1",
                last_seen=10.0,
                enabled=False,
                failed_builds=2,
                metrics={"heat": 1.5},
            )
        ]
        assert not await database.read(lambda connection: sa.inspect(connection).has_table("hosts"))
        await database.close()

    asyncio.run(run())
