"""Runs `roost` commands as processes."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from roost.bench.loopback import free_port
from support.forked import ROOST as ROOST
from support.forked import Forked, run_forked

SECONDS = 240.0
"""Seconds for what takes one or two on a quiet machine: only a defect takes longer."""
HEADERS = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.36"}


def run_roost(*arguments: str | Path, seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
    """Run a command and wait for its end."""
    return run_forked(*arguments, seconds=seconds)


class RoostUp:
    """A running `roost up` at a free port. As a context manager, it is killed at the end."""

    def __init__(self, directory: Path, arguments: Sequence[str] = (), port: int | None = None) -> None:
        self.port = port or free_port()
        command = ("up", "--port", str(self.port), "--data-dir", directory, *arguments)
        read, write = os.pipe()
        self._stderr = os.fdopen(read)
        with os.fdopen(write, "wb") as stderr:
            self._process = Forked(*command, stderr=stderr)
        self._lines: list[str] = []
        self._ready = threading.Event()
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def __enter__(self) -> "RoostUp":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def stderr(self) -> str:
        return "".join(self._lines)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def cpu_seconds(self) -> float:
        """The processor time in seconds that it has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def wait_until_up(self, seconds: float = SECONDS) -> None:
        """Wait until it prints that it is up."""
        assert self._ready.wait(seconds), f"not up after {seconds} s: {self.stderr}"
        assert "roost: up" in self.stderr, self.stderr

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=HEADERS, timeout=SECONDS)

    def kill(self) -> None:
        """Send SIGKILL if it still runs."""
        self._process.kill()
        self._end()

    def stop(self, seconds: float = SECONDS) -> tuple[int, float]:
        """Send SIGTERM; return the exit status and the seconds until its end."""
        asked = time.perf_counter()
        self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(seconds)
        took = time.perf_counter() - asked
        self._end()
        return status, took

    def _end(self) -> None:
        self._process.wait()
        self._reading.join()
        self._stderr.close()

    def _read(self) -> None:
        for line in self._stderr:
            self._lines.append(line)
            if "roost: up" in line:
                self._ready.set()
        self._ready.set()
