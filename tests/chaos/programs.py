"""The processes of a cloud, which are killed, stopped, continued and started again."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO, Protocol

from support.waiting import Deadline


class Running(Protocol):
    """A process, as `subprocess.Popen` and `Forked` have it."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def kill(self) -> None: ...


class Program:
    """A command that is to run. ``launch`` starts it with a file for its output; ``turn`` has it start
    otherwise from then on, None where there is no other way. ``hosts``: those whose agents it runs.

    Threads may use it: of a start and a kill at a time, one is after the other.
    """

    def __init__(
        self,
        name: str,
        log: Path,
        launch: Callable[[IO[bytes]], Running],
        turn: Callable[[], None] | None = None,
        hosts: Collection[str] = (),
    ) -> None:
        self.name = name
        self.log = log
        self.turn = turn
        self.hosts = tuple(hosts)
        self._launch = launch
        self._process: Running | None = None
        self._lock = threading.Lock()
        self.ended: list[int] = []
        self._killed = self._told = False

    def __str__(self) -> str:
        return self.name

    def start(self) -> None:
        """Start it unless it runs. One that ended by itself is noted in ``ended``."""
        with self._lock:
            if self._process is not None:
                status = self._process.poll()
                if status is None:
                    return
                if not self._killed and not (self._told and status in (0, -signal.SIGTERM)):
                    self.ended.append(status)
            with self.log.open("ab") as log:
                self._process = self._launch(log)
            self._killed = self._told = False

    def end(self) -> None:
        """Tell it to end, as an operator does who restarts it, and do not wait until it has."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self._told = True
                _send(self._process.pid, signal.SIGTERM)

    def end_or_kill(self, seconds: float) -> None:
        """Tell it to end, and kill it if it has not within some seconds."""
        self.end()
        until = Deadline(seconds)
        while self.is_running and not until.passed:
            time.sleep(0.05)
        self.kill()

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        with self._lock:
            return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End it and its workers with SIGKILL if it runs."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self._killed = True
                workers = children(self._process.pid)
                self._process.kill()
                for pid in workers:
                    _send(pid, signal.SIGKILL)
                self._process.wait(60)

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to it and to its workers, if it runs."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                for pid in (self._process.pid, *children(self._process.pid)):
                    _send(pid, number)

    def kill_workers(self) -> bool:
        """End its workers with SIGKILL; it starts new ones. Returns whether there were any."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                return False
            workers = children(self._process.pid)
            for pid in workers:
                _send(pid, signal.SIGKILL)
            return bool(workers)

    @property
    def text(self) -> str:
        """What all its processes have written so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
