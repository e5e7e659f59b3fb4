"""`roost doctor --config-file nova.conf`: the bridge, its databases, broker and Nova's schedulers."""

import asyncio
import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import insert, text

from roost.cli.doctor import doctor
from roost.ledger import SCHEMA as LEDGER
from roost.nova.database.cells import CELL0
from roost.nova.database.tables import API, CELL, cell_mappings, services
from roost.records.tables import SCHEMA as RECORDS
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.storage import Database

CELL1 = "5c1d8e6a-0000-4000-8000-000000000001"
Findings = dict[str, list[dict[str, str]]]


class NovaFiles:
    """A nova.conf, and the databases of a cloud with one cell, in files."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.api, self.cell0, self.cell1, self.bridge, self.ledger = (
            Database(f"sqlite:///{folder / name}.db")
            for name in ("api", "cell0", "cell1", "bridge", "ledger")
        )
        self.api.write_now(API.create_all)
        for cell in (self.cell0, self.cell1):
            cell.write_now(CELL.create_all)
        CONDUCTOR.prepare(self.bridge)
        RECORDS.prepare(self.bridge)
        LEDGER.prepare(self.ledger)
        rows = [
            {"id": 1, "uuid": CELL0, "name": "cell0", "database_connection": str(self.cell0.given.reveal())},
            {"id": 2, "uuid": CELL1, "name": "cell1", "database_connection": str(self.cell1.given.reveal())},
        ]
        self.api.write_now(lambda connection: connection.execute(insert(cell_mappings), rows))
        self.serve(self.cell1, "compute1", "nova-compute")

    def serve(self, cell: Database, host: str, binary: str, *, version: int = 74, age: float = 1.0) -> None:
        """Put the row of a service into a cell, whose last sign of life is some seconds old."""
        seen = datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=age)
        row = {"host": host, "binary": binary, "topic": binary, "report_count": 1, "version": version}
        row |= {"last_seen_up": seen, "deleted": 0}
        cell.write_now(lambda connection: connection.execute(insert(services), row))

    def found(self, *settings: str, without: str = "") -> Findings:
        """The findings of `roost doctor` by check."""
        file = self.folder / "nova.conf"
        lines = f"""
[DEFAULT]
host = bridge
transport_url = rabbit://nova:secret@127.0.0.1:{self.port}
[api_database]
connection = {self.api.given.reveal()}
[database]
connection = {self.cell0.given.reveal()}
[api]
auth_strategy = noauth2
[nova_bridge]
connection = {self.bridge.given.reveal()}
"""
        file.write_text("\n".join(line for line in lines.splitlines() if not without or without not in line))
        chosen = [part for each in settings for part in ("--set", each)]
        database = ["--database", self.ledger.given.reveal()]
        result = CliRunner().invoke(doctor, ["--config-file", str(file), *database, *chosen, "--json"])
        found: Findings = {}
        for each in json.loads(result.stdout):
            found.setdefault(each["check"], []).append(each)
        return found


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[NovaFiles]:
    with socket.create_server(("127.0.0.1", 0)) as broker:
        files = NovaFiles(tmp_path, broker.getsockname()[1])
        yield files

    async def close() -> None:
        for database in (files.api, files.cell0, files.cell1, files.bridge, files.ledger):
            await database.close()

    asyncio.run(close())


def levels(found: Findings, check: str) -> list[str]:
    return [each["level"] for each in found[check]]


def says(found: Findings, check: str) -> str:
    return " ".join(f"{each['says']} {each['change']}" for each in found[check])


def test_a_cloud_that_is_well(cloud: NovaFiles) -> None:
    found = cloud.found()
    for check in ("nova.conf", "bridge", "message broker", "placement", "Nova's databases", "records"):
        assert set(levels(found, check)) == {"ok"}, found[check]
    assert set(levels(found, "schedulers")) == {"ok"}
    databases = says(found, "Nova's databases")
    assert "services of cell1 are of Nova 2026.2" in databases
    assert "its account needs SELECT on aggregate_hosts, aggregate_metadata" in databases
    assert databases.count("INSERT and UPDATE on services") == 1


def test_the_port_is_that_of_the_program(cloud: NovaFiles) -> None:
    assert "127.0.0.1:8782 " in says(cloud.found(), "port")


def test_shadow_mode_writes_nothing(cloud: NovaFiles) -> None:
    found = cloud.found("nova_bridge.mode=shadow")
    assert "INSERT" not in says(found, "Nova's databases")
    assert "mode = shadow" in says(found, "bridge")


def test_no_database_of_its_own(cloud: NovaFiles) -> None:
    found = cloud.found(without="bridge.db")
    assert levels(found, "bridge") == ["fail"]
    assert "[nova_bridge] connection is missing" in says(found, "bridge")
    assert levels(found, "Nova's databases") == ["skip"]


def test_no_broker(cloud: NovaFiles) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        cloud.port = server.getsockname()[1]
    found = cloud.found()
    assert levels(found, "message broker") == ["fail"]
    assert "secret" not in says(found, "message broker")


@pytest.mark.parametrize(
    ("database", "change", "missing"),
    [
        ("api", "DROP TABLE aggregates", "aggregates"),
        ("cell1", "ALTER TABLE compute_nodes RENAME COLUMN stats TO old_stats", "compute_nodes.stats"),
    ],
)
def test_a_database_that_is_not_novas(cloud: NovaFiles, database: str, change: str, missing: str) -> None:
    spoiled: Any = getattr(cloud, database)
    spoiled.write_now(lambda connection: connection.execute(text(change)))
    found = cloud.found()
    assert "fail" in levels(found, "Nova's databases")
    assert f"it lacks {missing};" in says(found, "Nova's databases")


def test_services_of_another_release(cloud: NovaFiles) -> None:
    cloud.serve(cloud.cell1, "compute2", "nova-compute", version=61)
    found = cloud.found()
    assert "warn" in levels(found, "Nova's databases")
    assert "version 61, which is older than 2024.1" in says(found, "Nova's databases")


def test_a_scheduler_of_the_same_name(cloud: NovaFiles) -> None:
    cloud.serve(cloud.cell0, "bridge", "nova-scheduler")
    cloud.serve(cloud.cell0, "dead", "nova-scheduler", age=3600.0)
    found = cloud.found()
    assert levels(found, "schedulers") == ["ok", "warn", "ok"]
    assert "table of services: bridge " in says(found, "schedulers")
    assert "set another [DEFAULT] host" in says(found, "schedulers")


@pytest.mark.parametrize(
    ("other", "row", "text"),
    [
        (None, "true", "nobody does, without a nova-scheduler"),
        ("controller", "true", "it would be the leader, because its name sorts before controller"),
        ("controller", "false", "controller is the leader as long as it is up"),
        ("a-controller", "true", "a-controller is the leader as long as it is up"),
    ],
)
def test_who_maps_new_hosts(cloud: NovaFiles, other: str | None, row: str, text: str) -> None:
    if other is not None:
        cloud.serve(cloud.cell0, other, "nova-scheduler")
    found = cloud.found("scheduler.discover_hosts_in_cells_interval=300", f"nova_bridge.service_row={row}")
    assert text in says(found, "schedulers")
    assert "nova-manage cell_v2 discover_hosts" in says(found, "schedulers")
