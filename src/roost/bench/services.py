"""The services under load, as processes: Roost, OpenStack Placement, and a service that does nothing.

Memory and processor time of processes are those that Linux reports in /proc.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx
import sqlalchemy as sa

from roost.bench.errors import DidNotStart
from roost.bench.loopback import free_port
from roost.bench.peer import Peer
from roost.bench.server_process import die_with_parent

START_SECONDS: Final = 900.0
STOP_SECONDS: Final = 15.0
HEADERS: Final = {
    "x-auth-token": "admin",
    "accept": "application/json",
    "openstack-api-version": "placement 1.39",
}


class BenchService(ABC):
    """A service in a process group of its own, on a free loopback port. The context manager starts it."""

    name: str

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self.start_seconds = 0.0

    @abstractmethod
    def _command(self) -> Sequence[str]: ...

    def _environment(self) -> Mapping[str, str]:
        return {"OS_API__AUTH_STRATEGY": "noauth2"}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the service, and wait for the first response.

        Raises:
            DidNotStart: The process ended or did not answer in time.
        """
        self.port = free_port()
        started = time.perf_counter()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                env={**os.environ, **self._environment()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )
        try:
            while not self._answers():
                if self._process.poll() is not None or time.perf_counter() - started > START_SECONDS:
                    raise DidNotStart(f"{self.name} does not start:\n{self._log.read_text()[-2000:]}")
                time.sleep(0.01)
        except BaseException:
            self.stop()
            raise
        self.start_seconds = time.perf_counter() - started

    def stop(self) -> None:
        """Stop all processes of the service."""
        if self._process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_SECONDS)
                break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process = None

    def restart(self) -> None:
        """Stop and start the service; requests in progress are abandoned."""
        self.stop()
        self.start()

    def request(self, method: str, path: str, body: Any = None, timeout: float = 300.0) -> httpx.Response:
        """Send one request on a connection of its own."""
        with httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}", headers=HEADERS, timeout=timeout
        ) as client:
            return client.request(method, path, json=body)

    def resident(self) -> int:
        """Return the memory of all processes of the service in bytes."""
        return sum(map(proportional_set_size, self._pids()))

    def peak(self) -> int:
        """Return the peak memory of the largest process in bytes."""
        return max(map(peak_resident_size, self._pids()))

    def processor_seconds(self) -> float:
        """Return the processor time of all processes in seconds."""
        return sum(map(processor_seconds, self._pids()))

    def _pids(self) -> list[int]:
        assert self._process is not None
        return [self._process.pid, *descendants(self._process.pid)]

    _READY = "/"
    """The path that answers with 200 as soon as the service serves."""

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.TransportError):
            return self.request("GET", self._READY, timeout=5).status_code == 200
        return False


class Roost(BenchService):
    """``roost serve``."""

    name = "roost"

    def __init__(self, log: Path, database: str, workers: int = 1, arguments: Sequence[str] = ()) -> None:
        super().__init__(log)
        self._arguments = ("--database", database, "--workers", str(workers), *arguments)

    def _command(self) -> Sequence[str]:
        program = str(Path(sys.executable).with_name("roost"))
        return [program, "serve", "--port", str(self.port), *self._arguments]


class Upstream(BenchService):
    """OpenStack Placement, served by uwsgi as its documentation recommends."""

    name = "upstream"

    def __init__(self, log: Path, database: str, peer: Peer, processes: int = 2) -> None:
        super().__init__(log)
        self._peer = peer
        self._processes = processes
        url = sa.make_url(database)
        if url.get_backend_name() == "postgresql":
            url = url.set(drivername="postgresql+psycopg2")
        self._database = url.render_as_string(hide_password=False)

    def _environment(self) -> Mapping[str, str]:
        return {
            **super()._environment(),
            "OS_PLACEMENT_DATABASE__CONNECTION": self._database,
            "OS_PLACEMENT_CONFIG_DIR": str(self._peer.folder / "etc"),
        }

    def _command(self) -> Sequence[str]:
        # uwsgi's router keeps connections alive. If a worker did so, it would serve only that client.
        (self._peer.folder / "etc").mkdir(exist_ok=True)
        (self._peer.folder / "etc" / "placement.conf").touch()
        options = {
            "http": f"127.0.0.1:{self.port}",
            "http-timeout": 3600,
            "module": "placement.wsgi.api",
            "processes": self._processes,
            "listen": 128,
            "buffer-size": 65535,
        }
        # no-orphans: without it, workers would continue after their master is killed with this process.
        flags = ("http-keepalive", "master", "die-on-term", "no-orphans", "lazy-apps", "need-app")
        return [
            str(self._peer.uwsgi),
            *(f"--{name}={value}" for name, value in options.items()),
            *(f"--{name}" for name in (*flags, "disable-logging", "thunder-lock", "enable-threads")),
        ]


class NullService(BenchService):
    """`roost.bench.null_service`: the HTTP server and the framework alone.

    ``url``: of a ledger's database, for its one query; None: it has none.
    """

    name = "null"

    def __init__(self, log: Path, url: str | None = None) -> None:
        super().__init__(log)
        self._url = url

    def _command(self) -> Sequence[str]:
        more = () if self._url is None else (self._url,)
        return [sys.executable, "-m", "roost.bench.null_service", str(self.port), *more]


def descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of a process."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *descendants(child)]
    return found


def proportional_set_size(pid: int) -> int:
    """Return the proportional set size of a process in bytes, 0 if it has ended."""
    return _kilobytes(pid, "smaps_rollup", "Pss:") * 1024


def peak_resident_size(pid: int) -> int:
    """Return the peak of the resident set size of a process in bytes, 0 if it has ended."""
    return _kilobytes(pid, "status", "VmHWM:") * 1024


def _kilobytes(pid: int, file: str, field: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(field))


def processor_seconds(pid: int) -> float:
    """Return the processor time of the threads of a process in seconds, without threads that have ended."""
    nanoseconds = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            nanoseconds += int(thread.read_text().split()[0])
    return nanoseconds / 1e9
