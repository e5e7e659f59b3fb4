"""What cannot be exchanged is refused in one line, and nothing is touched."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from roost.placement.exchange import ExchangeError, NotEmpty, NotPlacement
from support.exchange.asking import Ours
from support.exchange.exchanging import at, digest, exported, imported, prepared
from support.exchange.rich_state import Maker, uid
from support.processes import run_roost


@pytest.fixture
def source(rich_source: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(rich_source, tmp_path / "placement.db"))


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE alembic_version SET version_num = 'b5c396305c25'", "run 'placement-manage db sync'"),
        ("UPDATE alembic_version SET version_num = 'ffffffffffff'", "this version of Roost does not know it"),
        ("DELETE FROM alembic_version", "revision none"),
        ("DROP TABLE alembic_version", "is not a database of OpenStack Placement"),
        ("DROP TABLE consumer_types", "but has no table consumer_types"),
    ],
)
def test_only_the_known_schema_is_read(source: Path, tmp_path: Path, statement: str, words: str) -> None:
    execute(source, statement)
    with pytest.raises(NotPlacement, match=words):
        imported(at(source), at(tmp_path / "roost.db"))


def test_swapped_urls_change_nothing(source: Path, tmp_path: Path) -> None:
    roost = tmp_path / "roost.db"
    imported(at(source), at(roost))
    before = digest(source), digest(roost)
    with pytest.raises(NotEmpty, match="not a database of Roost"):
        imported(at(roost), at(source))
    with pytest.raises(NotPlacement, match="is not a database of OpenStack Placement"):
        imported(at(roost), at(tmp_path / "new.db"))
    assert (digest(source), digest(roost)) == before


def _another_provider(maker: Maker) -> None:
    maker.provider("stranger")


def _another_consumer(maker: Maker) -> None:
    maker.claim("stranger", {"host-0": {"MEMORY_MB": 256}})


def _another_class(maker: Maker) -> None:
    maker.do("PUT", "/resource_classes/CUSTOM_ELSE")


def _another_trait(maker: Maker) -> None:
    maker.do("PUT", "/traits/CUSTOM_ELSE")


def _provider_changed(maker: Maker) -> None:
    maker.do("DELETE", f"/resource_providers/{uid('odd')}/inventories")


def _consumer_changed(maker: Maker) -> None:
    maker.do("DELETE", f"/allocations/{uid('consumer-0')}")
    maker.claim("consumer-0", {"host-0": {"MEMORY_MB": 256}})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_another_provider, "resource provider .* is not in the source"),
        (_another_consumer, f"consumer {uid('stranger')} is not in the source"),
        (_another_class, "resource class CUSTOM_ELSE is not in the source"),
        (_another_trait, "trait CUSTOM_ELSE is not in the source"),
        (_provider_changed, f"resource provider {uid('odd')} differs from the source"),
        (_consumer_changed, "differs from the source"),
    ],
)
def test_nothing_is_overwritten(
    source: Path, tmp_path: Path, change: Callable[[Maker], None], words: str
) -> None:
    roost = at(tmp_path / "roost.db")
    imported(at(source), roost)
    with Ours(roost) as ours:
        change(Maker(ours))
    with pytest.raises(NotEmpty, match=words):
        imported(at(source), roost)


def test_a_name_that_is_taken_is_refused(source: Path, tmp_path: Path) -> None:
    roost = at(tmp_path / "roost.db")
    execute(source, f"UPDATE resource_providers SET name = NULL WHERE uuid = '{uid('odd')}'")
    execute(source, f"UPDATE resource_providers SET name = '{uid('odd')}' WHERE uuid = '{uid('empty')}'")
    with pytest.raises(NotEmpty, match="is taken by another one"):
        imported(at(source), roost)


def test_an_export_goes_into_an_empty_database_only(source: Path, tmp_path: Path) -> None:
    roost, other, placement = (tmp_path / name for name in ("roost.db", "other.db", "new.db"))
    imported(at(source), at(roost))
    prepared(at(other))
    for target, words in (
        (source, "table .* has rows"),
        (other, "is a database of Roost"),
        (roost, "is a database of Roost"),
    ):
        before = digest(target)
        with pytest.raises(NotEmpty, match=words):
            exported(at(roost), at(target))
        assert digest(target) == before
    execute(placement, "CREATE TABLE alembic_version (version_num VARCHAR(32))")
    execute(placement, "INSERT INTO alembic_version VALUES ('b4ed3a175331')")
    with pytest.raises(NotPlacement, match="is at revision b4ed3a175331"):
        exported(at(roost), at(placement))


def test_what_a_target_refuses_is_said_and_leaves_nothing(source: Path, tmp_path: Path) -> None:
    roost, placement = at(tmp_path / "roost.db"), tmp_path / "new.db"
    imported(at(source), roost)
    execute(
        placement,
        "CREATE TABLE users (id INTEGER PRIMARY KEY, external_id TEXT, created_at TEXT, updated_at TEXT,"
        " CHECK (external_id <> 'another'))",
    )
    with pytest.raises(ExchangeError, match="refuses a row: CHECK constraint failed"):
        exported(roost, at(placement))
    with closing(sqlite3.connect(placement)) as connection:
        assert connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall() == [
            ("users",)
        ]


def test_a_damaged_ledger_is_not_exported(source: Path, tmp_path: Path) -> None:
    roost = tmp_path / "roost.db"
    imported(at(source), at(roost))
    execute(roost, "UPDATE provider_traits SET trait_id = 9999 WHERE rowid = 1")
    with pytest.raises(ExchangeError, match="roost db verify"):
        exported(at(roost), at(tmp_path / "new.db"))


def test_the_commands_say_what_came_of_it(source: Path, tmp_path: Path) -> None:
    roost, back = at(tmp_path / "roost.db"), at(tmp_path / "back.db")
    into = ("db", "import-placement", "--from", at(source), "--database", roost)
    done = run_roost(*into, "--json")
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["copied"]["consumers"] == 20
    assert {each["kind"] for each in report["anomalies"]} >= {"over-capacity", "odd-uuid"}
    done = run_roost("db", "export-placement", "--to", back, "--database", roost)
    assert done.returncode == 1
    assert "3 anomalies" in done.stdout and "over-capacity" in done.stdout
    done = run_roost("db", "export-placement", "--to", back, "--database", roost)
    assert done.returncode == 2
    assert done.stdout == "" and "is not empty" in done.stderr and done.stderr.count("\n") == 1


def test_no_anomalies_is_status_0(source: Path, tmp_path: Path) -> None:
    roost = tmp_path / "roost.db"
    execute(
        source, *(f"DELETE FROM {table}" for table in ("allocations", "consumers", "placement_aggregates"))
    )
    execute(source, "DELETE FROM resource_provider_aggregates")
    done = run_roost("db", "import-placement", "--from", at(source), "--database", at(roost))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "no anomalies")
    done = run_roost("db", "import-placement", "--from", at(tmp_path / "none.db"), "--database", at(roost))
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no file" in done.stderr and done.stderr.count("\n") == 1
    with Ours(at(roost)) as ours:
        assert ours.ask("GET", f"/resource_providers/{uid('odd')}").status == 200
