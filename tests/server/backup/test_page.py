"""The commands of docs/backup.md work as they stand."""

import re
import shlex
from pathlib import Path

import pytest

from server.backup.backing import fill
from support.databases import Place
from support.processes import RoostUp, run_roost

PAGE = (Path(__file__).parents[3] / "docs/backup.md").read_text()
COMMANDS = re.findall(r"^    (roost .*)$", PAGE, flags=re.MULTILINE)


def test_the_commands_of_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fill(Place("sqlite", ("sqlite:///placement.db",)))
    with RoostUp(Path("roost-data/up"), ("--hosts", "2", "--cells", "1")) as system:
        system.wait_until_up()
        for command in COMMANDS:
            done = run_roost(*shlex.split(command)[1:])
            assert done.returncode == 0, f"{command}: {done.stderr}"
    assert len(COMMANDS) == 4
    assert Path("restored.db").exists() and Path("restored/api.db").exists()
