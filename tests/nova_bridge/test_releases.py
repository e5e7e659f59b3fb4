"""The table of Nova's releases, and the check of a database against the columns that are read."""

import asyncio
import json
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest
import sqlalchemy as sa

from roost.nova.releases import (
    NEWEST,
    RELEASES,
    NovaTablesDiffer,
    check_tables,
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


READ = sa.MetaData()
sa.Table("aggregates", READ, sa.Column("id", sa.Integer), sa.Column("uuid", sa.String(36)))
sa.Table("migrations", READ, sa.Column("id", sa.Integer))


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ("ALTER TABLE aggregates RENAME COLUMN uuid TO old_uuid", "aggregates.uuid"),
        ("DROP TABLE migrations", "migrations"),
    ],
)
def test_a_missing_column_or_table_is_named(tmp_path: Path, change: str, missing: str) -> None:
    database = Database(f"sqlite:///{tmp_path / 'nova.db'}")
    database.write_now(READ.create_all)
    check_tables(database, READ, "the database")
    database.write_now(lambda connection: connection.execute(sa.text(change)))
    with pytest.raises(NovaTablesDiffer) as refused:
        check_tables(database, READ, "the database")
    assert f"it lacks {missing};" in str(refused.value)
    asyncio.run(database.close())
