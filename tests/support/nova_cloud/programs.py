"""Nova's programs as processes, forked by one process that has imported them; see
``tests/nova/upstream/cloud/launcher.py``."""

import contextlib
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from support.nova import Nova
from support.waiting import LIMIT_SECONDS, Deadline

LAUNCHER = "cloud.launcher"


class NovaProgram:
    """A running program of Nova, with the processes that it has started."""

    def __init__(self, launcher: Nova, command: Sequence[str | Path], log: Path) -> None:
        self.command = [str(part) for part in command]
        self.log = log
        self._launcher = launcher
        self.pid: int | None = None
        self.start()

    def start(self) -> None:
        """Start it, again if it has ended."""
        assert self.pid is None
        self.pid = self._launcher.ask(LAUNCHER, "start", arguments=self.command, log=str(self.log))

    def status(self, seconds: float = 0.0) -> int | None:
        """Return the exit status; None if it still runs after so many seconds."""
        return self._launcher.ask(LAUNCHER, "wait", pid=self.pid, seconds=seconds)

    def end(self, seconds: float = LIMIT_SECONDS) -> int:
        """Wait for its end; return the exit status."""
        deadline = Deadline(seconds)
        while (status := self.status(1.0)) is None:
            assert not deadline.passed, f"{self.command} does not end: {self.said()[-3000:]}"
        return status

    def finish(self, expected: int = 0) -> str:
        """Wait for its end; return its output. It fails if it ends with another status."""
        status = self.end()
        assert status == expected, f"{self.command} ended with {status}: {self.said()[-3000:]}"
        return self.said()

    def kill(self) -> None:
        """End it by SIGKILL, with all that it has started."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def said(self) -> str:
        """The log."""
        return self.log.read_text() if self.log.exists() else ""

    def _end(self, number: signal.Signals) -> None:
        if self.pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        deadline = Deadline()
        while self.status(1.0) is None:
            if deadline.passed:
                os.killpg(self.pid, signal.SIGKILL)
        self.pid = None


class NovaPrograms:
    """Starts Nova's programs; ``folder`` has their logs."""

    def __init__(self, python: Path, folder: Path) -> None:
        self._folder = folder
        self._launcher = Nova(python, folder / "launcher.log")
        self._started: list[NovaProgram] = []

    def start(self, name: str, config: Path, log: str) -> NovaProgram:
        """Start a service."""
        command = [name, "--config-file", config]
        program = NovaProgram(self._launcher, command, self._folder / f"{log}.log")
        self._started.append(program)
        return program

    def manage(self, config: Path, *arguments: str) -> NovaProgram:
        """Start ``nova-manage`` with a command."""
        log = self._folder / f"manage-{len(self._started)}.log"
        program = NovaProgram(self._launcher, ["nova-manage", "--config-file", config, *arguments], log)
        self._started.append(program)
        return program

    def close(self) -> None:
        """End all that runs."""
        for program in self._started:
            program.kill()
        self._launcher.close()
