"""`roost db backup` and `roost db restore`: what they print, and their exit status."""

import json
from pathlib import Path

import pytest

from server.backup.backing import fill
from support.databases import Place
from support.processes import run_roost


@pytest.fixture
def url(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path / 'roost.db'}"
    fill(Place("sqlite", (url,)), 5)
    return url


def test_both_print_the_identity(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    made = run_roost("db", "backup", "--no-progress", "--database", url, tmp_path / "backup")
    assert (made.returncode, made.stderr) == (0, "")
    manifest = json.loads((tmp_path / "backup" / "manifest.json").read_text())
    [database] = manifest["databases"]
    assert database["identity"] in made.stdout
    assert "verified: no differences found" in made.stdout
    target = f"sqlite:///{tmp_path / 'new.db'}"
    done = run_roost("db", "restore", "--no-progress", tmp_path / "backup", "--database", target)
    assert (done.returncode, done.stderr) == (0, "")
    assert database["identity"] in done.stdout
    refused = run_roost("db", "restore", "--no-progress", tmp_path / "backup", "--database", target)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        f"roost: database {target} is not empty: restore into an empty one, or give --replace to drop its "
        "tables\n"
    )


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_help_has_an_example(command: str) -> None:
    answer = run_roost("db", command, "--help")
    assert answer.returncode == 0
    assert f"Example: roost db {command} " in answer.stdout
    assert "--no-progress" in answer.stdout
