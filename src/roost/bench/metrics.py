"""Benchmark of metrics: the processor time of a request with and without them.

Two services run at the same time on copies of one fleet, one with ``--metrics-port``. They are loaded in
turns, in the order ABBA, so that both see the same state of the machine. The figure is the processor time of
their processes: it does not depend on the disk, and depends less on other load than a latency does.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import click
import httpx
import numpy as np

from roost.bench.claims import Claims, prepared
from roost.bench.fleets import FleetPlan, flat
from roost.bench.load_generator import LoadPlan
from roost.bench.loopback import free_port
from roost.bench.measurement import ComparedSetting, announce, announce_round, http_request, run_load
from roost.bench.options import count_option, counts_option, reported
from roost.bench.queries import queries_for
from roost.bench.report import BenchReport, BenchTable, Column
from roost.bench.services import Roost
from roost.bench.store import Store

LIMIT: Final = 10
"""Candidates of a query."""
SCRAPES: Final = 20

TABLE: Final = BenchTable(
    "metrics",
    "Processor time with and without metrics",
    (
        Column("work", "work"),
        Column("clients", "clients"),
        Column("requests", "requests", ","),
        Column("CPU µs without", "without_us", ",.0f"),
        Column("CPU µs with", "with_us", ",.0f"),
        Column("more %", "more_percent", ",.1f"),
        Column("lower quartile %", "lower_percent", ",.1f"),
        Column("upper quartile %", "upper_percent", ",.1f"),
    ),
)
"""Each row is one kind of request.

``without_us``, ``with_us``: medians of the rounds, in microseconds of processor time for each request.
``more_percent``: median over the rounds of the additional processor time of the service with metrics;
``lower_percent``, ``upper_percent``: the quartiles. ``requests``: of both services together.
"""


Planner = Callable[[Roost], LoadPlan]


def measure(setting: ComparedSetting, store: Store, plan: FleetPlan, clients: Sequence[int]) -> BenchReport:
    """Measure claims with each number of clients, and candidates with one.

    Raises:
        BenchError: A service does not start or does not answer.
    """
    claims = Claims(plan.roots(), 1)
    queries = [http_request("GET", path) for path in queries_for(plan)[0].paths(LIMIT)]
    port = free_port()
    rows = []
    with _both(setting.folder, store, plan, port) as services:
        for number in clients:

            def puts(service: Roost, number: int = number) -> LoadPlan:
                requests = claims.puts(prepared(service, setting.seconds))
                return setting.load(service, [*requests.values()], number, cyclic=False)

            rows.append(_row("PUT", number, services, puts, setting.rounds))
        rows.append(
            _row("candidates", 1, services, lambda service: setting.load(service, queries), setting.rounds)
        )
        note = _scrapes(port)
    settings = {
        "database": store.kind,
        "fleet": str(plan),
        "rounds": setting.rounds,
        "seconds": setting.seconds,
    }
    return TABLE.report(rows, settings, [note])


@contextmanager
def _both(folder: Path, store: Store, plan: FleetPlan, port: int) -> Iterator[tuple[Roost, Roost]]:
    """Run a service without metrics and one with them, each on a copy of the fleet."""
    announce(f"preparing a fleet: {plan}")
    with ExitStack() as stack:

        def started(name: str, *arguments: str) -> Roost:
            database = stack.enter_context(store.copy(plan, "roost"))
            return stack.enter_context(Roost(folder / f"{name}.log", database, arguments=arguments))

        yield started("without-metrics"), started("with-metrics", "--metrics-port", str(port))


def _row(work: str, clients: int, services: Sequence[Roost], planner: Planner, rounds: int) -> dict[str, Any]:
    announce(f"metrics: {work}, {clients} clients")
    used = np.zeros((rounds, 2))
    requests = 0
    for number in range(-1, rounds):
        for place in (0, 1) if number % 2 else (1, 0):
            service = services[place]
            planned = planner(service)
            before = service.processor_seconds()
            result = run_load(planned)
            count = result.requests
            taken = (service.processor_seconds() - before) / count
            # The first round is for warming up.
            if number >= 0:
                used[number, place] = taken * 1e6
                requests += count
                announce_round(number + 1, rounds, service.name, result.rate)
    more = (used[:, 1] / used[:, 0] - 1) * 100
    lower, median, upper = np.percentile(more, [25, 50, 75]).tolist()
    without, with_metrics = np.median(used, axis=0).tolist()
    return {
        "work": work,
        "clients": clients,
        "requests": requests,
        "without_us": without,
        "with_us": with_metrics,
        "more_percent": median,
        "lower_percent": lower,
        "upper_percent": upper,
    }


def _scrapes(port: int) -> str:
    """Return the duration and size of a scrape, which the parent process answers, not a worker."""
    started = time.perf_counter()
    for _ in range(SCRAPES):
        size = len(httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).raise_for_status().text)
    taken = (time.perf_counter() - started) / SCRAPES
    return f"A scrape has {size:,} bytes and takes the first process {taken * 1000:.0f} ms."


@click.command(epilog="Example: roost bench metrics --rounds 20")
@count_option("--hosts", 10_000, "Hosts of the fleet.")
@counts_option("--clients", (1, 16), "Connections")
@reported(rounds=8, seconds=2.0)
def metrics(setting: ComparedSetting, hosts: int, clients: tuple[int, ...]) -> BenchReport:
    """Measure the processor time of claims and candidates with and without metrics, in turns."""
    with setting.store() as store:
        return measure(setting, store, flat(hosts), clients)
