"""A real pseudo terminal, with a program that is its foreground."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from support.waiting import patience

_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_HOME = "\x1b[H"

_IN_FRONT = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
"""Makes the terminal that of the new session, so that its keys are signals, and becomes the program."""


class ScreenOfProgram:
    """A program on a terminal of so many columns and rows. As a context manager, it is killed at the end.

    ``shown``: all that it has written, as it came. Programs that draw the whole screen begin at its corner.
    """

    def __init__(
        self,
        command: Sequence[Any],
        columns: int = 60,
        rows: int = 15,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.terminal, inside = pty.openpty()
        self.before = termios.tcgetattr(inside)
        self._inside = inside
        self._rows = rows
        self.resize(columns, rows, tell=False)
        variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IN_FRONT, *map(str, command)],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            env={**variables, "TERM": "xterm-256color", **(environment or {})},
            start_new_session=True,
        )
        self.shown = ""

    def __enter__(self) -> "ScreenOfProgram":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)
        os.close(self._inside)

    @property
    def mode(self) -> list[Any]:
        """The mode of the terminal now: that of `termios`."""
        return termios.tcgetattr(self._inside)

    @property
    def lines(self) -> list[str]:
        """The lines of the whole screen that was drawn last; none before the first."""
        for drawn in reversed(self.shown.split(_HOME)[1:]):
            if drawn.count("\n") == self._rows - 1:
                return [line.strip("\r") for line in _CONTROLS.sub("", drawn).split("\n")]
        return []

    def resize(self, columns: int, rows: int, *, tell: bool = True) -> None:
        """Change the size of the terminal. ``tell``: as the terminal does, with a signal."""
        self._rows = rows
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if tell:
            os.killpg(self.process.pid, signal.SIGWINCH)

    def types(self, keys: str) -> None:
        """Type keys."""
        os.write(self.terminal, keys.encode())

    def wait_for(self, text: str) -> list[str]:
        """Read until a text is on the screen, and return its lines."""
        self.wait_until(lambda lines: any(text in line for line in lines), text)
        return self.lines

    def wait_until(self, is_so: Any, meant: object = "the screen") -> None:
        """Read until the lines on the screen are so."""
        end = time.monotonic() + patience(30)
        while not (self.lines and is_so(self.lines)):
            assert time.monotonic() < end, f"{meant!r} does not come: {self.shown[-4000:]}"
            if select.select([self.terminal], [], [], 1.0)[0]:
                self.shown += os.read(self.terminal, 65536).decode(errors="replace")

    def wait(self) -> int:
        """Read until the program has ended; return its exit status."""
        while self.process.poll() is None:
            if select.select([self.terminal], [], [], 0.05)[0]:
                with suppress(OSError):
                    self.shown += os.read(self.terminal, 65536).decode(errors="replace")
        while select.select([self.terminal], [], [], 0)[0]:
            self.shown += os.read(self.terminal, 65536).decode(errors="replace")
        return self.process.returncode
