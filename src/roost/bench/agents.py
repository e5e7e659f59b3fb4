"""Benchmark of agents over the wire: the cost of idle hosts, and the rate at which instances are built."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import click

from roost.bench.cloud import SHAPE, TOKEN, Cloud, cloud_folder
from roost.bench.errors import BenchError
from roost.bench.goals import Calibration, Goal
from roost.bench.measurement import ComparedSetting, announce, percentiles_ms
from roost.bench.options import count_option, counts_option, reported
from roost.bench.replay import azure
from roost.bench.replay.remote import RemoteReplay, calling
from roost.bench.report import BenchReport, BenchTable, Column
from roost.cli.numbers import Number, WholeNumber
from roost.web.auth.credentials import FixedCredentials

FLAVOR: Final = {"name": "small", "vcpus": 1, "memory_mb": 512}
LOOK_SECONDS: Final = 0.02
MOST_AT_ONCE: Final = 100

GOALS: Final = (
    Goal(
        workload="an idle cell of 1,000 agents over HTTPS",
        of={"hosts": 1_000, "cells": 1, "tls": True},
        field="idle_cells",
        unit="% of a core",
        at_most=5,
        calibrations=(Calibration((2.43,), "PostgreSQL"),),
    ),
    Goal(
        workload="the Azure trace through separate processes, 12 bins",
        of={"hosts": 820, "cells": 3, "tls": False, "bins": 12},
        field="changes_per_second",
        unit="changes/s",
        at_least=1_000,
        calibrations=(Calibration((270, 220, 206), "PostgreSQL"),),
    ),
)

TABLE: Final = BenchTable(
    "agents",
    "Agents over the wire",
    (
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
    ),
    GOALS,
)
"""Each row is one cloud.

``idle_…``: percent of a core that all processes of a kind use without requests. ``p50_ms`` and
``p99_ms``: times from the acceptance of an instance until it is active, by its history, of instances
requested one after the other.
``builds_per_second``: the rate of many instances requested at once; ``processor_ms``: the processor time
of conductor, cells and agents for each of them. ``changes_per_second`` and ``change_ms``: the same for
the placements and departures of a trace.
"""


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
    rows = []
    for hosts in sizes:
        announce(f"agents: {hosts:,} hosts")
        with Cloud(cloud_folder(folder, "agents"), hosts, cells, tls) as cloud:
            row = _row(cloud, hosts, cells, tls, idle, singles, many)
            if trace is not None:
                row |= _replayed(cloud, hosts, trace, bins)
            rows.append(row)
    settings: dict[str, object] = {
        "database": "postgresql, durable",
        "idle": idle,
        "singles": singles,
        "many": many,
    }
    if trace is not None:
        settings["bins"] = "all" if bins is None else bins
    return TABLE.report(rows, settings)


def _row(
    cloud: Cloud, hosts: int, cells: int, tls: bool, idle: float, singles: int, many: int
) -> dict[str, Any]:
    # The scheduler searches for new hosts periodically.
    while set(_built(cloud, 1).values()) != {"active"}:
        time.sleep(LOOK_SECONDS)
    time.sleep(min(idle, 20.0))
    before = cloud.processor_seconds()
    time.sleep(idle)
    after = cloud.processor_seconds()
    share = {kind: (after[kind] - before[kind]) / idle * 100 for kind in before}
    took = [_build_seconds(cloud) for _ in range(singles)]
    before = cloud.processor_seconds()
    began = time.perf_counter()
    counts = [min(MOST_AT_ONCE, many - first) for first in range(0, many, MOST_AT_ONCE)]
    with ThreadPoolExecutor(max(len(counts), 1)) as pool:
        list(pool.map(lambda count: _active(cloud, count), counts))
    seconds = time.perf_counter() - began
    after = cloud.processor_seconds()
    p50, p99 = percentiles_ms(took)
    return {
        "hosts": hosts,
        "cells": cells,
        "tls": tls,
        "start_s": cloud.start_seconds,
        "idle_conductor": share["conductor"],
        "idle_cells": share["cells"],
        "idle_agents": share["agents"],
        "p50_ms": p50,
        "p99_ms": p99,
        "builds_per_second": many / seconds,
        "processor_ms": (sum(after.values()) - sum(before.values())) / many * 1000,
    }


def _replayed(cloud: Cloud, hosts: int, trace: Path, bins: int | None) -> dict[str, float]:
    """Return the figures of a replay of a trace."""
    workload = azure.read(trace, bins, hosts, SHAPE)

    async def replay() -> tuple[int, float]:
        async with calling(FixedCredentials(cloud.url, TOKEN["x-auth-token"])) as caller:
            summary = await RemoteReplay(workload, caller).run()
        if summary.placed != summary.asked:
            raise BenchError(f"of {summary.asked} instances {summary.asked - summary.placed} are not placed")
        return summary.placed + summary.departures, summary.wall_seconds

    before = cloud.processor_seconds()
    changes, seconds = asyncio.run(replay())
    spent = sum(cloud.processor_seconds().values()) - sum(before.values())
    return {"changes_per_second": changes / seconds, "change_ms": spent / changes * 1000}


def _active(cloud: Cloud, count: int) -> None:
    """Build instances. Raises `BenchError` if not all become active."""
    states = set(_built(cloud, count).values())
    if states != {"active"}:
        raise BenchError(f"of {count} instances some are not active: {', '.join(sorted(states))}")


def _build_seconds(cloud: Cloud) -> float:
    """Build one instance, and return the time that this took by its history. Raises `BenchError`."""
    [(uuid, state)] = _built(cloud, 1).items()
    if state != "active":
        raise BenchError(f"an instance is not active: {state}")
    [creation, *_] = cloud.request("GET", f"/v1/instances/{uuid}/history")["actions"]
    seconds: float = creation["finished_at"] - creation["started_at"]
    return seconds


def _built(cloud: Cloud, count: int) -> dict[str, str]:
    """Build instances, and return the state of each."""
    return cloud.build(FLAVOR, count, LOOK_SECONDS if count == 1 else 10 * LOOK_SECONDS)


@click.command(epilog="Example: roost bench agents --hosts 1000 --idle 60")
@counts_option("--hosts", (1_000,), "Hosts")
@count_option("--cells", 1, "Cells.")
@click.option("--tls/--no-tls", default=True, show_default=True, help="Agents reach their cells by HTTPS.")
@click.option("--idle", type=Number(1), default=60.0, show_default=True, help="Seconds without requests.")
@count_option("--singles", 20, "Instances one after the other.")
@count_option("--many", 300, "Instances at once.")
@click.option("--trace", type=click.Path(path_type=Path), help="Then replay the Azure trace in this folder.")
@click.option("--bins", type=WholeNumber(1), help="Only its first N bins.")
@reported(database=False)
def agents(
    setting: ComparedSetting,
    hosts: tuple[int, ...],
    cells: int,
    tls: bool,
    idle: float,
    singles: int,
    many: int,
    trace: Path | None,
    bins: int | None,
) -> BenchReport:
    """Measure agents over the wire: a conductor, cells and agents as processes on a PostgreSQL server.

    The server is a private one, with all syncs on.

    Exit status: 0 done, 2 could not run.
    """
    return measure(setting.folder, hosts, cells, tls, idle, singles, many, trace, bins)
