"""Benchmark of agents over the wire: the cost of idle hosts, and the rate at which instances are built."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from roost.bench.cloud import TOKEN, Cloud
from roost.bench.errors import BenchError
from roost.bench.progress import announce
from roost.bench.replay import azure
from roost.bench.replay.remote import RemoteReplay, calling
from roost.bench.replay.workload import WorkloadHostTree
from roost.bench.report import BenchReport, Column, report
from roost.web.auth.credentials import FixedCredentials

SHAPE: Final = WorkloadHostTree({"VCPU": 64, "MEMORY_MB": 448 * 1024, "DISK_GB": 4000})
FLAVOR: Final = {"name": "small", "vcpus": 1, "memory_mb": 512}
LOOK_SECONDS: Final = 0.02
SETTLE_SECONDS: Final = 300.0
MOST_AT_ONCE: Final = 100

COLUMNS: Final = (
    Column("hosts", "hosts", ","),
    Column("cells", "cells"),
    Column("TLS", "tls"),
    Column("all up after s", "start_s", ",.1f"),
    Column("idle conductor % of a core", "idle_conductor", ",.1f"),
    Column("idle cells", "idle_cells", ",.1f"),
    Column("idle agents", "idle_agents", ",.1f"),
    Column("accepted to running p50 ms", "p50_ms", ",.0f"),
    Column("p99 ms", "p99_ms", ",.0f"),
    Column("builds/s", "builds_per_second", ",.0f"),
    Column("processor ms of a build", "processor_ms", ",.1f"),
    Column("trace: changes/s", "changes_per_second", ",.0f"),
    Column("processor ms of a change", "change_ms", ",.1f"),
)


class AgentsRow(msgspec.Struct, frozen=True):
    """The result of one cloud.

    ``idle_…``: percent of a core that all processes of a kind use without requests. ``p50_ms`` and
    ``p99_ms``: times until an instance is active, of instances requested one after the other.
    ``builds_per_second``: the rate of many instances requested at once; ``processor_ms``: the processor time
    of conductor, cells and agents for each of them. ``changes_per_second`` and ``change_ms``: the same for
    the placements and departures of a trace.
    """

    hosts: int
    cells: int
    tls: bool
    start_s: float
    idle_conductor: float
    idle_cells: float
    idle_agents: float
    p50_ms: float
    p99_ms: float
    builds_per_second: float
    processor_ms: float
    changes_per_second: float | None = None
    change_ms: float | None = None


def measure(
    folder: Path,
    sizes: Sequence[int],
    cells: int,
    tls: bool,
    idle: float,
    singles: int,
    many: int,
    trace: Path | None = None,
    bins: int | None = None,
) -> BenchReport:
    """Start a cloud of each size in hosts, and measure it.

    ``idle``: seconds without requests. ``singles``: instances requested one after the other; ``many``: at
    once. ``trace``: the folder of the Azure trace, whose first ``bins`` bins are replayed at the end.

    Raises:
        BenchError: A process does not start, or an instance is not built.
        ReplayError: The trace cannot be read or replayed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for hosts in sizes:
        announce(f"agents: {hosts:,} hosts")
        own = Path(tempfile.mkdtemp(prefix="agents-", dir=folder))
        own.chmod(0o755)  # for PostgreSQL's account
        with Cloud(own, hosts, cells, SHAPE, tls) as cloud:
            row = _row(cloud, hosts, cells, tls, idle, singles, many)
            rows.append(row if trace is None else _replayed(cloud, row, trace, bins))
    settings: dict[str, object] = {
        "database": "postgresql, durable",
        "idle": idle,
        "singles": singles,
        "many": many,
    }
    if trace is not None:
        settings["bins"] = "all" if bins is None else bins
    return report("agents", "Agents over the wire", COLUMNS, rows, settings)


def _row(cloud: Cloud, hosts: int, cells: int, tls: bool, idle: float, singles: int, many: int) -> AgentsRow:
    # The scheduler searches for new hosts periodically.
    while _built(cloud, 1)[0] != "active":
        time.sleep(LOOK_SECONDS)
    time.sleep(min(idle, 20.0))
    before = cloud.processor_seconds()
    time.sleep(idle)
    after = cloud.processor_seconds()
    share = {kind: (after[kind] - before[kind]) / idle * 100 for kind in before}
    took = []
    for _ in range(singles):
        began = time.perf_counter()
        _active(cloud, 1)
        took.append((time.perf_counter() - began) * 1000)
    before = cloud.processor_seconds()
    began = time.perf_counter()
    counts = [min(MOST_AT_ONCE, many - first) for first in range(0, many, MOST_AT_ONCE)]
    with ThreadPoolExecutor(max(len(counts), 1)) as pool:
        list(pool.map(lambda count: _active(cloud, count), counts))
    seconds = time.perf_counter() - began
    after = cloud.processor_seconds()
    return AgentsRow(
        hosts=hosts,
        cells=cells,
        tls=tls,
        start_s=cloud.start_seconds,
        idle_conductor=share["conductor"],
        idle_cells=share["cells"],
        idle_agents=share["agents"],
        p50_ms=statistics.median(took),
        p99_ms=sorted(took)[min(len(took) - 1, int(len(took) * 0.99))],
        builds_per_second=many / seconds,
        processor_ms=(sum(after.values()) - sum(before.values())) / many * 1000,
    )


def _replayed(cloud: Cloud, row: AgentsRow, trace: Path, bins: int | None) -> AgentsRow:
    """Return the row with the figures of a replay of a trace."""
    workload = azure.read(trace, bins, row.hosts, SHAPE)

    async def replay() -> tuple[int, float]:
        async with calling(FixedCredentials(cloud.url, TOKEN["x-auth-token"])) as caller:
            summary = await RemoteReplay(workload, caller).run()
        if summary.placed != summary.asked:
            raise BenchError(f"of {summary.asked} instances {summary.asked - summary.placed} are not placed")
        return summary.placed + summary.departures, summary.wall_seconds

    before = cloud.processor_seconds()
    changes, seconds = asyncio.run(replay())
    spent = sum(cloud.processor_seconds().values()) - sum(before.values())
    return msgspec.structs.replace(
        row, changes_per_second=changes / seconds, change_ms=spent / changes * 1000
    )


def _active(cloud: Cloud, count: int) -> None:
    """Build instances. Raises `BenchError` if not all become active."""
    states = _built(cloud, count)
    if set(states) != {"active"}:
        raise BenchError(f"of {count} instances some are not active: {', '.join(sorted(set(states)))}")


def _built(cloud: Cloud, count: int) -> list[str]:
    """Request instances, and return their states once they are settled."""
    asked = cloud.request("POST", "/v1/instances", {"flavor": FLAVOR, "count": count})
    path = f"/v1/instances?request_id={asked['request_id']}&limit={MOST_AT_ONCE}"
    until = time.monotonic() + SETTLE_SECONDS
    while time.monotonic() < until:
        states = [each["state"] for each in cloud.request("GET", path)["instances"]]
        if len(states) == count and set(states) <= {"active", "error"}:
            return states
        time.sleep(LOOK_SECONDS if count == 1 else 10 * LOOK_SECONDS)
    raise BenchError(f"{count} instances are not built after {SETTLE_SECONDS:g} s")
