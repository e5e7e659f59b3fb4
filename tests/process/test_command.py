"""Commands of operators: a pipe that a child has open, the loops of processes, the files of a process."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
import uvloop

from roost.process.command import CommandResult, run_command, words_of

LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])


@LOOPS
def test_a_child_that_is_left_behind_with_the_output_open_delays_no_result(loop, tmp_path):
    # It ends when the test lets it: a second after the command, its output is not waited for any more.
    waits = f"while [ ! -e {tmp_path}/end ]; do sleep 0.05; done; echo $? > {tmp_path}/ended"
    command = ("sh", "-c", f"({waits}) & echo left; exit 3")
    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(run_command(command, 600.0)) == ("ended with status 3", 3, "left")
    assert not (tmp_path / "ended").exists()
    (tmp_path / "end").touch()


@LOOPS
def test_no_file_is_left_open_however_a_command_ends(loop):
    async def run():
        results = [
            await run_command(("sh", "-c", "echo out; echo err >&2"), 600.0),
            await run_command(("sh", "-c", "kill -9 $$"), 600.0),
            await run_command(("/no/such",), 600.0),
            await run_command(("sleep", "600"), 0.1),
        ]
        task = asyncio.create_task(run_command(("sleep", "600"), 600.0))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.wait([task])
        await asyncio.sleep(0.1)
        return results, task.cancelled(), sum(1 for _ in Path("/proc/self/fd").iterdir())

    with asyncio.Runner(loop_factory=loop) as runner:
        # The first run opens what the loop keeps.
        _, _, before = runner.run(run())
        results, cancelled, after = runner.run(run())
    assert cancelled
    assert results == [
        CommandResult(None, 0, "out\nerr"),
        CommandResult("ended with signal 9", -9),
        CommandResult("cannot be run: /no/such: No such file or directory"),
        CommandResult("took longer than 0.1 s"),
    ]
    assert after <= before


def test_a_command_has_further_variables_beside_those_of_its_process():
    program = "import os; print(os.environ['PATH'], os.environ['ROOST_MORE'])"
    result = asyncio.run(run_command((sys.executable, "-c", program), 600.0, {"ROOST_MORE": "more"}))
    assert result.output == f"{os.environ['PATH']} more"


def test_the_parser_of_an_option_names_it_in_its_error():
    parse = words_of("[group] command")
    assert parse("/bin/off 'two words' \\$HOME") == ("/bin/off", "two words", "$HOME")
    with pytest.raises(ValueError, match=r"\[group\] command: \"'open\" cannot be split into words"):
        parse("'open")
