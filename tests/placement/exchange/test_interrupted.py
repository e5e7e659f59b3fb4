"""Killed at any moment, an import goes on where it was, and an export leaves nothing."""

import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from roost.ledger.facts import facts_of, used_in
from support.databases import Servers
from support.exchange.asking import Upstream
from support.exchange.exchanging import (
    at,
    exported,
    fleet_in,
    holdings_in,
    imported,
    prepared,
    verified,
    widen,
)
from support.exchange.rich_state import uid
from support.forked import Forked
from support.waiting import Deadline

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


def start(*arguments: str) -> Forked:
    with Path(os.devnull).open("wb") as nowhere:
        return Forked("db", *arguments, stdout=nowhere)


def kill(process: Forked) -> None:
    process.kill()
    process.wait()


def test_an_import_that_is_killed_goes_on(large: Path, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.db", tmp_path / "cut.db"
    imported(at(large), at(whole))
    needed = commits_in(whole)
    assert needed >= 10
    randomness = random.Random(7)
    seen: list[int] = []
    for _ in range(2):
        process = start("import-placement", "--from", at(large), "--database", at(cut))
        stop_at = (seen[-1] if seen else 0) + randomness.randint(1, 2)
        until = Deadline(SECONDS)
        while commits_in(cut) < stop_at and not until.passed:
            time.sleep(0.002)
        time.sleep(randomness.random() * 0.1)
        kill(process)
        seen.append(commits_in(cut))
        # The target is consistent at every such moment.
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
    for _ in range(2):
        process = start("export-placement", "--to", at(target), "--database", at(roost))
        until = Deadline(SECONDS)
        while not target.exists() and process.poll() is None and not until.passed:
            time.sleep(0.002)
        time.sleep(randomness.random() * 0.3)
        kill(process)
        if _rows_in(target):
            target.unlink()
    process = start("export-placement", "--to", at(target), "--database", at(roost))
    assert process.wait(SECONDS) == 1
    assert _rows_in(target) == CONSUMERS + 20
    back = at(tmp_path / "back.db")
    imported(at(target), back)
    assert holdings_in(back) == holdings_in(at(roost))


@pytest.mark.parametrize("kind", ["postgresql", pytest.param("mariadb", marks=pytest.mark.nightly)])
def test_on_a_server_it_is_the_same(large: Path, servers: Servers, kind: str, tmp_path: Path) -> None:
    source = Path(shutil.copy(large, tmp_path / "source.db"))
    with closing(sqlite3.connect(source)) as connection, connection:
        # One is there in two spellings, which no MariaDB of upstream's takes.
        connection.execute("DELETE FROM resource_provider_aggregates")
        connection.execute("DELETE FROM placement_aggregates")
    with servers.place(kind, tmp_path) as roost, servers.place(kind, tmp_path) as back:
        target = prepared(roost.url)
        for commits in (2, 6):
            process = start("import-placement", "--from", at(source), "--database", target)
            _wait(process, lambda: _count(target, "commits") >= commits)  # noqa: B023
            kill(process)
            assert {finding.kind for finding in verified(target)} <= {"over-capacity", "unit-violated"}
        report = imported(at(source), target)
        assert report.copied["consumers"] > 0 and report.there_already["resource providers"] > 0
        assert len(holdings_in(target)) == CONSUMERS + 20

        # MariaDB commits each statement that makes a table by itself; the rows come all or not at all.
        if kind == "mariadb":
            widen(back.url)
        process = start("export-placement", "--to", back.url, "--database", target)
        _wait(process, lambda: "consumers" in _tables(back.url))
        kill(process)
        _wait(None, lambda: _settled(back.url))
        if not _count(back.url, "consumers"):
            exported(target, back.url)
        assert _count(back.url, "consumers") == CONSUMERS + 20
        with Upstream(back.url) as upstream:
            held = upstream.ask("GET", f"/allocations/{uid('large consumer 7')}").body["allocations"]
            assert held.keys() == {uid("large 1007")}
        again = at(tmp_path / "again.db")
        imported(back.url, again)
        assert holdings_in(again) == holdings_in(target)


def _wait(process: Forked | None, true: Callable[[], bool]) -> None:
    until = Deadline(SECONDS)
    while not true():
        assert not until.passed and (process is None or process.poll() is None)
        time.sleep(0.01)


def _tables(url: str) -> list[str]:
    with closing(sa.create_engine(url, poolclass=sa.NullPool).connect()) as connection:
        return sa.inspect(connection).get_table_names()


def _count(url: str, table: str) -> int:
    with closing(sa.create_engine(url, poolclass=sa.NullPool).connect()) as connection:
        found: int = connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one()
        return found


def _settled(url: str) -> bool:
    """Return whether the server has ended the sessions of the killed process."""
    listing = {
        "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()",
        "mysql": "SELECT count(*) FROM information_schema.processlist WHERE db = database()",
    }
    with closing(sa.create_engine(url, poolclass=sa.NullPool).connect()) as connection:
        name = connection.dialect.name
        return connection.exec_driver_sql(listing[name]).scalar_one() == 1


def _rows_in(path: Path) -> int:
    """How many consumers there are, all or none."""
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'consumers'").fetchone()
        if tables == (0,):
            return 0
        found: int = connection.execute("SELECT count(*) FROM consumers").fetchone()[0]
    assert found in (0, CONSUMERS + 20)
    return found
