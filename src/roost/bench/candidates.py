"""Benchmark of ``GET /allocation_candidates``, by fleet and limit."""

from collections.abc import Sequence
from typing import Final

import msgspec

from roost.bench.comparison import ComparedSetting, in_turns, running_services, speedup
from roost.bench.fleets import FleetPlan
from roost.bench.load_generator import LoadPlan
from roost.bench.measurement import MeasuredFigures, figures, http_request
from roost.bench.progress import announce
from roost.bench.queries import QueryTemplate, queries_for
from roost.bench.report import BenchReport, Column, report
from roost.bench.services import BenchService
from roost.bench.store import Store

UNLIMITED_HOSTS: Final = 10_000
"""Hosts of the largest fleet that is queried without a limit. For larger ones the response exceeds 100 MB."""
MIN_REQUESTS: Final = 3
"""Requests that each client sends in a round, however long they take."""

COLUMNS: Final = (
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
)


class CandidatesRow(msgspec.Struct, frozen=True):
    """The result of one query on one fleet.

    ``candidates``: number of allocation requests in the response to the first flavor. ``ratio``: median
    latency of OpenStack Placement divided by that of Roost.
    """

    query: str
    hosts: int
    limit: str
    candidates: int | None
    kilobytes: float
    roost: MeasuredFigures
    upstream: MeasuredFigures | None
    ratio: float | None


def measure(
    setting: ComparedSetting, store: Store, plans: Sequence[FleetPlan], limits: Sequence[int], clients: int
) -> BenchReport:
    """Measure each query of each fleet with each limit; 0 stands for no limit.

    Raises:
        BenchError: A service does not start or does not answer.
    """
    rows: list[CandidatesRow] = []
    wrong: list[str] = []
    for plan in plans:
        with running_services(setting, store, plan) as entered:
            for query in queries_for(plan):
                for limit in limits:
                    if limit or (plan.hosts <= UNLIMITED_HOSTS and plan.name == "flat"):
                        rows.append(_row(setting, plan, entered, query, limit or None, clients, wrong))
    settings = {**setting.settings(), "database": store.kind, "clients": clients}
    return report("candidates", "GET /allocation_candidates", COLUMNS, rows, settings, wrong=wrong)


def _row(
    setting: ComparedSetting,
    plan: FleetPlan,
    entered: Sequence[BenchService],
    query: QueryTemplate,
    limit: int | None,
    clients: int,
    wrong: list[str],
) -> CandidatesRow:
    announce(f"candidates: {query.name}, {plan}, limit {limit}")
    requests = [http_request("GET", path) for path in query.paths(limit)]
    warm = http_request("GET", "/")

    def plan_round(service: BenchService, number: int) -> LoadPlan:
        return LoadPlan(
            port=service.port,
            clients=clients,
            requests=requests,
            seconds=setting.seconds,
            warm_up=requests if service.name == "roost" and not number else [warm],
            min_requests=MIN_REQUESTS * clients,
            timeout=setting.timeout,
        )

    loads = in_turns(entered, plan_round, setting.rounds)
    shown = [figures(load) for load in loads]
    counts = [
        _candidates(service, next(query.paths(limit)))
        for service, load in zip(entered, loads, strict=True)
        if load.succeeded and not load.overdue
    ]
    if len(set(counts)) > 1:
        wrong.append(f"{query.name}, {plan}, limit {limit}: {counts} candidates")
    ours, *peers = shown
    peer = peers[0] if peers else None
    return CandidatesRow(
        query=query.name,
        hosts=plan.hosts,
        limit="none" if limit is None else f"{limit:,}",
        candidates=counts[0] if counts else None,
        kilobytes=ours.size / 1000,
        roost=ours,
        upstream=peer,
        ratio=speedup(ours, peer),
    )


def _candidates(service: BenchService, path: str) -> int:
    answer = service.request("GET", path)
    answer.raise_for_status()
    return len(answer.json()["allocation_requests"])
