"""The feed reads Nova's databases on MariaDB and PostgreSQL by an account that may only read."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import make_url

from roost.bench.postgresql import new_name
from roost.nova.database import tables
from roost.nova.database.aggregates import read_mark
from roost.storage import Database, DatabaseUrl
from support.databases import Servers
from support.nova_clouds import FedTable, NovaCloud, cell_uuid, moment

ACCOUNTS = {
    "mariadb": (
        "CREATE USER '{reader}'@'%%' IDENTIFIED BY 'word'",
        "GRANT SELECT ON {api}.* TO '{reader}'@'%%'",
        "GRANT SELECT ON {cell}.* TO '{reader}'@'%%'",
    ),
    "postgresql": ("CREATE ROLE {reader} LOGIN PASSWORD 'word'",),
}
GRANT = "GRANT SELECT ON ALL TABLES IN SCHEMA public TO {reader}"
GONE = {"mariadb": "DROP USER '{reader}'@'%%'", "postgresql": "DROP ROLE {reader}"}


@pytest.fixture(params=["mariadb", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def cloud(kind: str, servers: Servers, tmp_path: Path) -> Iterator[NovaCloud]:
    with contextlib.ExitStack() as stack:
        names = ("api", "cell1")
        urls = {name: stack.enter_context(servers.place(kind, tmp_path)).url for name in names}
        made = NovaCloud(tmp_path, "cell1", urls=urls)
        yield made
        made.close()


@pytest.fixture
def fed(kind: str, cloud: NovaCloud) -> Iterator[FedTable]:
    """A table that is fed by an account that has only been granted to read."""
    reader = new_name()
    names = {name: make_url(url).database for name, url in cloud.urls.items()}
    words = {"reader": reader, "api": names["api"], "cell": names["cell1"]}
    for statement in ACCOUNTS[kind]:
        cloud.write("api", sa.text(statement.format(**words).replace("%%", "%")))
    if kind == "postgresql":
        for name in names:
            cloud.write(name, sa.text(GRANT.format(**words)))
    own = make_url(cloud.urls["api"]).set(username=reader, password="word")
    template = own.set(drivername=own.get_backend_name()).render_as_string(hide_password=False)
    mapped = sa.update(tables.cell_mappings).values(
        database_connection="{scheme}://{username}:{password}@{hostname}:{port}/" + str(names["cell1"])
    )
    cloud.write("api", mapped)
    made = FedTable(cloud, api=own.render_as_string(hide_password=False), template=DatabaseUrl(template))
    yield made
    made.close()
    if kind == "postgresql":
        for name in names:
            cloud.write(name, sa.text(f"DROP OWNED BY {reader}"))
    cloud.write("api", sa.text(GONE[kind].format(**words).replace("%%", "%")))


def test_account_that_may_only_read_feeds_the_table(cloud: NovaCloud, fed: FedTable) -> None:
    for host in "abc":
        cloud.host("cell1", host, host_ip="10.0.0.1", supported_instances=[["x86_64", "kvm", "hvm"]])
    cloud.service("cell1", "c", at=-100.0)
    cloud.service("cell1", "b", disabled=True)
    instance = cloud.instance("cell1", "i", "a", image_ref="image", updated_at=moment(0))
    cloud.image(instance, "cell1", os_distro="x")
    cloud.aggregate("one", ["a"], availability_zone="z")
    fed.refresh()
    assert not fed.feed.cells_down
    assert (fed.up, fed.enabled) == ({"a", "b"}, {"a", "c"})
    index = fed.table.index("a") or 0
    report = fed.table.report(index)
    assert (report.cell, report.host_ip, report.instances[instance].image) == (
        cell_uuid("cell1"),
        "10.0.0.1",
        "image",
    )
    assert report.instances[instance].image_properties == {"os_distro": "x"}
    assert [each.metadata for each in fed.table.aggregates(index)] == [{"availability_zone": "z"}]
    cloud.node("cell1", "a", at=1.0, stats={"num_instances": 3})
    cloud.instance("cell1", "j", "b", updated_at=moment(3))
    cloud.report("cell1", "c")
    fed.table.claim(instance, fed.table.index("b") or 0)
    for _ in range(7):
        fed.refresh(after=5.0)
    assert fed.table.report(index).num_instances == 3
    assert len(fed.table.report(fed.table.index("b") or 0).instances) == 1
    assert fed.up == {"a", "b", "c"}
    assert not len(fed.table.outstanding)
    assert not fed.feed.cells_down and not fed.feed.unmapped_hosts


def test_mark_of_the_aggregates_changes_with_each_change(cloud: NovaCloud) -> None:
    api = Database(cloud.urls["api"])
    marks = [api.read_now(read_mark())]

    def has_changed() -> bool:
        marks.append(api.read_now(read_mark()))
        return marks[-1] != marks[-2]

    assert not has_changed()
    cloud.aggregate("one", ["a"], key="x")
    assert has_changed()
    cloud.aggregate("one", ["b"])
    assert has_changed()
    cloud.aggregate("one", [])
    assert has_changed()
    cloud.aggregate("one", [], at=1.0, key="y")
    assert has_changed()
    cloud.aggregate("one", [], at=32 * 86_400 + 1.0, key="z")
    assert has_changed()
    cloud.write("api", sa.update(tables.aggregates).values(name="two", updated_at=moment(9)))
    assert has_changed()
    cloud.remove_aggregate("two")
    assert has_changed()
    asyncio.run(api.close())


def test_cast_reads_the_aggregates_whatever_their_mark_is(cloud: NovaCloud, fed: FedTable) -> None:
    cloud.host("cell1", "a")
    cloud.aggregate("one", ["a"], key="x")
    for _ in range(5):
        fed.refresh(after=1.0)
    cloud.write("api", sa.update(tables.aggregate_metadata).values(value="y"))
    fed.look()
    assert fed.table.aggregates(0)[0].metadata == {"key": "x"}
    fed.feed.aggregates_changed()
    fed.look()
    assert fed.table.aggregates(0)[0].metadata == {"key": "y"}
