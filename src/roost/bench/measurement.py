"""Measurements: timed functions, runs of the load generator, and services measured in turns.

Roost and OpenStack Placement (the peer) take turns because the speed of a machine changes over minutes, with
its temperature and with the load of its other guests. Rounds of a few seconds, one service after the other,
see the same speed. So the ratio of two services is stable where their figures are not.
"""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from roost.bench.errors import BenchError
from roost.bench.fleets import FleetPlan
from roost.bench.load_generator import LoadPlan, LoadResult
from roost.bench.peer import find_peer
from roost.bench.server_process import die_with_parent
from roost.bench.services import BenchService, Roost, Upstream
from roost.bench.store import Store, open_store
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
        self.rounds.append(result.requests)
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
    p50, p99 = percentiles_ms(load.latencies)
    return MeasuredFigures(
        requests=count,
        p50_ms=p50,
        p99_ms=p99,
        mean_ms=float(load.latencies.mean()) * 1000,
        per_second=items * load.succeeded / load.seconds,
        size=load.received / count,
        client_us=load.cpu / count * 1e6,
        failed=_failed(load),
        at_least=load.overdue,
    )


def percentiles_ms(seconds: Sequence[float] | Float64) -> tuple[float, float]:
    """Return the p50 and the p99 of some times, in milliseconds."""
    p50, p99 = np.percentile(seconds, [50, 99]) * 1000
    return float(p50), float(p99)


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


def measured(plan: LoadPlan) -> Measurement:
    """Return the measurement of one run of the load generator. Raises `BenchError` if it failed."""
    load = Measurement()
    load.add(run_load(plan))
    return load


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


def median_ms(work: Callable[[int], object], seconds: float, min_calls: int = 1) -> float:
    """Call ``work`` with the number of the call, from 0, for ``seconds`` and at least ``min_calls`` times.

    Returns the median time of a call in milliseconds.
    """
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < min_calls or time.perf_counter() < until:
        started = time.perf_counter()
        work(len(times))
        times.append(time.perf_counter() - started)
    return float(np.median(times)) * 1000


Planner = Callable[[BenchService, int], LoadPlan]
"""Returns the load of a service in a round. Rounds count from 0."""


class ComparedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a measurement.

    ``folder``: the bench directory. ``database``: the store that `open_store` opens. ``workers``,
    ``peer_processes``: processes of Roost and of the peer. The peer takes part if ``peer`` is set and the
    fleet has at most ``peer_providers`` providers. A case has ``rounds``; in each of them each service is
    measured for ``seconds``. A response that takes longer than ``timeout`` seconds ends its case.
    """

    folder: Path
    database: str = "sqlite"
    workers: int = 1
    peer: bool = False
    peer_processes: int = 2
    peer_providers: int = 12_000
    rounds: int = 2
    seconds: float = 3.0
    timeout: float = 20.0

    def store(self) -> AbstractContextManager[Store]:
        """Open the store of databases. Raises as `open_store`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return open_store(self.folder, self.database)

    def settings(self, store: Store, **more: object) -> dict[str, object]:
        """Return the options that a report shows, with the database and ``more``."""
        shown: dict[str, object] = {
            "workers": self.workers,
            "rounds": self.rounds,
            "seconds": self.seconds,
            "timeout": self.timeout,
        }
        if self.peer:
            shown["upstream"] = f"uwsgi, {self.peer_processes} processes"
        return {**shown, "database": store.kind, **more}

    def load(
        self,
        service: BenchService,
        requests: list[bytes],
        clients: int = 1,
        *,
        cyclic: bool = True,
        min_requests: int = 1,
        warm_up: list[bytes] | None = None,
        conflict_retries: int = 0,
    ) -> LoadPlan:
        """Return the load of one round for a service. ``warm_up``: None stands for one GET of the root."""
        return LoadPlan(
            port=service.port,
            clients=clients,
            requests=requests,
            seconds=self.seconds,
            warm_up=[http_request("GET", "/")] if warm_up is None else warm_up,
            cyclic=cyclic,
            min_requests=min_requests,
            timeout=self.timeout,
            conflict_retries=conflict_retries,
        )


@contextmanager
def running_services(setting: ComparedSetting, store: Store, plan: FleetPlan) -> Iterator[list[BenchService]]:
    """Run Roost, and the peer if it takes part, each on a copy of the same fleet.

    Raises:
        BenchError: A service does not start, or the peer is not installed.
    """
    announce(f"preparing a fleet: {plan}")
    with ExitStack() as stack:
        log = setting.folder / "roost.log"
        database = stack.enter_context(store.copy(plan, "roost"))
        entered: list[BenchService] = [stack.enter_context(Roost(log, database, setting.workers))]
        if setting.peer and plan.providers <= setting.peer_providers:
            peer = find_peer(setting.folder)
            database = stack.enter_context(store.copy(plan, "upstream"))
            upstream = Upstream(setting.folder / "upstream.log", database, peer, setting.peer_processes)
            entered.append(stack.enter_context(upstream))
        yield entered


def in_turns(entered: Sequence[BenchService], planner: Planner, rounds: int) -> list[Measurement]:
    """Measure the services in turns. After an overdue response a service is restarted and left out."""
    loads = [Measurement() for _ in entered]
    for number in range(rounds):
        for service, load in zip(entered, loads, strict=True):
            if load.overdue:
                continue
            result = run_load(planner(service, number))
            load.add(result)
            announce_round(number + 1, rounds, service.name, result.rate)
            if load.overdue:
                service.restart()
    return loads


def beside_peer(shown: Sequence[MeasuredFigures]) -> tuple[MeasuredFigures, MeasuredFigures | None]:
    """Return the figures of Roost, and those of the peer if it took part."""
    return shown[0], shown[1] if len(shown) > 1 else None


def speedup(ours: MeasuredFigures, peer: MeasuredFigures | None) -> float | None:
    """Return the peer's median latency divided by ours; None without a peer or if ours is a lower bound."""
    return None if peer is None or ours.at_least else peer.p50_ms / ours.p50_ms


Show = Callable[[str, str, int, int | None, str], None]
"""Called with the step, the unit of the numbers, the number done, the total or None, and a detail."""


class _Shown:
    """The current step, and the function that shows it; None: lines on standard error."""

    show: Show | None = None
    step = ""


def show_with(show: Show | None) -> None:
    """Set the function that shows the progress of benchmarks in this process; None: lines."""
    _Shown.show = show


def announce(step: str) -> None:
    """Show the step that is measured from now on; a benchmark takes minutes."""
    _Shown.step = step
    if _Shown.show is None:
        print(f"roost: {step}", file=sys.stderr, flush=True)
    else:
        _Shown.show(step, "rounds", 0, None, "")


def announce_round(done: int, total: int, service: str, per_second: float) -> None:
    """Show the rate of a service in a round."""
    if _Shown.show is not None:
        _Shown.show(_Shown.step, "rounds", done, total, f"{service} {per_second:,.0f} requests/s")
