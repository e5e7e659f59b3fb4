"""The table of Nova's releases, and the check of a database against the columns that are read."""

import asyncio
import json
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
from sqlalchemy import insert, text
from structlog.testing import capture_logs

from roost.nova.database.cells import NovaCells
from roost.nova.database.tables import API, CELL, cell_mappings, services
from roost.nova.releases import (
    NEWEST,
    RELEASES,
    NovaTablesDiffer,
    check_cloud,
    outside_warnings,
    releases_of,
)
from roost.storage import Database
from support.nova import nova_python

_FACTS = """
import json
from nova.objects import request_spec, selection, service
from nova.scheduler import manager
print(json.dumps([service.SERVICE_VERSION, service.SERVICE_VERSION_ALIASES, request_spec.RequestSpec.VERSION,
                  selection.Selection.VERSION, manager.SchedulerManager.target.version]))
"""

ALIASES = {"2024.1": "Caracal", "2024.2": "Dalmatian", "2025.1": "Epoxy", "2025.2": "Flamingo"}


def test_the_table_is_that_of_the_installed_nova() -> None:
    python = nova_python()
    if python is None:
        pytest.skip("Nova is not installed: make nova")
    answer = subprocess.run(
        [python, "-W", "ignore", "-c", _FACTS], capture_output=True, text=True, check=True
    )
    version, aliases, spec, selection, rpc = json.loads(answer.stdout.splitlines()[-1])
    assert (NEWEST.last_service, NEWEST.request_spec, NEWEST.selection, NEWEST.rpc) == (
        version,
        spec,
        selection,
        rpc,
    )
    for release in RELEASES[:4]:
        assert release.first_service <= aliases[ALIASES[release.name]] <= release.last_service


def test_the_ranges_of_releases_leave_no_version_out() -> None:
    for before, after in pairwise(RELEASES):
        assert after.first_service in (before.last_service, before.last_service + 1)


def test_releases_of_service_versions() -> None:
    assert releases_of(67) == "2024.1 or 2024.2"
    assert releases_of(74) == "2026.2"
    assert releases_of(65) == "older than 2024.1"
    assert releases_of(75) == "newer than 2026.2"


def test_versions_outside_of_the_table_are_warned_about() -> None:
    assert outside_warnings([0, 66, 74], "cell1") == []
    [older, newer] = outside_warnings([80, 61, 70], "cell1")
    assert "version 61, which is older than 2024.1" in older
    assert "version 80, which is newer than 2026.2" in newer


@pytest.fixture
def cloud(tmp_path: Path) -> tuple[Database, Database]:
    """Nova's API database with one cell, and the database of the cell."""
    api, cell = (Database(f"sqlite:///{tmp_path / name}.db") for name in ("api", "cell"))
    api.write_now(API.create_all)
    cell.write_now(CELL.create_all)
    row = {"id": 2, "uuid": "5c1d8e6a-0000-4000-8000-000000000001", "name": "one"}
    url = f"sqlite:///{tmp_path / 'cell.db'}"
    api.write_now(
        lambda connection: connection.execute(insert(cell_mappings), {**row, "database_connection": url})
    )
    return api, cell


def checked(api: Database) -> list[str]:
    async def main() -> list[str]:
        cells = NovaCells(api, None)
        await cells.refresh()
        try:
            return await check_cloud(cells)
        finally:
            await cells.close()

    return asyncio.run(main())


def test_a_cloud_of_a_known_release(cloud: tuple[Database, Database]) -> None:
    api, cell = cloud
    row = {"host": "h1", "binary": "nova-compute", "topic": "compute", "report_count": 1, "version": 74}
    cell.write_now(lambda connection: connection.execute(insert(services), row))
    assert checked(api) == []
    newer = {**row, "host": "h2", "version": 75}
    cell.write_now(lambda connection: connection.execute(insert(services), newer))
    [warning] = checked(api)
    assert "cell one has services of version 75, which is newer than 2026.2" in warning


@pytest.mark.parametrize(
    ("place", "change", "missing"),
    [
        (0, "ALTER TABLE aggregates RENAME COLUMN uuid TO old_uuid", "aggregates.uuid"),
        (1, "DROP TABLE migrations", "migrations"),
    ],
)
def test_a_missing_column_or_table_is_named(
    cloud: tuple[Database, Database], place: int, change: str, missing: str
) -> None:
    cloud[place].write_now(lambda connection: connection.execute(text(change)))
    with pytest.raises(NovaTablesDiffer) as refused:
        checked(cloud[0])
    assert f"it lacks {missing};" in str(refused.value)


def test_a_cell_that_lacks_a_table_does_not_stop_the_others(
    cloud: tuple[Database, Database], tmp_path: Path
) -> None:
    api, cell = cloud
    other = Database(f"sqlite:///{tmp_path / 'other.db'}")
    other.write_now(CELL.create_all)
    row = {"id": 3, "uuid": "5c1d8e6a-0000-4000-8000-000000000002", "name": "two"}
    url = f"sqlite:///{tmp_path / 'other.db'}"
    api.write_now(
        lambda connection: connection.execute(insert(cell_mappings), {**row, "database_connection": url})
    )
    cell.write_now(lambda connection: connection.execute(text("DROP TABLE migrations")))
    with capture_logs() as logs:
        assert checked(api) == []
    [error] = [each for each in logs if each["log_level"] == "error"]
    assert "cell one" in error["error"] and "it lacks migrations;" in error["error"]
    other.write_now(lambda connection: connection.execute(text("DROP TABLE migrations")))
    with pytest.raises(NovaTablesDiffer, match="cell one"):
        checked(api)


def test_a_database_that_does_not_answer_is_left_to_the_feed(cloud: tuple[Database, Database]) -> None:
    api, _ = cloud
    away = {"database_connection": "mysql+pymysql://nova:secret@127.0.0.1:1/nova_cell1"}
    api.write_now(lambda connection: connection.execute(cell_mappings.update(), away))
    assert checked(api) == []
