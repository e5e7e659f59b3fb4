"""Benchmark of overload: steady claims beside idle connections and a flood of the most expensive queries."""

import resource
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

import msgspec

from roost.bench.claims import PREPARED, RESOURCES, Claims
from roost.bench.comparison import ComparedSetting, running_services
from roost.bench.fleets import PROJECT, FleetPlan
from roost.bench.idle_connections import IdleConnections
from roost.bench.load_generator import LoadPlan
from roost.bench.measurement import MeasuredFigures, Measurement, figures, http_request, run_load
from roost.bench.progress import announce
from roost.bench.report import BenchReport, Column, report
from roost.bench.services import BenchService
from roost.bench.store import Store
from roost.web.limits import MIB, Limits

LEAST_RATE: Final = 0.5
"""Least rate of claims under overload, as a part of the rate in the quiet round."""

MOST_P99: Final = 3.0
"""Most growth of the p99 latency of claims, as a multiple of that in the quiet round."""

SPARE_BYTES: Final = 256 * MIB
"""Memory for connections and requests, beyond the memory limits of responses and of expensive queries."""

_LOOK_SECONDS: Final = 0.25

COLUMNS: Final = (
    Column("claims beside", "beside"),
    Column("claims/s", "claims.per_second", ",.0f"),
    Column("p50 ms", "claims.p50_ms", ",.2f", "claims.at_least"),
    Column("p99 ms", "claims.p99_ms", ",.2f", "claims.at_least"),
    Column("failed", "claims.failed"),
    Column("rate kept", "rate", ".0%"),
    Column("times the p99", "p99", ".1f"),
    Column("queries/s", "queries.per_second", ",.1f"),
    Column("queries failed", "queries.failed"),
    Column("connections cut", "cut", ","),
    Column("peak MiB", "peak_mib", ",.0f"),
)


class OverloadRow(msgspec.Struct, frozen=True):
    """The claims of one round, and the load beside them.

    ``rate`` and ``p99``: multiples of the quiet round's. ``queries``: figures of the flood. ``cut``: idle
    connections that the service closed. ``peak_mib``: peak memory of all processes of the service.
    """

    beside: str
    claims: MeasuredFigures
    rate: float | None = None
    p99: float | None = None
    queries: MeasuredFigures | None = None
    cut: int | None = None
    peak_mib: float = 0.0


def expensive_queries(devices: int) -> list[str]:
    """Return the paths of queries, the most expensive one first: groups on devices, without a limit."""
    paths = []
    for groups, limit in ((6, ""), (3, ""), (6, "&limit=1000")):
        asked = "&".join(f"resources_F{number}=SRIOV_NET_VF:1" for number in range(min(groups, devices)))
        paths.append(
            f"/allocation_candidates?resources=VCPU:1,MEMORY_MB:1024&{asked}&group_policy=none{limit}"
        )
    return paths


def measure(
    setting: ComparedSetting, store: Store, plan: FleetPlan, clients: int, idle: int, silent: int, flood: int
) -> BenchReport:
    """Measure claims alone, then beside idle connections, then also beside a flood of queries.

    ``idle``: the number of idle connections; ``silent`` of them send nothing. ``flood``: the number of
    clients that send the most expensive queries.

    Raises:
        BenchError: The service does not start or does not answer.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    wrong: list[str] = []
    try:
        with running_services(setting, store, plan) as entered:
            service = entered[0]
            draw = Claims(plan.roots(), seed=3)
            used = _in_use(service)
            with _peak_memory(service) as memory:
                announce("overload: quiet")
                quiet = figures(_claims(setting, service, draw, clients))
                rows = [OverloadRow("nothing", quiet, peak_mib=memory.mib)]
                with IdleConnections(service.port, idle, silent) as held:
                    announce(f"overload: {idle} idle connections")
                    rows.append(
                        _row(
                            "idle connections",
                            quiet,
                            figures(_claims(setting, service, draw, clients)),
                            None,
                            held.cut,
                            memory.mib,
                        )
                    )
                    announce(f"overload: {flood} clients with expensive queries")
                    with ThreadPoolExecutor(1) as threads:
                        flooding = threads.submit(_flood, setting, service, flood)
                        claims = figures(_claims(setting, service, draw, clients))
                        queries = figures(flooding.result())
                    rows.append(_row("and a flood", quiet, claims, queries, held.cut, memory.mib))
            claimed = sum(row.claims.requests - sum(row.claims.failed.values()) for row in rows)
            unanswered = sum(
                row.claims.failed.get(name, 0) for row in rows for name in ("overdue", "cut off")
            )
            gained = (_in_use(service) - used) // RESOURCES["VCPU"]
            if gained < claimed or gained > claimed + unanswered:
                wrong.append(f"{claimed:,} claims succeeded, but usage grew by {gained:,}")
            limits = Limits()
            forked = limits.query_processes * limits.query_bytes
            bound = rows[0].peak_mib + (limits.answer_bytes + forked + SPARE_BYTES) / MIB
            if memory.mib > bound:
                wrong.append(f"memory reached {memory.mib:,.0f} MiB; the limits allow {bound:,.0f} MiB")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    settings = {
        **setting.settings(),
        "database": store.kind,
        "fleet": str(plan),
        "clients": clients,
        "idle": idle,
        "silent": silent,
        "flood": flood,
    }
    return report("overload", "Claims under overload", COLUMNS, rows, settings, _notes(rows), wrong)


def _row(
    beside: str,
    quiet: MeasuredFigures,
    claims: MeasuredFigures,
    queries: MeasuredFigures | None,
    cut: int,
    peak_mib: float,
) -> OverloadRow:
    rate = claims.per_second / quiet.per_second
    return OverloadRow(beside, claims, rate, claims.p99_ms / quiet.p99_ms, queries, cut, peak_mib)


def _notes(rows: Sequence[OverloadRow]) -> list[str]:
    last = rows[-1]
    kept = (last.rate or 0.0) >= LEAST_RATE and (last.p99 or 0.0) <= MOST_P99
    aim = f"at least {LEAST_RATE:.0%} of the rate and at most {MOST_P99:g} times the p99 latency"
    return [f"Aim of the last row: {aim}: {'kept' if kept else 'not kept'}."]


def _claims(setting: ComparedSetting, service: BenchService, draw: Claims, clients: int) -> Measurement:
    bodies = draw.bodies(int(PREPARED["roost"] * max(1.0, setting.seconds)))
    load = Measurement()
    load.add(
        run_load(
            LoadPlan(
                port=service.port,
                clients=clients,
                requests=[http_request("PUT", f"/allocations/{uuid}", body) for uuid, body in bodies],
                seconds=setting.seconds,
                warm_up=[http_request("GET", "/")],
                cyclic=False,
                min_requests=clients,
                timeout=setting.timeout,
            )
        )
    )
    return load


def _flood(setting: ComparedSetting, service: BenchService, clients: int) -> Measurement:
    load = Measurement()
    load.add(
        run_load(
            LoadPlan(
                port=service.port,
                clients=clients,
                requests=[http_request("GET", path) for path in expensive_queries(devices=8)],
                seconds=setting.seconds + 1.0,
                min_requests=clients,
                # The most expensive queries are still being computed at the end of the round.
                timeout=max(1.0, setting.seconds),
            )
        )
    )
    return load


def _in_use(service: BenchService) -> int:
    usages = service.request("GET", f"/usages?project_id={PROJECT}").json()["usages"]
    return sum(each.get("VCPU", 0) for each in usages.values())


class _Peak:
    """``mib``: the peak memory so far, in MiB."""

    def __init__(self) -> None:
        self.mib = 0.0


@contextmanager
def _peak_memory(service: BenchService) -> Iterator[_Peak]:
    """Record the peak memory of all processes of a service while the block runs."""
    peak, stop = _Peak(), threading.Event()

    def follow() -> None:
        while not stop.wait(_LOOK_SECONDS):
            peak.mib = max(peak.mib, service.resident() / MIB)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()
