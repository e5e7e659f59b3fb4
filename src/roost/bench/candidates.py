"""Benchmark of ``GET /allocation_candidates``, by fleet and limit."""

from collections.abc import Sequence
from typing import Any, Final

import click

from roost.bench.fleets import FleetPlan, flat, nested, wide
from roost.bench.goals import Calibration, Goal
from roost.bench.load_generator import LoadPlan
from roost.bench.measurement import (
    ComparedSetting,
    announce,
    beside_peer,
    figures,
    http_request,
    in_turns,
    running_services,
    speedup,
)
from roost.bench.options import count_option, counts_option, hosts, reported
from roost.bench.queries import QueryTemplate, queries_for
from roost.bench.report import BenchReport, BenchTable, Column
from roost.bench.services import BenchService
from roost.bench.store import Store

UNLIMITED_HOSTS: Final = 10_000
"""Hosts of the largest fleet that is queried without a limit. For larger ones the response exceeds 100 MB."""
MIN_REQUESTS: Final = 3
"""Requests that each client sends in a round, however long they take."""


GOALS: Final = (
    Goal(
        workload="candidates, 1,000 flat hosts, limit 1,000",
        of={"query": "flat", "hosts": 1_000, "limit": "1,000"},
        field="ratio",
        unit="times upstream",
        at_least=60,
        calibrations=(Calibration((78,), "SQLite"), Calibration((65,), "PostgreSQL")),
    ),
    Goal(
        workload="candidates, 1,000 flat hosts, limit 1,000",
        of={"query": "flat", "hosts": 1_000, "limit": "1,000"},
        field="roost.p50_ms",
        unit="ms",
        at_most=3,
        calibrations=(Calibration((2.49,), "SQLite"), Calibration((2.78,), "PostgreSQL")),
    ),
    Goal(
        workload="candidates, 10,000 flat hosts, limit 1,000",
        of={"query": "flat", "hosts": 10_000, "limit": "1,000"},
        field="ratio",
        unit="times upstream",
        at_least=400,
        calibrations=(Calibration((555,), "SQLite"), Calibration((460,), "PostgreSQL")),
    ),
    Goal(
        workload="candidates, 10,000 flat hosts, limit 1,000",
        of={"query": "flat", "hosts": 10_000, "limit": "1,000"},
        field="roost.p50_ms",
        unit="ms",
        at_most=4,
        calibrations=(Calibration((2.71,), "SQLite"), Calibration((2.65,), "PostgreSQL")),
    ),
    Goal(
        workload="candidates, 10,000 flat hosts, limit 10",
        of={"query": "flat", "hosts": 10_000, "limit": "10"},
        field="roost.p50_ms",
        unit="ms",
        at_most=1,
        calibrations=(Calibration((1.16, 0.65), "SQLite"), Calibration((1.37, 1.06), "PostgreSQL")),
    ),
    Goal(
        workload="candidates, 100,000 flat hosts, limit 1,000",
        of={"query": "flat", "hosts": 100_000, "limit": "1,000"},
        field="roost.p50_ms",
        unit="ms",
        at_most=6,
        calibrations=(Calibration((2.58,), "SQLite"), Calibration((2.83,), "PostgreSQL")),
    ),
    Goal(
        workload="candidates, 1,000,000 flat hosts, limit 1,000",
        of={"query": "flat", "hosts": 1_000_000, "limit": "1,000"},
        field="roost.p50_ms",
        unit="ms",
        at_most=20,
        calibrations=(Calibration((2.59,), "SQLite"),),
    ),
    Goal(
        workload="candidates, 1,000 trees, same_subtree, limit 1,000",
        of={"query": "nested, same_subtree", "hosts": 1_000, "limit": "1,000"},
        field="ratio",
        unit="times upstream",
        at_least=100,
        calibrations=(Calibration((176,), "SQLite"),),
    ),
    Goal(
        workload="candidates, 10,000 trees, same_subtree, limit 1,000",
        of={"query": "nested, same_subtree", "hosts": 10_000, "limit": "1,000"},
        field="ratio",
        unit="times upstream",
        at_least=100,
        calibrations=(Calibration((1_174,), "SQLite"),),
    ),
    *(
        Goal(
            workload=f"candidates, {query}, limit 1,000",
            of={"query": query, "limit": "1,000"},
            field="roost.p50_ms",
            unit="ms",
            at_most=10,
            calibrations=(Calibration((measured,), "SQLite"),),
        )
        for query, measured in (
            ("8 devices, 6 groups, isolate", 5.76),
            ("8 devices, 6 groups, none", 6.34),
            ("32 devices, 32 groups, none", 9.56),
        )
    ),
)

TABLE: Final = BenchTable(
    "candidates",
    "GET /allocation_candidates",
    (
        Column("query", "query"),
        Column("hosts", "hosts", ","),
        Column("limit", "limit"),
        Column("candidates", "candidates", ","),
        Column("kB", "kilobytes", ",.0f"),
        Column("p50 ms", "roost.p50_ms", ",.2f", "roost.at_least"),
        Column("p99 ms", "roost.p99_ms", ",.2f", "roost.at_least"),
        Column("requests/s", "roost.per_second", ",.0f"),
        Column("upstream p50 ms", "upstream.p50_ms", ",.0f", "upstream.at_least"),
        Column("p99 ms", "upstream.p99_ms", ",.0f", "upstream.at_least"),
        Column("requests/s", "upstream.per_second", ",.2f"),
        Column("times faster", "ratio", ",.0f", "upstream.at_least"),
        Column("failed", "roost.failed"),
        Column("upstream failed", "upstream.failed"),
        Column("client µs", "roost.client_us", ",.0f"),
    ),
    GOALS,
)
"""Each row is one query on one fleet.

``candidates``: number of allocation requests in the response to the first flavor. ``ratio``: median latency
of OpenStack Placement divided by that of Roost.
"""


def measure(
    setting: ComparedSetting, store: Store, plans: Sequence[FleetPlan], limits: Sequence[int], clients: int
) -> BenchReport:
    """Measure each query of each fleet with each limit; 0 stands for no limit.

    Raises:
        BenchError: A service does not start or does not answer.
    """
    rows: list[dict[str, Any]] = []
    wrong: list[str] = []
    for plan in plans:
        with running_services(setting, store, plan) as entered:
            for query in queries_for(plan):
                for limit in limits:
                    if limit or (plan.hosts <= UNLIMITED_HOSTS and plan.name == "flat"):
                        rows.append(_row(setting, plan, entered, query, limit or None, clients, wrong))
    return TABLE.report(rows, setting.settings(store, clients=clients), wrong=wrong)


def _row(
    setting: ComparedSetting,
    plan: FleetPlan,
    entered: Sequence[BenchService],
    query: QueryTemplate,
    limit: int | None,
    clients: int,
    wrong: list[str],
) -> dict[str, Any]:
    announce(f"candidates: {query.name}, {plan}, limit {limit}")
    requests = [http_request("GET", path) for path in query.paths(limit)]

    def plan_round(service: BenchService, number: int) -> LoadPlan:
        warm_up = requests if service.name == "roost" and not number else None
        return setting.load(service, requests, clients, min_requests=MIN_REQUESTS * clients, warm_up=warm_up)

    loads = in_turns(entered, plan_round, setting.rounds)
    counts = [
        _candidates(service, next(query.paths(limit)))
        for service, load in zip(entered, loads, strict=True)
        if load.succeeded and not load.overdue
    ]
    if len(set(counts)) > 1:
        wrong.append(f"{query.name}, {plan}, limit {limit}: {counts} candidates")
    ours, peer = beside_peer([figures(load) for load in loads])
    return {
        "query": query.name,
        "hosts": plan.hosts,
        "limit": "none" if limit is None else f"{limit:,}",
        "candidates": counts[0] if counts else None,
        "kilobytes": ours.size / 1000,
        "roost": ours,
        "upstream": peer,
        "ratio": speedup(ours, peer),
    }


def _candidates(service: BenchService, path: str) -> int:
    answer = service.request("GET", path)
    answer.raise_for_status()
    return len(answer.json()["allocation_requests"])


@click.command(epilog="Example: roost bench candidates --fleet flat --hosts 10000 --limit 10 --peer")
@hosts
@click.option(
    "--fleet",
    "fleets",
    type=click.Choice(["flat", "nested", "wide"]),
    multiple=True,
    default=("flat", "nested", "wide"),
    show_default=True,
    help="Kinds of fleet; wide ones have few hosts, whatever --hosts says.",
)
@counts_option(
    "--limit",
    (1_000, 10),
    "Candidates in an answer; 0: no limit, on flat fleets of up to 10,000 hosts",
    least=0,
)
@count_option("--clients", 1, "Connections.")
@reported(peer=True, rounds=2, seconds=3.0)
def candidates(
    setting: ComparedSetting,
    hosts: tuple[int, ...],
    fleets: tuple[str, ...],
    limit: tuple[int, ...],
    clients: int,
) -> BenchReport:
    """Time GET /allocation_candidates as Nova sends it, with two required traits and a forbidden one."""
    plans = []
    for fleet in fleets:
        if fleet == "wide":
            plans += [wide(10), wide(2, devices=32)]
        else:
            plans += [{"flat": flat, "nested": nested}[fleet](number) for number in hosts]
    with setting.store() as store:
        return measure(setting, store, plans, limit, clients)
