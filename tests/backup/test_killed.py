"""Killed at any moment, a backup leaves no folder or a whole one, and a restore nothing or all."""

import random
import subprocess
import time
from pathlib import Path

import pytest

from backup.backing import backed_up, content, fill, restored, start
from roost.backup.manifest import read_manifest
from support.databases import Servers

ROUNDS = 5


def kill_after(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Kill a process after some time; return whether it had not ended before."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate()
    return process.returncode != 0


def duration(*arguments: object) -> float:
    """The seconds that a command takes."""
    began = time.monotonic()
    process = start(*arguments)
    _, said = process.communicate()
    assert process.returncode == 0, said
    return time.monotonic() - began


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mariadb"])
def test_killed_at_any_moment_there_is_nothing_or_all(kind: str, servers: Servers, tmp_path: Path) -> None:
    draw = random.Random(9)
    aside = tmp_path / "aside"
    aside.mkdir()
    with servers.place(kind, tmp_path) as place, servers.place(kind, aside) as target:
        fill(place, 200)
        whole = content(place.url)
        seconds = duration("backup", tmp_path / "timed", "--database", place.url)
        killed = 0
        for number in range(ROUNDS):
            folder = tmp_path / f"backup-{number}"
            # Most of the time goes by before the program does anything.
            process = start("backup", folder, "--database", place.url)
            killed += kill_after(process, seconds * draw.uniform(0.4, 1.1))
            if folder.exists():
                assert read_manifest(folder).databases[0].version == len(whole["commits"])
            backed_up(place.url, tmp_path / f"again-{number}" if folder.exists() else folder)
        assert killed

        backup = tmp_path / "timed"
        seconds = duration("restore", backup, "--database", target.url)
        assert content(target.url) == whole
        killed = 0
        for number in range(ROUNDS):
            with servers.place(kind, made(aside / str(number))) as empty:
                process = start("restore", backup, "--database", empty.url)
                killed += kill_after(process, seconds * draw.uniform(0.4, 1.1))
                settle(empty.url)
                found = content(empty.url)
                assert found in ({}, whole)
                # The next one is not hindered by what the killed one left.
                restored(backup, empty.url, replace=bool(found))
                assert content(empty.url) == whole
        assert killed


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def settle(url: str) -> None:
    """Wait until the programs of a killed restore have ended, which lose their input with it."""
    for _ in range(600):
        done = subprocess.run(["pgrep", "-f", url.rpartition("/")[2]], capture_output=True, check=False)
        if done.returncode != 0 or url.startswith("sqlite"):
            return
        time.sleep(0.05)
    raise AssertionError("a program of a killed restore still runs")
