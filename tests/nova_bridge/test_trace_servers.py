"""The traces of instances are read on MariaDB and PostgreSQL, whose columns have types of their own."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from roost.nova.database.actions import EVACUATE, read_actions, read_faults
from roost.nova.database.cells import CELL0
from roost.nova.database.evacuations import read_evacuations, read_untaken
from roost.nova.database.traces import read_api_traces, read_latest_rows, read_row_traces
from roost.storage import Database
from support.databases import Servers
from support.nova_clouds import NovaCloud, cell_uuid
from support.nova_traces import action, buried, fault, instance_uuid, migration, placed, requested

KINDS = "'migration', 'resize', 'live-migration', 'evacuation'"
ENUMS = {
    "mariadb": (f"ALTER TABLE migrations MODIFY migration_type ENUM({KINDS})",),
    "postgresql": (
        f"CREATE TYPE migration_type AS ENUM ({KINDS})",
        "ALTER TABLE migrations ALTER COLUMN migration_type TYPE migration_type "
        "USING migration_type::migration_type",
    ),
}
"""As in Nova, whose column is of the type of an enumeration. The rows are there before."""


@pytest.fixture(params=["mariadb", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def cloud(kind: str, servers: Servers, tmp_path: Path) -> Iterator[NovaCloud]:
    with contextlib.ExitStack() as stack:
        names = ("api", "cell0", "cell1")
        urls = {name: stack.enter_context(servers.place(kind, tmp_path)).url for name in names}
        made = NovaCloud(tmp_path, "cell0", "cell1", urls=urls)
        yield made
        made.close()


def test_all_traces_of_instances_are_read(kind: str, cloud: NovaCloud) -> None:
    waiting, one, two = (requested(cloud, name) for name in ("waiting", "one", "two"))
    buried(cloud, "one")
    placed(cloud, "two", "cell1", "a", task_state="rebuilding", deleted=3)
    migration(cloud, "cell1", "two", "a", "accepted")
    action(cloud, "cell1", "two", "evacuate", ("rebuild_server", "conductor", "Error"), details="no answer")
    fault(cloud, "cell1", "two", "conductor", "Timed out")
    for statement in ENUMS[kind]:
        cloud.write("cell1", sa.text(statement))

    async def run() -> None:
        databases = {name: Database(url, read_only=True, deferred=True) for name, url in cloud.urls.items()}
        api, cell0, cell1 = databases.values()
        some = [waiting, one, two, instance_uuid("none")]
        traces = await api.read(read_api_traces(some))
        assert traces == ({waiting}, {one: CELL0, two: cell_uuid("cell1")})
        assert [row.uuid for row in await cell0.read(read_latest_rows(0, 10))] == [one]
        [row] = (await cell1.read(read_row_traces(some))).values()
        assert (row.uuid, row.host, row.task, row.deleted, row.launched) == (
            two,
            "a",
            "rebuilding",
            True,
            False,
        )
        [untaken] = await cell1.read(read_untaken(0, 10))
        assert (untaken.instance, untaken.status, untaken.untaken) == (two, "accepted", True)
        assert await cell1.read(read_evacuations(some)) == [untaken]
        [found] = (await cell1.read(read_actions(some, EVACUATE)))[two]
        assert [(each.name, each.result, each.details) for each in found.events] == [
            ("rebuild_server", "Error", "no answer")
        ]
        assert (await cell1.read(read_actions(some, "create"))) == {}
        assert [each.text for each in (await cell1.read(read_faults(some)))[two]] == ["Timed out"]
        for database in databases.values():
            await database.close()

    asyncio.run(run())
