"""Commands of operators: the words of an option, run without a shell, with a time limit."""

import asyncio
import os
import shlex
import signal
from asyncio.subprocess import DEVNULL, STDOUT, Process
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from roost.model.secrets import redacted_text
from roost.model.text import clean_text, fault_of

LINES = 20
"""Last lines of an output that are kept."""

MOST_OF_LINE = 500
"""Characters of a line that are kept at most."""

END_SECONDS = 1.0
"""Seconds for which the output of a command is read on after its end, if a child has it open still."""


class CommandResult(NamedTuple):
    """The end of a command.

    ``failure``: what went wrong, as a sentence whose subject is left out; None: it ended with status 0.
    ``status``: the exit status, or below 0 the number of a signal; None: it was not run, or was killed when
    its time was over. ``output``: the last lines that it wrote, see `safe_output`.
    """

    failure: str | None = None
    status: int | None = None
    output: str = ""


def words_of(option: str) -> Callable[[str], tuple[str, ...]]:
    """Return the parser of an option that is a command, written as for a shell; it raises ValueError.

    ``option``: its group and name, for that error.
    """

    def parse(text: str) -> tuple[str, ...]:
        try:
            return tuple(shlex.split(text))
        except ValueError as error:
            raise ValueError(f"{option}: {text!r} cannot be split into words: {error}") from error

    return parse


async def run_command(
    words: Sequence[str], seconds: float, environment: Mapping[str, str] | None = None
) -> CommandResult:
    """Run a command to its end. ``environment``: variables beside those of this process.

    After ``seconds``, or if the caller is cancelled, the command and what it has started are killed. A child
    that is there still when the command itself ends is left alone.
    """
    output = _LastLines()
    try:
        status = await _run(words, seconds, {**os.environ, **(environment or {})}, output)
    except OSError as error:
        return CommandResult(f"cannot be run: {words[0]}: {error.strerror or fault_of(error)}")
    except ValueError as error:
        return CommandResult(f"cannot be run: {words[0]}: {fault_of(error)}")
    if status is None:
        failure: str | None = f"took longer than {seconds:g} s"
    elif status < 0:
        failure = f"ended with signal {-status}"
    else:
        failure = f"ended with status {status}" if status else None
    return CommandResult(failure, status, output.text)


async def _run(
    words: Sequence[str], seconds: float, environment: Mapping[str, str], output: "_LastLines"
) -> int | None:
    """Return the exit status; None: it took too long. Raises OSError or ValueError if it cannot be run."""
    # The pipe of a process cannot be closed by itself, and a child may keep it open for ever.
    read, write = os.pipe()
    with os.fdopen(write, "wb", 0) as written:
        # The transport closes what it reads, and uvloop's ends this process if that is closed before.
        reading = os.fdopen(read, "rb", 0)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: output, reading)
        try:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=DEVNULL,
                stdout=written,
                stderr=STDOUT,
                start_new_session=True,
                env=environment,
            )
            written.close()
            status = await _status(process, seconds)
            await output.end(END_SECONDS)
            return status
        finally:
            transport.close()


async def _status(process: Process, seconds: float) -> int | None:
    """Return the exit status of a process; None: it is killed, as it took longer than ``seconds``."""
    try:
        async with asyncio.timeout(seconds):
            return await process.wait()
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            _kill_group(process)
            await process.wait()


def _kill_group(process: Process) -> None:
    """Kill a process that leads a group, and the processes that it has started."""
    # It may have ended meanwhile.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def safe_output(lines: Iterable[str]) -> str:
    """Return lines of an output, shortened, cleaned and without what looks like secrets."""
    return "\n".join(clean_text(redacted_text(line.rstrip("\r")), MOST_OF_LINE) for line in lines)


class _LastLines(asyncio.Protocol):
    """The last lines that are read from a pipe."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque(maxlen=LINES)
        self._begun = b""
        self._ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        *whole, begun = (self._begun + data).split(b"\n")
        self._lines.extend(line[: 4 * MOST_OF_LINE] for line in whole)
        self._begun = begun[: 4 * MOST_OF_LINE]

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended.set()

    async def end(self, seconds: float) -> None:
        """Wait until nobody has the other end open any more, or the seconds are over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    @property
    def text(self) -> str:
        """The last lines."""
        lines = [*self._lines, *([self._begun] if self._begun else [])][-LINES:]
        return safe_output(line.decode(errors="replace") for line in lines)
