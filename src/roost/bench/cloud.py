"""A whole cloud as processes on this machine: a conductor, and cells with a conductor and agents each.

The databases are on a private PostgreSQL server with all syncs on, as in production.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from roost.bench.errors import BenchError, DidNotStart
from roost.bench.loopback import free_port
from roost.bench.replay.workload import WorkloadHostTree
from roost.bench.server_process import die_with_parent
from roost.bench.services import descendants, processor_seconds
from roost.bench.store import durable_server

START_SECONDS = 300.0
STOP_SECONDS = 20.0
SETTLE_SECONDS = 600.0
"""Seconds after which instances that are neither active nor in error fail the benchmark."""
SHAPE = WorkloadHostTree({"VCPU": 64, "MEMORY_MB": 448 * 1024, "DISK_GB": 4000})
"""Every host of a benchmark's cloud."""
ROOST = str(Path(sys.executable).with_name("roost"))
TOKEN = {"x-auth-token": "admin"}
"""The headers that noauth2 accepts as an administrator's."""

CONFIGURATION = """\
[api]
auth_strategy = noauth2
[placement_database]
connection = {api}
[api_database]
connection = {api}
[records]
connection = {records}
[cell0]
connection = {cell0}
[simulated]
vcpus = {vcpus}
memory_mb = {memory}
disk_gb = {disk}
"""


class BenchProgram:
    """A process of the cloud, killed with its parent."""

    def __init__(self, folder: Path, name: str, *command: str) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [ROOST, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                preexec_fn=die_with_parent,
            )

    def wait(self, said: str) -> None:
        """Wait until the log of the process has a text. Raises `DidNotStart`."""
        until = time.monotonic() + START_SECONDS
        while said not in self.log.read_text():
            if self.process.poll() is not None or time.monotonic() > until:
                raise DidNotStart(f"{self.name} does not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the process by SIGTERM; kill it if it does not end."""
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(STOP_SECONDS)

    def processor_seconds(self) -> float:
        """Return the processor time of the process and its children, in seconds."""
        return sum(map(processor_seconds, self._pids()))

    def _pids(self) -> list[int]:
        return [self.process.pid, *descendants(self.process.pid)]


class Cloud:
    """A conductor, and ``cells`` with a conductor and one process of agents each, for ``hosts`` hosts in all.

    ``together``: most hosts of one process of agents; a cell may need several processes. ``profile``: the
    profile of all hosts. ``tls``: agents reach their cell over HTTPS. The context manager starts all
    processes and waits until each host has polled and reported once, which took ``start_seconds``.

    Raises:
        BenchError: PostgreSQL's account cannot reach the folder.
        ServerMissing: PostgreSQL is not installed.
        DidNotStart: A process ended or did not start in time.
    """

    def __init__(
        self,
        folder: Path,
        hosts: int,
        cells: int,
        tls: bool = True,
        *,
        together: int | None = None,
        profile: str | None = None,
    ) -> None:
        self.folder = folder
        self._hosts = hosts
        self._cells = [f"cell{number + 1}" for number in range(cells)]
        self._tls = tls
        self._together = together or hosts
        self._profile = profile
        self._groups: list[tuple[str, tuple[str, ...]]] = []
        self._stack = ExitStack()
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self.conductor: BenchProgram
        self.cell_conductors: list[BenchProgram] = []
        self.agents: list[BenchProgram] = []
        self.start_seconds = 0.0
        self.config = folder / "roost.conf"
        self.urls: dict[str, str] = {}
        """The URL of each database, by its name."""

    def __enter__(self) -> Self:
        with self._stack:
            self._start()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request to the conductor. Raises `httpx.HTTPError`."""
        answer = httpx.request(method, self.url + path, json=body, headers=TOKEN, timeout=60.0)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def build(self, flavor: Mapping[str, object], count: int, look_seconds: float) -> dict[str, str]:
        """Build instances, and return the state of each once all are active or in error.

        ``look_seconds``: seconds between two reads of their states.

        Raises:
            BenchError: They are not settled after `SETTLE_SECONDS`.
            httpx.HTTPError: The conductor does not answer, or refuses the request.
        """
        asked = self.request("POST", "/v1/instances", {"flavor": flavor, "count": count})
        path = f"/v1/instances?request_id={asked['request_id']}&limit={count}"
        until = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < until:
            states = {each["uuid"]: each["state"] for each in self.request("GET", path)["instances"]}
            if len(states) == count and set(states.values()) <= {"active", "error"}:
                return states
            time.sleep(look_seconds)
        raise BenchError(f"{count} instances are not built after {SETTLE_SECONDS:g} s")

    def processor_seconds(self) -> Mapping[str, float]:
        """Return the processor time so far in seconds, by kind of process."""
        return {
            "conductor": self.conductor.processor_seconds(),
            "cells": sum(each.processor_seconds() for each in self.cell_conductors),
            "agents": sum(each.processor_seconds() for each in self.agents),
        }

    def _start(self) -> None:
        folder = self.folder
        data = folder / "postgresql"
        data.mkdir()
        self._server = durable_server(data)
        self._server.start()
        self._stack.callback(self._server.stop)
        self.config.write_text(self._configuration())
        options = ("--config-file", str(self.config))
        tls = self._certificate() if self._tls else ()
        self.conductor = self._run("conductor", "conductor", "--port", str(self._port), *options)
        self.conductor.wait(f":{self._port} with")
        environment = {**os.environ, "ROOST_URL": self.url, "ROOST_TOKEN": "admin"}
        shares = _shares(self._hosts, self._cells)
        for cell, hosts in shares.items():
            self._roost(environment, "cell", "add", cell)
            port = free_port()
            name = f"cell-conductor-{cell}"
            own = [*tls, "--port", str(port)]
            self.cell_conductors.append(self._run(name, "cell-conductor", cell, *own, *options))
            self.cell_conductors[-1].wait(f":{port} with")
            tokens = str(folder / f"{cell}.tokens")
            for first in range(0, hosts, self._together):
                count = min(self._together, hosts - first)
                prefix = f"{cell}-{first // self._together:02}-"
                names = [f"{prefix}{number:04}" for number in range(1, count + 1)]
                for start in range(0, count, 100):
                    some = names[start : start + 100]
                    self._roost(environment, "host", "add", "--cell", cell, "--token-file", tokens, *some)
                group = [*options, "--hosts", str(count), "--host-prefix", prefix]
                group += ["--token-file", tokens, "--state-dir", str(folder / cell)]
                group += ["--ca-file", str(folder / "tls.crt")] if self._tls else []
                scheme = "https" if self._tls else "http"
                group += ["--endpoint", f"{scheme}://127.0.0.1:{port}"]
                self._groups.append((f"agents-{prefix}", tuple(group)))
        began = time.monotonic()
        self.agents = [self._agents(number) for number in range(len(self._groups))]
        for agents in self.agents:
            agents.wait("roost: agent of")
        self.start_seconds = time.monotonic() - began

    def verify(self) -> None:
        """Compare all databases with each other. Raises `BenchError`."""
        command = ("db", "verify", "--config-file", str(self.config), "--database", self.urls["api"])
        done = subprocess.run([ROOST, *command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise BenchError(f"the books are wrong: {done.stdout[:1000]}{done.stderr[:1000]}")

    def restart_agents(self, number: int, profile: str) -> None:
        """Restart a process of agents with another profile, and wait for the first reports of its hosts."""
        self.agents[number].stop()
        self._profile = profile
        self.agents[number] = self._agents(number)
        self.agents[number].wait("roost: agent of")

    def _agents(self, number: int) -> BenchProgram:
        name, command = self._groups[number]
        settings = () if self._profile is None else ("--set", f"simulated.profile={self._profile}")
        return self._run(f"{name}{self._profile or ''}", "agent", *command, *settings)

    def _run(self, name: str, *command: str) -> BenchProgram:
        program = BenchProgram(self.folder, name, *command)
        self._stack.callback(program.stop)
        return program

    def _roost(self, environment: Mapping[str, str], *command: str) -> None:
        done = subprocess.run([ROOST, *command], env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DidNotStart(f"roost {command[0]} {command[1]}: {done.stderr}")

    def _configuration(self) -> str:
        urls = {
            name: self._server.url(self._server.create_database())
            for name in ("api", "records", "cell0", *self._cells)
        }
        self.urls = urls
        for name, url in urls.items():
            role = name if name in ("api", "records") else "cell"
            self._roost(os.environ, "db", "upgrade", "--role", role, "--database", url)
        resources = SHAPE.resources
        text = CONFIGURATION.format(
            api=urls["api"],
            records=urls["records"],
            cell0=urls["cell0"],
            vcpus=resources["VCPU"],
            memory=resources["MEMORY_MB"],
            disk=resources["DISK_GB"],
        )
        return text + "".join(f"[cell_{name}]\nconnection = {urls[name]}\n" for name in self._cells)

    def _certificate(self) -> tuple[str, ...]:
        certificate, key = self.folder / "tls.crt", self.folder / "tls.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=roost-bench",
             "-addext", "subjectAltName=IP:127.0.0.1"],
            check=True,
            capture_output=True,
        )  # fmt: skip
        return "--tls-cert", str(certificate), "--tls-key", str(key)


def cloud_folder(folder: Path, name: str) -> Path:
    """Make a folder for a cloud, to which PostgreSQL's account has access, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder))
    own.chmod(0o755)
    return own


def _shares(hosts: int, cells: list[str]) -> dict[str, int]:
    """Return the number of hosts of each cell."""
    return {cell: hosts // len(cells) + (number < hosts % len(cells)) for number, cell in enumerate(cells)}
