"""Benchmark of claims: allocations of new consumers, answered once the commit is durable."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np

from roost.bench.comparison import ComparedSetting, in_turns, running_services
from roost.bench.fleets import PROJECT, USER, FleetPlan, uuids
from roost.bench.load_generator import LoadPlan
from roost.bench.measurement import MeasuredFigures, Measurement, figures, http_request
from roost.bench.progress import announce
from roost.bench.report import BenchReport, Column, report
from roost.bench.services import BenchService
from roost.bench.store import Store

RESOURCES: Final = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 2}
POST_SIZE: Final = 100
"""Consumers in one POST."""
PREPARED: Final = {"roost": 12_000, "upstream": 1_000}
"""Claims that are encoded for each second of a round: more than the service can answer."""

COLUMNS: Final = (
    Column("work", "work"),
    Column("clients", "clients"),
    Column("claims/s", "roost.per_second", ",.0f"),
    Column("p50 ms", "roost.p50_ms", ",.2f", "roost.at_least"),
    Column("p99 ms", "roost.p99_ms", ",.2f", "roost.at_least"),
    Column("failed", "roost.failed"),
    Column("upstream claims/s", "upstream.per_second", ",.0f"),
    Column("p50 ms", "upstream.p50_ms", ",.1f", "upstream.at_least"),
    Column("p99 ms", "upstream.p99_ms", ",.1f", "upstream.at_least"),
    Column("failed", "upstream.failed"),
    Column("times as many", "ratio", ",.1f"),
    Column("client µs", "roost.client_us", ",.0f"),
)


class ClaimsRow(msgspec.Struct, frozen=True):
    """The result of one kind of request. ``ratio``: claims per second of Roost, divided by the peer's."""

    work: str
    clients: int
    roost: MeasuredFigures
    upstream: MeasuredFigures | None
    ratio: float | None


class Claims:
    """A source of claims by new consumers on random hosts."""

    def __init__(self, providers: Sequence[str], seed: int) -> None:
        self._providers = providers
        self._rng = np.random.default_rng(seed)

    def bodies(self, count: int) -> list[tuple[str, dict[str, Any]]]:
        """Return uuids of new consumers, each with the body of its PUT."""
        drawn = self._rng.integers(0, len(self._providers), count).tolist()
        return [
            (consumer, claim({self._providers[host]: RESOURCES}))
            for consumer, host in zip(uuids(self._rng, count), drawn, strict=True)
        ]


def claim(allocations: dict[str, dict[str, int]], generation: int | None = None) -> dict[str, Any]:
    """Return the body of a ``PUT /allocations/{consumer}``."""
    return {
        "allocations": {provider: {"resources": amounts} for provider, amounts in allocations.items()},
        "project_id": PROJECT,
        "user_id": USER,
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


def measure(setting: ComparedSetting, store: Store, plan: FleetPlan, clients: Sequence[int]) -> BenchReport:
    """Measure PUT with each number of clients, DELETE of the last claims, and POST.

    Raises:
        BenchError: A service does not start or does not answer.
    """
    roots = plan.roots()
    rows: list[ClaimsRow] = []
    with running_services(setting, store, plan) as entered:
        drawn = {service.name: Claims(roots, seed) for seed, service in enumerate(entered)}
        # For DELETE: the consumers prepared in each round of the last PUT, and the number of them sent.
        sent: dict[str, list[list[str]]] = {service.name: [] for service in entered}
        made: dict[str, Measurement] = {}
        warm = http_request("GET", "/")

        def plans(service: BenchService, requests: list[bytes], clients: int) -> LoadPlan:
            return LoadPlan(
                port=service.port,
                clients=clients,
                requests=requests,
                seconds=setting.seconds,
                warm_up=[warm],
                cyclic=False,
                min_requests=clients,
                timeout=setting.timeout,
            )

        def prepared(service: BenchService) -> int:
            return int(PREPARED[service.name] * max(1.0, setting.seconds))

        def puts(service: BenchService, number: int) -> LoadPlan:
            bodies = drawn[service.name].bodies(prepared(service))
            sent[service.name].append([consumer for consumer, _ in bodies])
            return plans(
                service, [http_request("PUT", f"/allocations/{c}", body) for c, body in bodies], count
            )

        def posts(service: BenchService, number: int) -> LoadPlan:
            bodies = drawn[service.name].bodies(prepared(service))
            batches = [dict(bodies[at : at + POST_SIZE]) for at in range(0, len(bodies), POST_SIZE)]
            return plans(service, [http_request("POST", "/allocations", body) for body in batches], 1)

        def deletes(service: BenchService, number: int) -> LoadPlan:
            consumers = sent[service.name][number][: made[service.name].rounds[number]]
            return plans(
                service, [http_request("DELETE", f"/allocations/{each}") for each in consumers], count
            )

        for count in clients:
            announce(f"claims: {count} clients")
            for each in sent.values():
                each.clear()
            loads = in_turns(entered, puts, setting.rounds)
            made = {service.name: load for service, load in zip(entered, loads, strict=True)}
            rows.append(_row("PUT", count, loads))
        rows.append(_row("DELETE", count, in_turns(entered, deletes, setting.rounds)))
        rows.append(_row(f"POST of {POST_SIZE}", 1, in_turns(entered, posts, setting.rounds), POST_SIZE))
    settings = {**setting.settings(), "database": store.kind, "fleet": str(plan)}
    return report("claims", "Claims, durable when answered", COLUMNS, rows, settings)


def _row(work: str, clients: int, loads: Sequence[Measurement], items: int = 1) -> ClaimsRow:
    ours, *peers = [figures(load, items) for load in loads]
    peer = peers[0] if peers else None
    ratio = ours.per_second / peer.per_second if peer is not None and peer.per_second else None
    return ClaimsRow(work, clients, ours, peer, ratio)
