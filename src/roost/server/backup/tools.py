"""Runs the programs of a database's client package."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

from roost.server.backup.errors import ToolFailed, ToolMissing

LOOK_SECONDS = 0.5
"""Seconds between two checks of the size of the file that a program writes."""

_COPIED_AT_ONCE = 2**18


def find_tool(package: str, *names: str) -> str:
    """Return the path of the first installed program among ``names``.

    Raises:
        ToolMissing: none is installed; the message names ``package`` as the remedy.
    """
    for name in names:
        found = shutil.which(name)
        if found is not None:
            return found
    raise ToolMissing(
        f"program {names[0]} is not installed: install the package {package}, and run this again"
    )


def run_tool(
    command: Sequence[str], secrets: Mapping[str, str], written: Path, progress: Callable[[int], None]
) -> None:
    """Run a program until its end.

    ``secrets``: variables added to its environment, which only its user and root can read. ``progress`` is
    called with the size of the file that the program writes.

    Raises:
        ToolFailed: the program ended with an error.
    """
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            env={**os.environ, **secrets},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        try:
            while True:
                try:
                    status = process.wait(LOOK_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    progress(written.stat().st_size if written.is_file() else 0)
        finally:
            _end(process)
        _check(command, status, errors)


def feed_tool(
    command: Sequence[str],
    secrets: Mapping[str, str],
    parts: Iterable[bytes],
    progress: Callable[[int], None],
) -> None:
    """Run a program with ``parts`` as its standard input. ``progress`` is called with the bytes written.

    Raises:
        ToolFailed: the program ended with an error.
    """
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            env={**os.environ, **secrets},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
        assert process.stdin is not None
        done = 0
        try:
            try:
                for part in parts:
                    process.stdin.write(part)
                    done += len(part)
                    progress(done)
                process.stdin.close()
            except BrokenPipeError:
                pass  # the program has ended; its exit status has the error
            status = process.wait()
        finally:
            _end(process)
        _check(command, status, errors)


def output_of(command: Sequence[str]) -> Iterable[bytes]:
    """Yield the standard output of a program, in parts.

    Raises:
        ToolFailed: the program ended with an error, after its last part.
    """
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors)
        assert process.stdout is not None
        try:
            while part := process.stdout.read(_COPIED_AT_ONCE):
                yield part
            status = process.wait()
        finally:
            _end(process)
        _check(command, status, errors)


def content_of(path: Path) -> Iterable[bytes]:
    """Yield the content of a file, in parts."""
    with path.open("rb") as file:
        while part := file.read(_COPIED_AT_ONCE):
            yield part


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program if it still runs, after an error in this process."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None and not pipe.closed:
            try:
                pipe.close()
            except BrokenPipeError:
                continue  # the program ended before it read all of its input
    if process.poll() is None:
        process.kill()
        process.wait()


def _check(command: Sequence[str], status: int, errors: IO[bytes]) -> None:
    if status != 0:
        errors.seek(0)
        said = " ".join(errors.read().decode(errors="replace").split())[-600:]
        raise ToolFailed(f"{Path(command[0]).name} ended with status {status}: {said}")
