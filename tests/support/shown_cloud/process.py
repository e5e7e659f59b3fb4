"""The process of a cloud, as a context manager for tests and pictures."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, Self

import httpx

from support.waiting import patience

TESTS = Path(__file__).parents[2]


class CloudProcess:
    """A cloud, served at ``origin`` by a process of its own when everything has happened in it.

    ``folder`` has its databases and its log. The process runs ``module`` with the folder of the databases
    and ``arguments``. ``paths``: folders with modules, besides that of the tests.
    """

    def __init__(self, folder: Path, module: str, *arguments: str, paths: Sequence[Path] = ()) -> None:
        self._folder = folder
        self._command = (sys.executable, "-m", module, str(folder / "cloud"), *arguments)
        self._paths = (TESTS, *paths)
        self.origin = ""

    def __enter__(self) -> Self:
        log = self._folder / "cloud.log"
        paths = os.pathsep.join(map(str, self._paths))
        environment = {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "0"}
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True
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


class ShownCloud(CloudProcess):
    """The cloud with something to show on every page. ``racks``, ``hosts``: the number of racks, and of
    hosts in each."""

    def __init__(
        self,
        folder: Path,
        racks: int = 6,
        hosts: int = 9,
        names: Literal["hostile", "plain"] = "hostile",
    ) -> None:
        super().__init__(folder, "support.shown_cloud.server", str(racks), str(hosts), names)
