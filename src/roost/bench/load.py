"""Load from another process, and what it showed."""

import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field

import msgspec
import numpy as np

from roost.bench.client import Answered, Plan
from roost.bench.errors import BenchError
from roost.bench.server_process import die_with_parent
from roost.fleet.columns import Float64


@dataclass
class Load:
    """What one or more runs of the load generator showed together.

    ``latencies``: seconds of each request, float64. ``seconds`` and ``cpu`` (the client's own) are sums;
    ``rounds`` has the number of requests of each run.
    """

    latencies: Float64 = field(default_factory=lambda: np.zeros(0))
    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    received: int = 0
    cpu: float = 0.0
    connections: int = 0
    rounds: list[int] = field(default_factory=list)

    def add(self, answered: Answered) -> None:
        """Take in one run."""
        self.latencies = np.concatenate([self.latencies, np.frombuffer(answered.latencies)])
        self.rounds.append(len(answered.latencies) // 8)
        self.outcomes.update(answered.outcomes)
        self.seconds += answered.seconds
        self.received += answered.received
        self.cpu += answered.cpu
        self.connections += answered.connections

    @property
    def succeeded(self) -> int:
        """Requests that were answered with 2xx."""
        return sum(count for outcome, count in self.outcomes.items() if outcome.startswith("2"))

    @property
    def overdue(self) -> bool:
        """Whether an answer took too long; latencies are lower bounds then."""
        return self.outcomes["overdue"] > 0


class Figures(msgspec.Struct, frozen=True):
    """What a table shows of a load.

    Times in milliseconds; ``per_second`` counts what succeeded; ``size`` is the mean body in bytes;
    ``client_us`` is the processor time that the load generator took for each request, in microseconds;
    ``failed`` counts what was not answered with 2xx, by outcome. ``at_least``: an answer was overdue, so
    times are lower bounds.
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


def figures(load: Load, items: int = 1) -> Figures:
    """The figures of a load; ``items``: how many things each request does, all of which are counted."""
    count = len(load.latencies)
    p50, p99 = np.percentile(load.latencies, [50, 99]) * 1000
    return Figures(
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


def _failed(load: Load) -> dict[str, int]:
    failed: Counter[str] = Counter()
    for name, count in sorted(load.outcomes.items()):
        if not name.startswith("2"):
            failed[name.removesuffix(" placement.undefined_code").replace(" placement.", " ")] += count
    return dict(failed)


def send(plan: Plan) -> Answered:
    """Run the load generator. Raises `BenchError` if it could not be."""
    done = subprocess.run(
        [sys.executable, "-m", "roost.bench.client"],
        input=msgspec.msgpack.encode(plan),
        capture_output=True,
        check=False,
        preexec_fn=die_with_parent,
    )
    if done.returncode != 0:
        raise BenchError(f"the load generator: {done.stderr.decode(errors='replace').strip()[-500:]}")
    return msgspec.msgpack.decode(done.stdout, type=Answered)


def request(method: str, path: str, body: object = None, version: str = "1.39") -> bytes:
    """A whole HTTP/1.1 request, as the administrator."""
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
