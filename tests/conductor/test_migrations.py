"""What an earlier version left in the API database is worked on after the upgrade."""

import asyncio

import msgspec
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory

from roost.model.instance import ASSIGNED, Instance
from roost.model.names import look_of
from roost.placement.commands.allocations import ConsumerWrite
from roost.state.api_database.build_requests import clean_request
from roost.state.api_database.tables import SCHEMA
from support.conducting import conducting, request
from support.waiting import patience

OLD = "0008"
"""The last revision without owners."""


def downgrade(connection: sa.Connection) -> None:
    """Make the tables of the revision `OLD` anew."""
    for table in (*SCHEMA.metadata.tables, "conductor_schema"):
        if table != "database_identity":
            connection.execute(sa.text(f"DROP TABLE IF EXISTS {table}"))
    revisions = [*ScriptDirectory(str(SCHEMA.scripts)).walk_revisions("base", OLD)]
    with Operations.context(MigrationContext.configure(connection)):
        for revision in reversed(revisions):
            revision.module.upgrade()
    connection.execute(
        sa.text("CREATE TABLE conductor_schema (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    )
    connection.execute(sa.text(f"INSERT INTO conductor_schema VALUES ('{OLD}')"))


def in_cell(uuid: str, request_id: str) -> Instance:
    return Instance(
        uuid=uuid,
        request_id=request_id,
        run="run",
        project_id="project",
        user_id="user",
        flavor="small",
        state=ASSIGNED,
        host="d",
        node="node-d",
        attempt=1,
        epoch=1,
    )


def test_waiting_requests_and_mappings_are_carried_over(tmp_path) -> None:
    """One instance of a waiting request is in its cell, without a mapping; the other one has a claim."""

    async def first_life() -> None:
        async with conducting(tmp_path) as now:
            await now.cells["cell2"].add([in_cell("i0", "req"), in_cell("old", "finished")])
            for uuid, node in (("i0", "node-d"), ("old", "node-d"), ("i1", "node-a")):
                claimed = ConsumerWrite(
                    consumer=uuid,
                    allocations={node: {"VCPU": 1}},
                    project_id="project",
                    user_id="user",
                    consumer_type="INSTANCE",
                )
                await now.placement.write_allocations([claimed])
            urls = {name: str(cell.database.url) for name, cell in now.cells.items()}

            def revert(connection: sa.Connection) -> None:
                downgrade(connection)
                for name, url in urls.items():
                    row = {"name": name, "url": url}
                    connection.execute(sa.text("INSERT INTO cell_mappings VALUES (:name, :url)"), row)
                row = {"text": msgspec.json.encode(clean_request(request(2))).decode()}
                connection.execute(sa.text("INSERT INTO build_requests VALUES ('req', :text, 1.0)"), row)
                for uuid in ("old", "stale"):
                    connection.execute(sa.text(f"INSERT INTO instance_mappings VALUES ('{uuid}', 'cell2')"))

            await now.super.close()
            await now.ledger.database.write(revert)
            SCHEMA.upgrade(now.ledger.database)

    async def second_life() -> None:
        async with conducting(tmp_path) as now:
            await now.super.resume()
            await now.arrive()
            async with asyncio.timeout(patience(30)):
                while (await now.requests.mappings(["old", "stale"])).keys() != {"old"}:
                    await asyncio.sleep(0.01)
            found = await now.instances()
            assert found.keys() == {"i0", "i1", "old"}
            assert found["i0"] == in_cell("i0", "req"), "it had arrived"
            held = await now.placement.allocations_of("i1")
            assert held is not None
            assert held.consumer.generation == 2, "its claim was replaced"
            old = await now.requests.mapping("old")
            assert old is not None
            assert old.accepted_at is None, "nobody knows it any more"
            waiting = await now.requests.mapping("i1")
            assert waiting is not None
            assert waiting.accepted_at == 1.0, "its request waited"
            assert (old.request_id, old.project_id, old.user_id) == ("finished", "project", "user")
            await now.check()

    asyncio.run(first_life())
    asyncio.run(second_life())


def test_names_that_are_there_have_their_look() -> None:
    """Look-alikes of names that an earlier version has stored are found."""
    names = ["Rack-0I1", "io.example", "plain"]
    [revision] = [
        each for each in ScriptDirectory(str(SCHEMA.scripts)).walk_revisions() if each.revision == "0021"
    ]
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE host_mappings (host VARCHAR(255), cell VARCHAR(255))"))
        connection.execute(sa.text("CREATE TABLE node_names (name VARCHAR(255), host VARCHAR(255))"))
        for name in names:
            connection.execute(sa.text("INSERT INTO host_mappings VALUES (:name, 'cell1')"), {"name": name})
            connection.execute(sa.text("INSERT INTO node_names VALUES (:name, 'a')"), {"name": name})
        with Operations.context(MigrationContext.configure(connection)):
            revision.module.upgrade()
            revision.module.upgrade()
        for table, column in (("host_mappings", "host"), ("node_names", "name")):
            rows = connection.execute(sa.text(f"SELECT {column}, look FROM {table}")).all()
            assert dict(map(tuple, rows)) == {name: look_of(name) for name in names}
    engine.dispose()
