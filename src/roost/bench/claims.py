"""It is mine: allocations written for new consumers, answered once they are durable."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np

from roost.bench.client import Plan
from roost.bench.contest import Setting, in_turns, services, tell
from roost.bench.filling import PROJECT, USER
from roost.bench.fleets import FleetPlan, uuids
from roost.bench.load import Figures, Load, figures, request
from roost.bench.report import Column, Report, report
from roost.bench.services import Service
from roost.bench.store import Store

RESOURCES: Final = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 2}
TOGETHER: Final = 100
"""Consumers of one POST."""
READY: Final = {"roost": 12_000, "upstream": 1_000}
"""Claims that are made ready for each second: more than can be done."""

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


class Row(msgspec.Struct, frozen=True):
    """One kind of work from so many clients; ``ratio``: of claims per second."""

    work: str
    clients: int
    roost: Figures
    upstream: Figures | None
    ratio: float | None


class Claims:
    """Claims of new consumers on hosts drawn at random."""

    def __init__(self, providers: Sequence[str], seed: int) -> None:
        self._providers = providers
        self._rng = np.random.default_rng(seed)

    def bodies(self, count: int) -> list[tuple[str, dict[str, Any]]]:
        """Consumers, each with what its PUT holds."""
        drawn = self._rng.integers(0, len(self._providers), count).tolist()
        return [
            (consumer, claim({self._providers[host]: RESOURCES}))
            for consumer, host in zip(uuids(self._rng, count), drawn, strict=True)
        ]


def claim(allocations: dict[str, dict[str, int]], generation: int | None = None) -> dict[str, Any]:
    """The body of a ``PUT /allocations/{consumer}``."""
    return {
        "allocations": {provider: {"resources": amounts} for provider, amounts in allocations.items()},
        "project_id": PROJECT,
        "user_id": USER,
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


def measure(setting: Setting, store: Store, plan: FleetPlan, clients: Sequence[int]) -> Report:
    """Claim by PUT from each number of clients, by POST, and DELETE what was claimed. Raises `BenchError`."""
    roots = plan.roots()
    rows: list[Row] = []
    with services(setting, store, plan) as entered:
        drawn = {service.name: Claims(roots, seed) for seed, service in enumerate(entered)}
        # Of the last number of clients, by round: what was made ready, and how much of it was sent.
        sent: dict[str, list[list[str]]] = {service.name: [] for service in entered}
        made: dict[str, Load] = {}
        warm = request("GET", "/")

        def plans(service: Service, requests: list[bytes], clients: int) -> Plan:
            return Plan(
                port=service.port,
                clients=clients,
                requests=requests,
                seconds=setting.seconds,
                warm=[warm],
                over_again=False,
                least=clients,
                timeout=setting.timeout,
            )

        def ready(service: Service) -> int:
            return int(READY[service.name] * max(1.0, setting.seconds))

        def puts(service: Service, number: int) -> Plan:
            bodies = drawn[service.name].bodies(ready(service))
            sent[service.name].append([consumer for consumer, _ in bodies])
            return plans(service, [request("PUT", f"/allocations/{c}", body) for c, body in bodies], count)

        def posts(service: Service, number: int) -> Plan:
            bodies = drawn[service.name].bodies(ready(service))
            together = [dict(bodies[at : at + TOGETHER]) for at in range(0, len(bodies), TOGETHER)]
            return plans(service, [request("POST", "/allocations", body) for body in together], 1)

        def deletes(service: Service, number: int) -> Plan:
            consumers = sent[service.name][number][: made[service.name].rounds[number]]
            return plans(service, [request("DELETE", f"/allocations/{each}") for each in consumers], count)

        for count in clients:
            tell(f"claims: {count} clients")
            for each in sent.values():
                each.clear()
            loads = in_turns(entered, puts, setting.rounds)
            made = {service.name: load for service, load in zip(entered, loads, strict=True)}
            rows.append(_row("PUT", count, loads))
        rows.append(_row("DELETE", count, in_turns(entered, deletes, setting.rounds)))
        rows.append(_row(f"POST of {TOGETHER}", 1, in_turns(entered, posts, setting.rounds), TOGETHER))
    settings = {**setting.settings(), "database": store.kind, "fleet": str(plan)}
    return report("claims", "Claims, durable when answered", COLUMNS, rows, settings)


def _row(work: str, clients: int, loads: Sequence[Load], items: int = 1) -> Row:
    ours, *peers = [figures(load, items) for load in loads]
    peer = peers[0] if peers else None
    ratio = ours.per_second / peer.per_second if peer is not None and peer.per_second else None
    return Row(work, clients, ours, peer, ratio)
