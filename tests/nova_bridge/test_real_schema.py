"""The feed reads databases whose tables nova-manage has made."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from roost.nova.database import tables
from roost.nova.releases import missing_columns
from support.databases import Servers
from support.nova import NOT_INSTALLED, nova_python
from support.nova_clouds import FedTable, NovaCloud, cell_uuid, moment

MANAGE = "import sys; from nova.cmd import manage; sys.exit(manage.main())"

pytestmark = pytest.mark.nightly


@pytest.fixture
def cloud(servers: Servers, tmp_path: Path) -> Iterator[NovaCloud]:
    """A Nova on MariaDB: the way of nearly all installations."""
    python = nova_python()
    if python is None:
        pytest.skip(NOT_INSTALLED)
    with contextlib.ExitStack() as stack:
        urls = {
            name: stack.enter_context(servers.place("mariadb", tmp_path)).url for name in ("api", "cell1")
        }
        file = tmp_path / "nova.conf"
        file.write_text(
            f"[api_database]\nconnection = {urls['api']}\n[database]\nconnection = {urls['cell1']}\n"
        )
        # Nova's environment has no driver of MariaDB; Roost's is in Python alone.
        drivers = tmp_path / "drivers"
        drivers.mkdir()
        (drivers / "pymysql").symlink_to(Path(pymysql.__file__).parent)
        for command in (["api_db", "sync"], ["db", "sync", "--local_cell"]):
            done = subprocess.run(
                [python, "-W", "ignore", "-c", MANAGE, "--config-file", file, *command],
                capture_output=True,
                text=True,
                env={**os.environ, "PYTHONPATH": str(drivers)},
            )
            assert done.returncode == 0, done.stdout + done.stderr
        made = NovaCloud(tmp_path, "cell1", urls=urls)
        yield made
        made.close()


def test_databases_that_nova_made_feed_the_table(cloud: NovaCloud) -> None:
    for name, read in (("api", tables.API), ("cell1", tables.CELL)):
        with cloud.engines[name].connect() as connection:
            assert missing_columns(connection, read) == []
    for host in "ab":
        cloud.host("cell1", host, host_ip="10.0.0.1", supported_instances=[["x86_64", "kvm", "hvm"]])
    cloud.service("cell1", "b", disabled=True)
    instance = cloud.instance("cell1", "i", "a", image_ref="image", updated_at=moment(0))
    cloud.image(instance, "cell1", os_distro="x")
    cloud.migration("cell1", instance, source_compute="a", status="accepted", migration_type="evacuation")
    cloud.aggregate("one", ["a"], availability_zone="z")
    fed = FedTable(cloud)
    fed.refresh()
    assert (fed.up, fed.enabled) == ({"a", "b"}, {"a"})
    report = fed.table.report(fed.table.index("a") or 0)
    assert (report.cell, report.host_ip) == (cell_uuid("cell1"), "10.0.0.1")
    assert report.instances[instance].image_properties == {"os_distro": "x"}
    cloud.node("cell1", "a", at=1.0, stats={"num_instances": 3})
    cloud.remove_node("cell1", "b")
    fed.table.claim(instance, fed.table.index("b") or 0)
    fed.refresh(after=30.0)
    assert fed.table.hosts[0] == "a" and fed.table.index("b") is None
    assert fed.table.report(fed.table.index("a") or 0).num_instances == 3
    assert not fed.feed.cells_down
    fed.close()
