"""The command of the operators that powers machines off: an argument vector, a time limit, an exit status."""

import asyncio
import stat
import time
from pathlib import Path

import pytest

from roost.conductor.evacuation.fence_command import FenceProcess
from roost.conductor.evacuation.options import EvacuationOptions
from roost.model.errors import OperatorError
from roost.process.option_source import Setting, Source


@pytest.fixture
def script(tmp_path):
    """Returns a function that writes a program of the shell, and returns its path."""

    def write(text):
        path = tmp_path / "fence"
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return write


def power_off(argv, host="host-1", seconds=20.0):
    return asyncio.run(FenceProcess(argv, seconds).power_off(host))


def is_gone(child):
    """Whether a process has ended."""
    try:
        return Path(f"/proc/{child}/stat").read_text().split()[2] == "Z"
    except FileNotFoundError:
        return True


def until(is_so, tries=200):
    """Whether something becomes so within some seconds."""
    return any(is_so() or time.sleep(0.05) for _ in range(tries))


def test_the_host_is_the_last_argument_and_no_shell_reads_it(script, tmp_path):
    program = script(f'printf "%s\\n" "$#" "$@" > {tmp_path}/told')
    host = "$(touch here); a 'b"
    assert power_off((program, "--off", "two words"), host) == (True, "")
    assert (tmp_path / "told").read_text() == f"3\n--off\ntwo words\n{host}\n"


def test_a_status_other_than_0_is_no_proof_and_tells_what_the_command_said(script):
    program = script("echo the BMC does not answer >&2; exit 3")
    expected = "the fence command ended with status 3: the BMC does not answer"
    assert power_off((program,)) == (False, expected)


def test_a_command_that_takes_too_long_is_killed_with_its_children(script, tmp_path):
    program = script(f"sleep 600 & echo $! > {tmp_path}/child; wait")
    result = power_off((program,), seconds=1.0)
    assert result == (False, "the fence command took longer than 1 s")
    child = int((tmp_path / "child").read_text())
    assert until(lambda: is_gone(child))


def test_a_command_that_cannot_be_run_is_no_proof(tmp_path):
    off, words = power_off((str(tmp_path / "none"),))
    assert not off
    assert words.startswith("the fence command cannot be run")


def test_a_name_that_looks_like_an_option_is_refused(script, tmp_path):
    off, words = power_off((script(f"touch {tmp_path}/ran"),), "--all")
    assert not off
    assert "--all" in words
    assert not (tmp_path / "ran").exists()


def test_the_options_are_read_as_words_and_refused_if_they_make_no_sense():
    given = (
        Setting("conductor", "fence_command", "/bin/off 'two words'"),
        Setting("conductor", "evacuate_after", "90"),
    )
    read = Source(settings=given).read(EvacuationOptions)
    assert (read.command, read.after) == (("/bin/off", "two words"), 90.0)
    for name, value, said in (
        ("fence_command", "/bin/off 'two", "fence_command.*cannot be split"),
        ("evacuate_after", "5", "60"),
    ):
        with pytest.raises(OperatorError, match=said):
            Source(settings=(Setting("conductor", name, value),)).read(EvacuationOptions)
