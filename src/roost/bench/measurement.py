"""Runs of the load generator in a process of its own, and figures of their results."""

import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field

import msgspec
import numpy as np

from roost.bench.errors import BenchError
from roost.bench.load_generator import LoadPlan, LoadResult
from roost.bench.server_process import die_with_parent
from roost.fleet.columns import Float64


@dataclass
class Measurement:
    """The sum of one or more results of the load generator.

    ``latencies``: float64[requests], seconds. ``seconds``: the time of all runs. ``cpu``: processor time of
    the client, seconds. ``received``: bytes. ``rounds`` has the number of requests of each run.
    """

    latencies: Float64 = field(default_factory=lambda: np.zeros(0))
    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    received: int = 0
    cpu: float = 0.0
    connections: int = 0
    rounds: list[int] = field(default_factory=list)

    def add(self, result: LoadResult) -> None:
        """Add the result of one run."""
        self.latencies = np.concatenate([self.latencies, np.frombuffer(result.latencies)])
        self.rounds.append(len(result.latencies) // 8)
        self.outcomes.update(result.outcomes)
        self.seconds += result.seconds
        self.received += result.received
        self.cpu += result.cpu
        self.connections += result.connections

    @property
    def succeeded(self) -> int:
        """The number of requests with a 2xx response."""
        return sum(count for outcome, count in self.outcomes.items() if outcome.startswith("2"))

    @property
    def overdue(self) -> bool:
        """Return whether a response was overdue. Latencies are lower bounds then."""
        return self.outcomes["overdue"] > 0


class MeasuredFigures(msgspec.Struct, frozen=True):
    """Figures of a measurement.

    ``per_second``: successful requests, or their items, a second. ``size``: the mean body in bytes.
    ``client_us``: the processor time of the load generator for each request, in microseconds. ``failed``:
    requests without a 2xx response, by outcome. ``at_least``: the times are lower bounds, because a response
    was overdue.
    """

    requests: int
    p50_ms: float
    p99_ms: float
    mean_ms: float
    per_second: float
    size: float
    client_us: float
    failed: dict[str, int]
    at_least: bool


def figures(load: Measurement, items: int = 1) -> MeasuredFigures:
    """Return the figures of a measurement whose requests have ``items`` items each, such as consumers."""
    count = len(load.latencies)
    p50, p99 = np.percentile(load.latencies, [50, 99]) * 1000
    return MeasuredFigures(
        requests=count,
        p50_ms=float(p50),
        p99_ms=float(p99),
        mean_ms=float(load.latencies.mean()) * 1000,
        per_second=items * load.succeeded / load.seconds,
        size=load.received / count,
        client_us=load.cpu / count * 1e6,
        failed=_failed(load),
        at_least=load.overdue,
    )


def _failed(load: Measurement) -> dict[str, int]:
    failed: Counter[str] = Counter()
    for name, count in sorted(load.outcomes.items()):
        if not name.startswith("2"):
            failed[name.removesuffix(" placement.undefined_code").replace(" placement.", " ")] += count
    return dict(failed)


def run_load(plan: LoadPlan) -> LoadResult:
    """Run the load generator in a process of its own.

    Raises:
        BenchError: It failed.
    """
    done = subprocess.run(
        [sys.executable, "-m", "roost.bench.load_generator"],
        input=msgspec.msgpack.encode(plan),
        capture_output=True,
        check=False,
        preexec_fn=die_with_parent,
    )
    if done.returncode != 0:
        raise BenchError(f"the load generator: {done.stderr.decode(errors='replace').strip()[-500:]}")
    return msgspec.msgpack.decode(done.stdout, type=LoadResult)


def http_request(method: str, path: str, body: object = None, version: str = "1.39") -> bytes:
    """Return an encoded HTTP/1.1 request by the administrator."""
    raw = b"" if body is None else msgspec.json.encode(body)
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "X-Auth-Token: admin",
        "Accept: application/json",
        f"OpenStack-API-Version: placement {version}",
    ]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(raw)}"]
    return "\r\n".join([*lines, "", ""]).encode() + raw
