"""Benchmark of claims: allocations of new consumers, answered once the commit is durable."""

from collections.abc import Sequence
from typing import Any, Final

import click
import numpy as np

from roost.bench.fleets import PROJECT, USER, FleetPlan, flat, uuids
from roost.bench.goals import Calibration, Goal
from roost.bench.load_generator import LoadPlan
from roost.bench.measurement import (
    ComparedSetting,
    Measurement,
    announce,
    beside_peer,
    figures,
    http_request,
    in_turns,
    running_services,
)
from roost.bench.options import count_option, counts_option, reported
from roost.bench.report import BenchReport, BenchTable, Column
from roost.bench.services import BenchService
from roost.bench.store import Store

RESOURCES: Final = {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 2}
POST_SIZES: Final = (100, 1_000)
"""Consumers in one POST."""
PREPARED: Final = {"roost": 12_000, "upstream": 1_000, "null": 20_000}
"""Claims that are encoded for each second of a round: more than the service can answer."""

GOALS: Final = (
    Goal(
        workload="claims, 64 clients, one worker",
        of={"work": "PUT", "clients": 64, "workers": 1},
        field="roost.per_second",
        unit="claims/s",
        at_least=5_000,
        calibrations=(
            Calibration((4_253, 4_754, 5_048, 5_036), "SQLite"),
            Calibration((4_745, 4_907, 5_086), "PostgreSQL"),
        ),
    ),
    Goal(
        workload="claims, 64 clients, one worker",
        of={"work": "PUT", "clients": 64, "workers": 1},
        field="roost.p99_ms",
        unit="ms (p99)",
        at_most=40,
        calibrations=(Calibration((27.3,), "SQLite"), Calibration((21.3,), "PostgreSQL")),
    ),
    Goal(
        workload="claims, 64 clients, one worker",
        of={"work": "PUT", "clients": 64, "workers": 1},
        field="ratio",
        unit="times upstream",
        at_least=100,
        calibrations=(Calibration((60.0,), "SQLite"), Calibration((51.7,), "PostgreSQL")),
    ),
    Goal(
        workload="claims, POST of 100",
        of={"work": "POST of 100", "workers": 1},
        field="ratio",
        unit="times upstream",
        at_least=100,
        calibrations=(Calibration((78.1,), "SQLite"), Calibration((98, 99), "PostgreSQL")),
    ),
    Goal(
        workload="claims, POST of 1,000",
        of={"work": "POST of 1,000", "workers": 1},
        field="roost.per_second",
        unit="claims/s",
        at_least=12_000,
        calibrations=(Calibration((11_646, 8_591, 10_554), "PostgreSQL"),),
    ),
)

TABLE: Final = BenchTable(
    "claims",
    "Claims, durable when answered",
    (
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
    ),
    GOALS,
)
"""Each row is one kind of request. ``ratio``: claims per second of Roost, divided by the peer's."""


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

    def puts(self, count: int) -> dict[str, bytes]:
        """Return the encoded PUT of each of ``count`` new consumers."""
        return {
            consumer: http_request("PUT", f"/allocations/{consumer}", body)
            for consumer, body in self.bodies(count)
        }


def prepared(service: BenchService, seconds: float) -> int:
    """Return the number of claims to encode for a round of a service."""
    return int(PREPARED[service.name] * max(1.0, seconds))


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
    rows = []
    with running_services(setting, store, plan) as entered:
        drawn = {service.name: Claims(roots, seed) for seed, service in enumerate(entered)}
        # For DELETE: the consumers prepared in each round of the last PUT, and the number of them sent.
        sent: dict[str, list[list[str]]] = {service.name: [] for service in entered}
        made: dict[str, Measurement] = {}

        def load(service: BenchService, requests: list[bytes], clients: int) -> LoadPlan:
            return setting.load(service, requests, clients, cyclic=False, min_requests=clients)

        def puts(service: BenchService, number: int) -> LoadPlan:
            requests = drawn[service.name].puts(prepared(service, setting.seconds))
            sent[service.name].append([*requests])
            return load(service, [*requests.values()], count)

        def posts(service: BenchService, number: int) -> LoadPlan:
            bodies = drawn[service.name].bodies(prepared(service, setting.seconds))
            batches = [dict(bodies[at : at + size]) for at in range(0, len(bodies), size)]
            return load(service, [http_request("POST", "/allocations", body) for body in batches], 1)

        def deletes(service: BenchService, number: int) -> LoadPlan:
            consumers = sent[service.name][number][: made[service.name].rounds[number]]
            requests = [http_request("DELETE", f"/allocations/{each}") for each in consumers]
            return load(service, requests, count)

        for count in clients:
            announce(f"claims: {count} clients")
            for each in sent.values():
                each.clear()
            loads = in_turns(entered, puts, setting.rounds)
            made = {service.name: load for service, load in zip(entered, loads, strict=True)}
            rows.append(_row("PUT", count, loads))
        rows.append(_row("DELETE", count, in_turns(entered, deletes, setting.rounds)))
        for size in POST_SIZES:
            rows.append(_row(f"POST of {size:,}", 1, in_turns(entered, posts, setting.rounds), size))
    return TABLE.report(rows, setting.settings(store, fleet=str(plan)))


def _row(work: str, clients: int, loads: Sequence[Measurement], items: int = 1) -> dict[str, Any]:
    ours, peer = beside_peer([figures(load, items) for load in loads])
    ratio = ours.per_second / peer.per_second if peer is not None and peer.per_second else None
    return {"work": work, "clients": clients, "roost": ours, "upstream": peer, "ratio": ratio}


@click.command(epilog="Example: roost bench claims --database postgresql --clients 64 --peer")
@count_option("--hosts", 10_000, "Hosts of the fleet.")
@counts_option("--clients", (1, 16, 64), "Connections")
@reported(peer=True, rounds=2, seconds=3.0)
def claims(setting: ComparedSetting, hosts: int, clients: tuple[int, ...]) -> BenchReport:
    """Time claims of new consumers (PUT, POST of 100 and of 1,000) and DELETE, durable when answered."""
    with setting.store() as store:
        return measure(setting, store, flat(hosts), clients)
