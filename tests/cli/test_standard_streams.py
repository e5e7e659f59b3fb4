"""Commands whose standard streams are closed, full, or read by nobody."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.waiting import patience

FULL = Path("/dev/full")
PROGRAM = (sys.executable, "-m", "roost")
RESULTS = ("--version",)
"""A command with results, and the one that starts the fastest."""

needs_full = pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")


def run(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of a shell, in which "$@" is the program."""
    shell = ("sh", "-c", command, "sh", *PROGRAM, *arguments)
    return subprocess.run(shell, capture_output=True, text=True, timeout=patience())


@needs_full
def test_results_that_do_not_fit_are_told_in_one_line() -> None:
    done = run('"$@" > /dev/full', *RESULTS)
    assert (done.returncode, done.stderr) == (
        2,
        "roost: standard output cannot be written: No space left on device\n",
    )


def test_results_for_a_closed_stream_are_an_error() -> None:
    done = run('"$@" >&-', *RESULTS)
    assert (done.returncode, done.stderr) == (2, "roost: standard output cannot be written: it is closed\n")


@needs_full
@pytest.mark.parametrize(
    ("where", "why"),
    [("> /dev/full", "No space left on device"), (">&-", "it is closed")],
    ids=["full", "closed"],
)
def test_json_which_is_bytes_is_as_any_result(where: str, why: str) -> None:
    done = run(f'"$@" {where}', "config", "--json")
    told = json.loads(done.stderr)
    assert (done.returncode, told["errors"][0]["detail"]) == (
        2,
        f"standard output cannot be written: {why}",
    )


def test_a_reader_that_has_gone_is_told_nothing() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write) as output:
        done = subprocess.run((*PROGRAM, "config"), stdout=output, stderr=subprocess.PIPE, timeout=patience())
    assert (done.returncode, done.stderr) == (2, b"")


@needs_full
@pytest.mark.parametrize("where", ["2> /dev/full", "2>&-"])
def test_messages_that_cannot_be_written_change_no_exit_status(where: str) -> None:
    assert run(f'"$@" {where}', *RESULTS).returncode == 0
    assert run(f'"$@" {where}', "no-such-command").returncode == 2


def test_no_file_gets_the_descriptor_of_a_closed_stream(tmp_path: Path) -> None:
    """Otherwise the messages of the command would be written into its database."""
    database = tmp_path / "roost.db"
    upgrade = ("db", "upgrade", "--database", f"sqlite:///{database}")
    assert run('"$@" 0<&- 1>&- 2>&-', *upgrade).returncode == 2, "there is no place for its results"
    again = run('"$@"', *upgrade)
    assert again.returncode == 0, again.stderr
    assert database.read_bytes().startswith(b"SQLite format 3")


INTERRUPTED = """
import importlib.abc, os, signal, sys
class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == MODULE:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
from roost.__main__ import main
sys.argv = ["roost", "config"]
main()
"""


@pytest.mark.parametrize("module", ["click", "roost.process.logs", "roost.cli.config", "oslo_config"])
def test_an_interrupt_while_a_command_is_imported_leaves_no_traceback(module: str) -> None:
    program = f"MODULE = {module!r}{INTERRUPTED}"
    done = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, timeout=patience())
    assert done.returncode in (-signal.SIGINT, 130)
    assert (done.stdout, done.stderr.strip()) == ("", "")
