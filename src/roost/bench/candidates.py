"""Who can hold this? ``GET /allocation_candidates``, by fleet and limit."""

from collections.abc import Sequence
from typing import Final

import msgspec

from roost.bench.client import Plan
from roost.bench.contest import Setting, in_turns, services, tell, times_faster
from roost.bench.fleets import FleetPlan
from roost.bench.load import Figures, figures, request
from roost.bench.queries import Shape, shapes_for
from roost.bench.report import Column, Report, report
from roost.bench.services import Service
from roost.bench.store import Store

UNLIMITED_HOSTS: Final = 10_000
"""Larger fleets are not asked without a limit: the answer is some hundred megabytes."""
LEAST: Final = 3
"""Requests of each round, however long they take."""

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


class Row(msgspec.Struct, frozen=True):
    """One query on one fleet. ``limit``: None is without; ``candidates``: in the first query's answer."""

    query: str
    hosts: int
    limit: str
    candidates: int | None
    kilobytes: float
    roost: Figures
    upstream: Figures | None
    ratio: float | None


def measure(
    setting: Setting, store: Store, plans: Sequence[FleetPlan], limits: Sequence[int], clients: int
) -> Report:
    """Ask each fleet each of its queries with each limit (0: none). Raises `BenchError`."""
    rows: list[Row] = []
    wrong: list[str] = []
    for plan in plans:
        with services(setting, store, plan) as entered:
            for shape in shapes_for(plan):
                for limit in limits:
                    if limit or (plan.hosts <= UNLIMITED_HOSTS and plan.name == "flat"):
                        rows.append(_row(setting, plan, entered, shape, limit or None, clients, wrong))
    settings = {**setting.settings(), "database": store.kind, "clients": clients}
    return report("candidates", "GET /allocation_candidates", COLUMNS, rows, settings, wrong=wrong)


def _row(
    setting: Setting,
    plan: FleetPlan,
    entered: Sequence[Service],
    shape: Shape,
    limit: int | None,
    clients: int,
    wrong: list[str],
) -> Row:
    tell(f"candidates: {shape.name}, {plan}, limit {limit}")
    requests = [request("GET", path) for path in shape.paths(limit)]
    warm = request("GET", "/")

    def planned(service: Service, number: int) -> Plan:
        return Plan(
            port=service.port,
            clients=clients,
            requests=requests,
            seconds=setting.seconds,
            warm=requests if service.name == "roost" and not number else [warm],
            least=LEAST * clients,
            timeout=setting.timeout,
        )

    loads = in_turns(entered, planned, setting.rounds)
    shown = [figures(load) for load in loads]
    counts = [
        _candidates(service, next(shape.paths(limit)))
        for service, load in zip(entered, loads, strict=True)
        if load.succeeded and not load.overdue
    ]
    if len(set(counts)) > 1:
        wrong.append(f"{shape.name}, {plan}, limit {limit}: {counts} candidates")
    ours, *peers = shown
    peer = peers[0] if peers else None
    return Row(
        query=shape.name,
        hosts=plan.hosts,
        limit="none" if limit is None else f"{limit:,}",
        candidates=counts[0] if counts else None,
        kilobytes=ours.size / 1000,
        roost=ours,
        upstream=peer,
        ratio=times_faster(ours, peer),
    )


def _candidates(service: Service, path: str) -> int:
    answer = service.ask("GET", path)
    answer.raise_for_status()
    return len(answer.json()["allocation_requests"])
