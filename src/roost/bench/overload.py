"""Benchmark of overload: steady claims beside idle connections and a flood of the most expensive queries."""

import contextlib
import resource
import selectors
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

import click
from msgspec.structs import replace

from roost.bench.claims import RESOURCES, Claims, prepared
from roost.bench.fleets import PROJECT, FleetPlan, wide
from roost.bench.goals import Calibration, Goal
from roost.bench.measurement import (
    ComparedSetting,
    MeasuredFigures,
    announce,
    figures,
    http_request,
    measured,
    running_services,
)
from roost.bench.options import count_option, reported
from roost.bench.report import BenchReport, BenchTable, Column
from roost.bench.services import BenchService
from roost.bench.store import Store
from roost.web.limits import MIB, Limits

FLOODED: Final = "and a flood"
"""The row of claims beside idle connections and expensive queries."""

GOALS: Final = (
    Goal(
        workload="claims under overload, rate",
        of={"beside": FLOODED},
        field="rate",
        unit="of the rate alone",
        at_least=0.5,
        calibrations=(Calibration((1.02,), "SQLite", "B"),),
    ),
    Goal(
        workload="claims under overload, p99",
        of={"beside": FLOODED},
        field="p99",
        unit="times the p99 alone",
        at_most=3,
        calibrations=(Calibration((2.2,), "SQLite", "B"),),
    ),
)

SPARE_BYTES: Final = 256 * MIB
"""Memory for connections and requests, beyond the memory limits of responses and of expensive queries."""

_LOOK_SECONDS: Final = 0.25
_IDLE_LOOK_SECONDS: Final = 0.1

TABLE: Final = BenchTable(
    "overload",
    "Claims under overload",
    (
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
    ),
    GOALS,
)
"""Each row has the claims of one round, and the load beside them.

``rate`` and ``p99``: multiples of the quiet round's. ``queries``: figures of the flood. ``cut``: idle
connections that the service closed. ``peak_mib``: peak memory of all processes of the service.
"""


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
                quiet = _claims(setting, service, draw, clients)
                rows = [_row("nothing", quiet, peak_mib=memory.mib)]
                with IdleConnections(service.port, idle, silent) as held:
                    announce(f"overload: {idle} idle connections")
                    claims = _claims(setting, service, draw, clients)
                    rows.append(_row("idle connections", claims, quiet, cut=held.cut, peak_mib=memory.mib))
                    announce(f"overload: {flood} clients with expensive queries")
                    with ThreadPoolExecutor(1) as threads:
                        flooding = threads.submit(_flood, setting, service, flood)
                        claims = _claims(setting, service, draw, clients)
                        queries = flooding.result()
                    rows.append(
                        _row(FLOODED, claims, quiet, queries=queries, cut=held.cut, peak_mib=memory.mib)
                    )
            found: list[MeasuredFigures] = [row["claims"] for row in rows]
            claimed = sum(each.requests - sum(each.failed.values()) for each in found)
            unanswered = sum(each.failed.get(name, 0) for each in found for name in ("overdue", "cut off"))
            gained = (_in_use(service) - used) // RESOURCES["VCPU"]
            if gained < claimed or gained > claimed + unanswered:
                wrong.append(f"{claimed:,} claims succeeded, but usage grew by {gained:,}")
            limits = Limits()
            forked = limits.query_processes * limits.query_bytes
            bound = rows[0]["peak_mib"] + (limits.answer_bytes + forked + SPARE_BYTES) / MIB
            if memory.mib > bound:
                wrong.append(f"memory reached {memory.mib:,.0f} MiB; the limits allow {bound:,.0f} MiB")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    settings = setting.settings(
        store, fleet=str(plan), clients=clients, idle=idle, silent=silent, flood=flood
    )
    return TABLE.report(rows, settings, wrong=wrong)


def _row(
    beside: str, claims: MeasuredFigures, quiet: MeasuredFigures | None = None, **more: Any
) -> dict[str, Any]:
    row = {"beside": beside, "claims": claims, **more}
    if quiet is not None:
        row["rate"] = claims.per_second / quiet.per_second
        row["p99"] = claims.p99_ms / quiet.p99_ms
    return row


def _claims(setting: ComparedSetting, service: BenchService, draw: Claims, clients: int) -> MeasuredFigures:
    requests = [*draw.puts(prepared(service, setting.seconds)).values()]
    return figures(measured(setting.load(service, requests, clients, cyclic=False, min_requests=clients)))


def _flood(setting: ComparedSetting, service: BenchService, clients: int) -> MeasuredFigures:
    requests = [http_request("GET", path) for path in expensive_queries(devices=8)]
    # The most expensive queries are still being computed at the end of the round.
    longer = replace(setting, seconds=setting.seconds + 1.0, timeout=max(1.0, setting.seconds))
    return figures(measured(longer.load(service, requests, clients, min_requests=clients, warm_up=[])))


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


class IdleConnections:
    """Holds connections to a port of this machine open, in a thread.

    ``silent``: the number of connections that send nothing. ``cut``: the number of connections that the
    server has closed; they are opened again. The context manager opens and closes the connections.
    """

    def __init__(self, port: int, connections: int, silent: int) -> None:
        self.cut = 0
        self._port = port
        self._selector = selectors.DefaultSelector()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._hold, daemon=True)
        for number in range(connections):
            self._open(number < silent)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            self._close(key.fileobj)
        self._selector.close()

    def _hold(self) -> None:
        while not self._stopping.is_set():
            for key, _ in self._selector.select(_IDLE_LOOK_SECONDS):
                assert isinstance(key.fileobj, socket.socket)
                received = b""
                with contextlib.suppress(OSError):
                    received = key.fileobj.recv(65536)
                if not received:
                    self.cut += 1
                    self._close(key.fileobj)
                    # A server that is stopped accepts no more.
                    with contextlib.suppress(OSError):
                        self._open(key.data)

    def _open(self, silent: bool) -> None:
        connection = socket.create_connection(("127.0.0.1", self._port), 20.0)
        if not silent:
            connection.sendall(http_request("GET", "/"))
        self._selector.register(connection, selectors.EVENT_READ, silent)

    def _close(self, connection: object) -> None:
        assert isinstance(connection, socket.socket)
        self._selector.unregister(connection)
        connection.close()


@click.command(epilog="Example: roost bench overload --duration 10 --idle 2000 --silent 200")
@count_option("--hosts", 1_000, "Hosts.")
@count_option("--clients", 16, "Clients that claim.")
@count_option("--idle", 2_000, "Connections that do nothing.", least=0)
@count_option("--silent", 200, "Those that never say a word.", least=0)
@count_option("--flood", 50, "Clients with expensive queries.")
@reported(peer=True, rounds=2, seconds=3.0)
def overload(
    setting: ComparedSetting, hosts: int, clients: int, idle: int, silent: int, flood: int
) -> BenchReport:
    """Time claims alone, beside idle connections, and beside a flood of the most expensive queries.

    Exit status: 0 all checks passed, 1 usage differs from the claims or memory exceeds the limits, 2 could
    not run.
    """
    with setting.store() as store:
        return measure(setting, store, wide(hosts), clients, idle, silent, flood)
