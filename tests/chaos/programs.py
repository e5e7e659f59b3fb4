"""The processes of a cloud, which are killed, stopped, continued and started again."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Protocol

from support.forked import Forked


class Running(Protocol):
    """A process, as `subprocess.Popen` and `Forked` have it."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def kill(self) -> None: ...


class Program:
    """A command that is to run. ``launch`` starts it with a file for its output.

    Threads may use it: of a start and a kill at a time, one is after the other.
    """

    def __init__(self, name: str, log: Path, launch: Callable[[IO[bytes]], Running]) -> None:
        self.name = name
        self.log = log
        self._launch = launch
        self._process: Running | None = None
        self._lock = threading.Lock()
        self.ended: list[int] = []
        self._killed = False

    def __str__(self) -> str:
        return self.name

    def start(self) -> None:
        """Start it unless it runs. One that ended by itself is noted in ``ended``."""
        with self._lock:
            if self._process is not None:
                status = self._process.poll()
                if status is None:
                    return
                if not self._killed:
                    self.ended.append(status)
            with self.log.open("ab") as log:
                self._process = self._launch(log)
            self._killed = False

    def kill(self) -> None:
        """End it with SIGKILL if it runs."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self._killed = True
                self._process.kill()
                self._process.wait(60)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal if it runs."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._process.pid, number)

    def terminate(self, seconds: float = 60.0) -> int | None:
        """End it in order; the exit status, None if it did not run. Raises `TimeoutExpired`."""
        self.signal(signal.SIGTERM)
        return None if self._process is None else self._process.wait(seconds)

    @property
    def text(self) -> str:
        """What all its processes have written so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""


def command(*arguments: str | Path) -> Callable[[IO[bytes]], Running]:
    """What launches a `roost` command."""
    return lambda log: Forked(*arguments, stdout=log, stderr=log)
