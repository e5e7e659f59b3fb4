"""The parent process goes on when workers end together, and when the system cannot start one."""

import subprocess
import sys
from pathlib import Path

import pytest

from support.waiting import patience

PROGRAM = Path(__file__).with_name("supervised.py")


def run(trouble: str) -> str:
    """Run the program; return what it says. Its last worker is ready before it ends."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), trouble],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "ready: " in said and "ended" in said
    return said


def test_workers_that_end_together_are_all_started_again() -> None:
    """One answer of the selector names the signals of their ends, and then their reports."""
    assert run("together").count("a worker ended and is started again") == 3


@pytest.mark.parametrize("call", ["fork", "pipe"])
def test_a_worker_that_the_system_cannot_start_is_started_later(call: str) -> None:
    said = run(call)
    [line] = [line for line in said.splitlines() if "the process of a worker cannot be started" in line]
    assert "Resource temporarily unavailable" in line
    assert "a worker ended" not in said
    assert "ready: blocked=0 opened=2" in said, "signals stay blocked, or a pipe stays open"
