"""What ``roost serve`` and ``roost up`` refuse before they announce that they serve."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from roost.bench.loopback import free_port
from roost.model.errors import OperatorError
from roost.server.process import prepare_database
from roost.server.programs import check_exposure
from support.serving import Serving, roost
from support.waiting import wait_for


def damage(path: Path, table: str) -> None:
    """Overwrite the first page of a table."""
    with closing(sqlite3.connect(path)) as connection:
        page_size = connection.execute("PRAGMA page_size").fetchone()[0]
        query = "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?"
        page = connection.execute(query, (table,)).fetchone()[0]
    with path.open("r+b") as file:
        file.seek((page - 1) * page_size)
        file.write(b"\xde\xad" * (page_size // 2))


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_database_with_damaged_pages_is_one_line_and_nothing_is_announced(
    tmp_path: Path, workers: str
) -> None:
    path = tmp_path / "api.db"
    prepare_database(f"sqlite:///{path}")
    damage(path, "traits")
    done = roost("serve", "--port", str(free_port()), "--database", f"sqlite:///{path}", "--workers", workers)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [f"roost: database sqlite:///{path}: database disk image is malformed"]


def test_it_is_announced_once_when_all_workers_serve(tmp_path: Path) -> None:
    serving = Serving(f"sqlite:///{tmp_path}/api.db", tmp_path / "log", workers=2)
    wait_for(lambda: "roost: Placement API on" in serving.said())
    serving.terminate()
    assert serving.wait() == 0
    assert serving.said().count("roost: Placement API on") == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_loopback_addresses_and_their_names_need_no_authentication(host: str) -> None:
    check_exposure(host, allowed=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "2001:db8::1"])
def test_other_addresses_do_and_can_be_allowed(host: str) -> None:
    with pytest.raises(OperatorError, match=f"without authentication on {host}.*--insecure-no-auth"):
        check_exposure(host, allowed=False)
    check_exposure(host, allowed=True)


@pytest.mark.parametrize("command", ["serve", "up"])
def test_commands_refuse_to_serve_everybody_without_authentication(tmp_path: Path, command: str) -> None:
    data = (
        ("--database", f"sqlite:///{tmp_path}/api.db")
        if command == "serve"
        else ("--data-dir", f"{tmp_path}")
    )
    done = roost(command, "--port", str(free_port()), "--host", "0.0.0.0", *data)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("roost: refusing to serve without authentication on 0.0.0.0")
    assert "--insecure-no-authentication" in done.stderr
    assert list(tmp_path.iterdir()) == []
