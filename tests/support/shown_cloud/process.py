"""The process of the shown cloud, as a context manager for tests and pictures."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import httpx

from support.waiting import patience

TESTS = Path(__file__).parents[2]


class ShownCloud:
    """The cloud, served at ``origin`` by a process of its own when everything has happened in it.

    ``folder`` has its databases and its log. ``racks``, ``hosts``: the number of racks, and of hosts in each.
    """

    def __init__(
        self,
        folder: Path,
        racks: int = 6,
        hosts: int = 9,
        names: Literal["hostile", "plain"] = "hostile",
    ) -> None:
        self._folder = folder
        self._arguments = (str(folder / "cloud"), str(racks), str(hosts), names)
        self.origin = ""

    def __enter__(self) -> "ShownCloud":
        log = self._folder / "cloud.log"
        command = [sys.executable, "-m", "support.shown_cloud.server", *self._arguments]
        environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTHONHASHSEED": "0"}
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True
            )
        assert self._process.stdout is not None
        self.origin = self._process.stdout.readline().strip()
        if not self.origin:
            self.__exit__()
            raise AssertionError(f"the cloud has not come up: {log.read_text()[-4000:]}")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(patience(30))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def login(self) -> str:
        """The address that begins a session of an operator, once."""
        return (self._folder / "cloud/dashboard/address").read_text().strip()

    @property
    def cpu_seconds(self) -> float:
        """The processor time in seconds that the process has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """Open a client with a session of an operator, as far as HTTP goes."""
        with httpx.Client(base_url=self.origin, timeout=patience(60), follow_redirects=False) as client:
            answer = client.get(self.login)
            assert answer.status_code == 303, answer.text
            yield client
