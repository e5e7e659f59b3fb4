"""Killed at any moment, an import goes on where it was, and an export leaves nothing."""

import random
import shutil
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest

from exchange.exchanging import at, fleet_in, holdings_in, imported, verified
from exchange.rich_state import uid
from roost.ledger.books import facts_of, used_in
from support.processes import ROOST

PROVIDERS = 1000
CONSUMERS = 6000
SECONDS = 60.0


@pytest.fixture(scope="module")
def large(rich_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source that takes a dozen commits."""
    path = Path(shutil.copy(rich_source, tmp_path_factory.mktemp("large") / "placement.db"))
    rows = range(1000, 1000 + PROVIDERS)
    consumers = [uid(f"large consumer {number}") for number in range(CONSUMERS)]
    with closing(sqlite3.connect(path)) as connection, connection:
        _insert(
            connection,
            "resource_providers (id, uuid, name, generation, root_provider_id)",
            [(row, uid(f"large {row}"), f"large {row}", 3, row) for row in rows],
        )
        _insert(
            connection,
            "inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, "
            "step_size, allocation_ratio)",
            [(row, 0, 64, 0, 1, 64, 1, 4.0) for row in rows],
        )
        _insert(
            connection,
            "consumers (uuid, project_id, user_id, generation)",
            [(consumer, 1, 1, 2) for consumer in consumers],
        )
        _insert(
            connection,
            "allocations (consumer_id, resource_provider_id, resource_class_id, used)",
            [(consumer, rows[number % PROVIDERS], 0, 1) for number, consumer in enumerate(consumers)],
        )
    return path


def _insert(connection: sqlite3.Connection, into: str, rows: list[tuple[object, ...]]) -> None:
    marks = ", ".join("?" * len(rows[0]))
    connection.executemany(f"INSERT INTO {into} VALUES ({marks})", rows)


def commits_in(path: Path) -> int:
    """How many commits there are; 0 while there is no table."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=0)) as connection:
            found: int = connection.execute("SELECT count(*) FROM commits").fetchone()[0]
            return found
    except sqlite3.OperationalError:
        return 0


def start(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([ROOST, "db", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def test_an_import_that_is_killed_goes_on(large: Path, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.db", tmp_path / "cut.db"
    imported(at(large), at(whole))
    needed = commits_in(whole)
    assert needed >= 10
    randomness = random.Random(7)
    seen: list[int] = []
    for _ in range(3):
        process = start("import-placement", "--from", at(large), "--database", at(cut))
        stop_at = (seen[-1] if seen else 0) + randomness.randint(1, 2)
        until = time.monotonic() + SECONDS
        while commits_in(cut) < stop_at and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(randomness.random() * 0.1)
        kill(process)
        seen.append(commits_in(cut))
        # At every such moment what is there is one whole story.
        assert {finding.kind for finding in verified(at(cut))} <= {"over-capacity", "unit-violated"}
    assert any(0 < commits < needed for commits in seen)
    report = imported(at(large), at(cut))
    assert report.there_already["resource providers"] > 0
    assert report.copied["consumers"] + report.there_already["consumers"] == CONSUMERS + 20
    assert commits_in(cut) == needed
    assert facts_of(fleet_in(at(cut))) == facts_of(fleet_in(at(whole)))
    assert used_in(fleet_in(at(cut))) == used_in(fleet_in(at(whole)))
    assert holdings_in(at(cut)) == holdings_in(at(whole))


def test_an_export_that_is_killed_leaves_nothing(large: Path, tmp_path: Path) -> None:
    roost, target = tmp_path / "roost.db", tmp_path / "placement.db"
    imported(at(large), at(roost))
    randomness = random.Random(7)
    for _ in range(3):
        process = start("export-placement", "--to", at(target), "--database", at(roost))
        until = time.monotonic() + SECONDS
        while not target.exists() and process.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(randomness.random() * 0.3)
        kill(process)
        if _rows_in(target):
            target.unlink()
    process = start("export-placement", "--to", at(target), "--database", at(roost))
    assert process.wait(SECONDS) == 1, process.communicate()
    process.communicate()
    assert _rows_in(target) == CONSUMERS + 20
    back = at(tmp_path / "back.db")
    imported(at(target), back)
    assert holdings_in(back) == holdings_in(at(roost))


def _rows_in(path: Path) -> int:
    """How many consumers there are, all or none."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'consumers'").fetchone()
        if tables == (0,):
            return 0
        found: int = connection.execute("SELECT count(*) FROM consumers").fetchone()[0]
    assert found in (0, CONSUMERS + 20)
    return found
