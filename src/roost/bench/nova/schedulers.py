"""The schedulers of `roost bench nova`, as processes that are asked by lines of JSON."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from roost.bench.errors import BenchError
from roost.bench.nova.nova_cloud import MeasuredCloud, NovaEnvironment
from roost.bench.server_process import START_SECONDS, die_with_parent

NOVA_PROCESS = Path(__file__).with_name("nova_process.py")


class TimedCalls(msgspec.Struct, frozen=True):
    """The calls of one measurement.

    ``times``: the seconds of each, in the order in which they began. ``seconds``: of all together.
    ``instances``: those that claims were made for.
    """

    times: list[float]
    seconds: float
    instances: list[str]


class SchedulerProcess:
    """A process that answers questions. The context manager starts it.

    ``name`` is that of reports. ``environment`` is added to the one of this process.
    """

    def __init__(
        self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=die_with_parent,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def ask(self, function: str, /, **arguments: Any) -> Any:
        """Return the answer to a question.

        Raises:
            BenchError: The process has ended; its log says why.
        """
        assert self._process is not None and self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps([function, arguments]) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise BenchError(f"{self.name} has ended:\n{self._log.read_text()[-3000:]}")
        return json.loads(line)

    def calls(self, specs: Sequence[Any], callers: int, seconds: float, least: int = 1) -> TimedCalls:
        """Have calls made; see `roost.bench.nova.timed_calls.timed_calls`. Raises `BenchError`."""
        made = self.ask("calls", specs=specs, callers=callers, seconds=seconds, least=least)
        return msgspec.convert(made, TimedCalls)

    def wait_for_nodes(self, expected: int) -> None:
        """Wait until a bridge knows all compute nodes, which its feed reads after its start.

        Raises:
            BenchError: It does not know them in time.
        """
        until = time.monotonic() + START_SECONDS
        while (found := self.ask("nodes")) != expected:
            if time.monotonic() > until:
                raise BenchError(f"{self.name} knows {found:,} of {expected:,} compute nodes")
            time.sleep(0.5)

    def pause(self) -> None:
        """Stop the process until `resume`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the process go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def processor_seconds(self) -> float:
        """Return the processor time of the process in seconds, with that of threads that have ended."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        user, system = fields[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def nova_scheduler(environment: NovaEnvironment, conf: Path, log: Path) -> SchedulerProcess:
    """Return a process with Nova's scheduler, which reads ``conf``."""
    return SchedulerProcess("nova-scheduler", [str(environment.python), str(NOVA_PROCESS), str(conf)], log)


def bridge_over_http(cloud: MeasuredCloud) -> SchedulerProcess:
    """Return a process with Roost's scheduler that claims in the placement over HTTP, as Nova's does."""
    return _bridge("roost, placement over HTTP", cloud, cloud.roost_conf("http"))


def bridge_with_ledger(cloud: MeasuredCloud) -> SchedulerProcess:
    """Return a process with Roost's scheduler that has the ledger of the placement's database."""
    section = f"[placement_database]\nconnection = {cloud.server.url(cloud.databases['placement'])}\n"
    return _bridge("roost, ledger", cloud, cloud.roost_conf("ledger", section))


def _bridge(name: str, cloud: MeasuredCloud, conf: Path) -> SchedulerProcess:
    command = [sys.executable, "-m", "roost.bench.nova.bridge", str(cloud.nova_conf), str(conf)]
    return SchedulerProcess(name, command, conf.with_suffix(".log"))
