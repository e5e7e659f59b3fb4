"""What an older version of a cell stored is there after the upgrade."""

import asyncio
from pathlib import Path

import sqlalchemy as sa
from alembic.operations import Operations
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from roost.model.history import Transition
from roost.model.instance import BuildResult, Fault
from roost.model.node import NodeReport
from roost.state.cell_database import SCHEMA, Cell
from roost.state.cell_database.arrivals import Arrival
from roost.state.cell_database.attempts import AttemptsOf
from roost.state.cell_database.history import ReadHistory
from roost.state.cell_database.state_changes import ChangesAfter, NumberChanges
from roost.storage import Database
from support.cells import instance

STATE_CHANGES = "0014"
"""The last revision without the log of state changes."""
HISTORY = "0010"
"""The last revision without histories."""
HOSTS = "0004"
"""The last revision with a table of hosts."""
FAULTS = "0005"
"""The last revision with a table of faults."""


def old_database(path: Path, last: str, *statements: sa.TextClause) -> None:
    """Make a database of the revision ``last`` and execute statements in it."""
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        made_at(connection, last)
        for statement in statements:
            connection.execute(statement)
    engine.dispose()


def made_at(connection: sa.Connection, last: str) -> None:
    """Make the tables of the revision ``last``."""
    revisions = [*ScriptDirectory(str(SCHEMA.scripts)).walk_revisions("base", last)]
    with Operations.context(MigrationContext.configure(connection)):
        for revision in reversed(revisions):
            revision.module.upgrade()
    connection.execute(sa.text("CREATE TABLE cell_schema (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
    connection.execute(sa.text(f"INSERT INTO cell_schema VALUES ('{last}')"))


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


def test_histories_begin_with_what_is_known(place) -> None:
    columns = "uuid, request_id, run, project_id, user_id, flavor, state, host, node, attempt, alternates"
    rows = (
        ("moved", "starting", "b", 2, None, 20.0, 12.0),
        ("failed", "failed", "a", 1, "no IP", 11.0, 10.0),
        ("buried", "error", None, 0, "no valid host", 5.0, 5.0),
        ("runs", "active", "a", 1, None, 11.0, 10.0),
    )
    engine = sa.create_engine(place.url)
    with engine.begin() as connection:
        made_at(connection, HISTORY)
        for uuid, state, host, attempt, reason, changed_at, began in rows:
            node = None if host is None else f"node-{host}"
            facts = (uuid, state, host, node, attempt, reason, changed_at, began)
            values = dict(zip("abcdefgh", facts, strict=True))
            connection.execute(
                sa.text(
                    f"INSERT INTO instances ({columns}, reason, changed_at, began) VALUES"
                    " (:a, 'req', 'run', 'project', 'user', 'small', :b, :c, :d, :e, '[]', :f, :g, :h)"
                ),
                values,
            )
        for uuid, attempt, host, ended, reason in (
            ("moved", 1, "a", 11.0, "password=hunter2"),
            ("failed", 1, "a", 11.0, "no IP"),
            ("buried", 0, None, 5.0, "no valid host"),
        ):
            values = {"a": uuid, "b": attempt, "c": host, "d": ended, "e": reason}
            connection.execute(
                sa.text(
                    "INSERT INTO build_attempts (instance_uuid, attempt, host, began, ended, result, reason)"
                    " VALUES (:a, :b, :c, 10.0, :d, 'failed', :e)"
                ),
                values,
            )
    engine.dispose()

    async def run() -> None:
        database = Database(place.url)
        SCHEMA.upgrade(database)
        told = {}
        for uuid, *_ in rows:
            history = await database.read(ReadHistory(uuid))
            assert history is not None
            assert history.complete
            told[uuid] = [(each.state, each.at, each.attempt, each.reason) for each in history.transitions]
        assert told == {
            "moved": [
                ("assigned", 10.0, 1, None),
                ("failed", 11.0, 0, "password=***"),
                ("assigned", 12.0, 2, None),
                ("starting", 20.0, 0, None),
            ],
            "failed": [("assigned", 10.0, 1, None), ("failed", 11.0, 0, "no IP")],
            "buried": [("error", 5.0, 0, "no valid host")],
            "runs": [("assigned", 10.0, 1, None), ("active", 11.0, 0, None)],
        }
        await database.close()

    asyncio.run(run())


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
        assert await database.write(NumberChanges()) == 1
        [change] = (await database.read(ChangesAfter(after=None, most=9))).changes
        assert (change.position, change.instance, change.host) == (1, "i", "a")
        assert change.transition == Transition(state="active", at=2.0)
        await database.close()

    asyncio.run(run())
