"""Processes of an earlier Roost are exchanged for those of today, and back, while users go on."""

import io
import subprocess
import tarfile
import time
from pathlib import Path

import httpx
import pytest

from chaos.books import Books
from chaos.cloud import Cloud, cloud
from chaos.finding import ended_moves
from chaos.load import Load, User
from chaos.test_chaos import HEADERS, SETTLE_SECONDS, check, started
from support.databases import Servers
from support.waiting import Deadline, patience

PROJECT = Path(__file__).parents[2]
OLDEST = Path(__file__).with_name("older_commit").read_text().strip()
"""The oldest commit from which an upgrade to today's tables is rolling. Its processes know no moves, so one
that is under way would not be finished."""
WITH_MOVES = Path(__file__).with_name("older_commit_with_moves").read_text().strip()
"""An earlier commit whose processes know moves."""
LIFETIMES = 10
"""More at each stage are a test."""


def earlier_sources(folder: Path, commit: str) -> Path:
    """The sources of an earlier commit. Skips where the history is not there, as in an archive."""
    command = ["git", "-C", str(PROJECT), "archive", commit, "src"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if done.returncode:
        pytest.skip(f"commit {commit} is not here: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "src"


@pytest.mark.parametrize(
    ("commit", "moves"),
    [
        pytest.param(OLDEST, False, id="oldest", marks=pytest.mark.nightly),
        pytest.param(WITH_MOVES, True, id="moves"),
    ],
)
def test_processes_are_exchanged_one_by_one_under_load_and_back(
    tmp_path: Path, servers: Servers, commit: str, moves: bool
) -> None:
    source = earlier_sources(tmp_path / "earlier", commit)
    books = Books()
    with (
        started(servers, "postgresql") as server,
        cloud(tmp_path, server, hosts=18, agents=1, seed="rolling", source=source) as made,
    ):
        users = [
            User(books, f"rolling.{number}", made.conductors, moves=moves, rest=0.05) for number in range(2)
        ]
        load = Load(users, HEADERS)
        live(books, made)
        made.source = None
        made.upgrade("--rolling")
        live(books, made)
        for sources in (None, source):
            made.source = sources
            # Of two that do the same one is there at any time.
            for some in (made.programs[0::2], made.programs[1::2]):
                made.replace(some)
                live(books, made)
        load.end()
        assert not any(program.ended for program in made.programs), made.logs[-10_000:]
        wrong = check(made, books)
        with httpx.Client(headers=HEADERS, timeout=patience(60)) as http:
            moved = ended_moves(http, made.conductors[0])
        assert (moved["done"] > 0) == moves, moved
        assert not wrong, f"{books.answers}\n" + "\n".join(wrong[:50])


def live(books: Books, made: Cloud) -> None:
    """Wait until some more instances have lived."""
    most, until = books.lifetimes + LIFETIMES, Deadline(SETTLE_SECONDS)
    while books.lifetimes < most:
        assert not until.passed, f"nothing lives any more: {books.answers}\n{made.logs[-10_000:]}"
        time.sleep(0.1)
