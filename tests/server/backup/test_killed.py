"""Killed at any moment, a backup leaves no folder or a whole one, and a restore nothing or all."""

import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from roost.server.backup.manifest import check_file, read_manifest
from server.backup.backing import backed_up, content, fill, restored, silent, start
from support.databases import Servers

KILLS = 2
KINDS = ["sqlite", "postgresql", pytest.param("mariadb", marks=pytest.mark.nightly)]
ROUNDS = 15
"""Attempts at these kills: a command may end before its time."""


def killed_after(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Kill a process after some time; return whether it had not ended before."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    process.communicate()
    return process.returncode != 0


def moments(draw: random.Random, seconds: float) -> Iterator[float]:
    """Times of kills: nearer to the start after each command that was not reached."""
    for _ in range(ROUNDS):
        yield draw.uniform(0.0, seconds)
        seconds *= 0.8


def duration(*arguments: object) -> float:
    """The seconds that the work of a command takes."""
    process = start(*arguments)
    began = time.monotonic()
    _, said = process.communicate()
    assert process.returncode == 0, said
    return time.monotonic() - began


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_backup_leaves_nothing_or_all(kind: str, servers: Servers, tmp_path: Path) -> None:
    draw = random.Random(9)
    with servers.place(kind, tmp_path) as place:
        fill(place, 200)
        commits = len(content(place.url)["commits"])
        killed = 0
        for number, moment in enumerate(
            moments(draw, duration("backup", tmp_path / "timed", "--database", place.url))
        ):
            folder = tmp_path / f"backup-{number}"
            killed += killed_after(start("backup", folder, "--database", place.url), moment)
            if not folder.exists():
                # The next one is not hindered by what the killed one left.
                backed_up(place.url, folder)
            assert read_manifest(folder).databases[0].version == commits
            check_file(folder, read_manifest(folder).databases[0], silent)
            if killed == KILLS:
                return
        raise AssertionError(f"only {killed} killed")


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_restore_leaves_nothing_or_all(kind: str, servers: Servers, tmp_path: Path) -> None:
    draw = random.Random(9)
    with servers.place(kind, made(tmp_path / "source")) as place:
        fill(place, 200)
        whole = content(place.url)
        backup = tmp_path / "backup"
        backed_up(place.url, backup)
    with servers.place(kind, made(tmp_path / "timed")) as target:
        seconds = duration("restore", backup, "--database", target.url)
    killed = 0
    for number, moment in enumerate(moments(draw, seconds)):
        with servers.place(kind, made(tmp_path / str(number))) as empty:
            killed += killed_after(start("restore", backup, "--database", empty.url), moment)
            settle(empty.url)
            found = content(empty.url)
            assert found in ({}, whole)
            restored(backup, empty.url, replace=bool(found))
            assert content(empty.url) == whole
        if killed == KILLS:
            return
    raise AssertionError(f"only {killed} killed")


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def settle(url: str) -> None:
    """Wait until the programs of a killed restore have ended, which lose their input with it."""
    for _ in range(2400):
        done = subprocess.run(["pgrep", "-f", url.rpartition("/")[2]], capture_output=True, check=False)
        if done.returncode != 0 or url.startswith("sqlite"):
            return
        time.sleep(0.05)
    raise AssertionError("a program of a killed restore still runs")
