"""Runs `roost` commands as processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from roost.bench.loopback import free_port
from roost.bench.server_process import die_with_parent

ROOST = Path(sys.executable).with_name("roost")
SECONDS = 120.0
"""Seconds for what takes one or two on a quiet machine: only a defect takes longer."""
HEADERS = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.36"}


def run_roost(*arguments: str | Path, seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
    """Run a command and wait for its end."""
    command = [ROOST, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


class RoostUp:
    """A running `roost up` at a free port. As a context manager, it is killed at the end."""

    def __init__(self, directory: Path, arguments: Sequence[str] = (), port: int | None = None) -> None:
        self.port = port or free_port()
        command = [ROOST, "up", "--port", str(self.port), "--data-dir", str(directory), *arguments]
        self._process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent
        )
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
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._lines.append(line)
            if "roost: up" in line:
                self._ready.set()
        self._ready.set()
