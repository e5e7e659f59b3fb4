"""Benchmark of the dashboard on a large fleet: pages, first paints, live events, claims beside viewers."""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from roost.bench.dashboard.cloud_databases import cloud_databases, write_decisions
from roost.bench.dashboard.dashboard_process import DashboardProcess
from roost.bench.dashboard.page_views import (
    PAINTED_MAP,
    PAINTED_OVERVIEW,
    SLOWEST,
    TO_EVENT,
    TO_MAP,
    OpenDashboard,
    arrival_rows,
    page_rows,
    paint_rows,
)
from roost.bench.dashboard.watched_claims import BESIDE_ALL, BESIDE_PACE, PAGES_BESIDE_PACE, watched_rows
from roost.bench.fleets import FleetPlan, flat
from roost.bench.goals import Calibration, Goal
from roost.bench.measurement import ComparedSetting, announce
from roost.bench.options import count_option, counts_option, reported
from roost.bench.report import BenchReport, BenchTable, Column
from roost.bench.services import Roost
from roost.bench.store import Store

MOST_PAINTS: Final = 5
"""First paints of each page at most."""


class DashboardLoad(msgspec.Struct, frozen=True):
    """The amounts of a measurement.

    ``views``: of each page, after the first one. ``viewers``: of overview and map, half of them each.
    ``commits``: whose events are waited for. ``decisions``: the number of those that are recorded before.
    """

    views: int = 30
    viewers: int = 50
    commits: int = 20
    decisions: int = 200


def _at_most(view: str, field: str, unit: str, most: float, *runs: float) -> Goal:
    return Goal(
        workload=f"dashboard, up to 100,000 hosts: {view}",
        of={"view": view},
        field=field,
        unit=unit,
        at_most=most,
        calibrations=(Calibration(runs, "SQLite"),),
    )


_CORE: Final = "of a core"

GOALS: Final = (
    _at_most(SLOWEST, "p50_ms", "ms (p50)", 50, 42.1),
    _at_most(SLOWEST, "p99_ms", "ms (p99)", 300, 75.8, 63.7),
    _at_most(PAINTED_OVERVIEW, "wire_kb", "kB", 150, 76.0, 76.0),
    _at_most(PAINTED_MAP, "wire_kb", "kB", 150, 140.8, 140.8),
    _at_most(PAINTED_OVERVIEW, "p50_ms", "ms", 1_000, 44.9, 38.2),
    _at_most(PAINTED_MAP, "p50_ms", "ms", 1_000, 63.8, 53.5),
    _at_most(BESIDE_ALL, "cost", _CORE, 0.1, 0.028, 0.0302),
    _at_most(BESIDE_PACE, "cost", _CORE, 0.1, 0.020, 0.0323),
    _at_most(PAGES_BESIDE_PACE, "cost", _CORE, 0.1, 0.094, 0.104),
    Goal(
        workload=f"dashboard, up to 100,000 hosts: {BESIDE_ALL}",
        of={"view": BESIDE_ALL},
        field="kept",
        unit="of the rate without viewers",
        at_least=0.95,
        calibrations=(Calibration((1.003, 1.0), "SQLite"),),
    ),
    _at_most(TO_EVENT, "most_ms", "ms", 2_000, 945, 912),
    _at_most(TO_MAP, "most_ms", "ms", 2_000, 945, 912),
)
"""Goals of 50 viewers, whose calibrations are runs on 100,000 hosts."""

TABLE: Final = BenchTable(
    "dashboard",
    "Dashboard",
    (
        Column("hosts", "hosts", ","),
        Column("view", "view"),
        Column("first ms", "first_ms", ",.1f"),
        Column("p50 ms", "p50_ms", ",.1f"),
        Column("p99 ms", "p99_ms", ",.1f"),
        Column("longest ms", "most_ms", ",.1f"),
        Column("processor ms", "processor_ms", ",.1f"),
        Column("kB on the wire", "wire_kb", ",.1f"),
        Column("requests", "requests"),
        Column("claims/s", "per_second", ",.0f"),
        Column("without viewers", "per_second_alone", ",.0f"),
        Column("rate kept", "kept", ".1%"),
        Column("share of a core", "share", ".3f"),
        Column("without viewers", "share_alone", ".3f"),
        Column("cost of viewers", "cost", ".3f"),
        Column("events/s", "events_per_second", ",.1f"),
        Column("fetched/s", "fetched_per_second", ",.1f"),
        Column("failed", "failed"),
    ),
    GOALS,
)
"""Each row is a page, a first paint, viewers beside claims, or the way from a commit to its event.

``first_ms``: the first view after the start. ``processor_ms``: the dashboard's processor time of a view, the
median; other work on the machine does not lengthen it. ``wire_kb``: bytes of heads and bodies with gzip. Of a
first paint, times and bytes are sums of all its requests. ``kept``: the rate of claims beside viewers,
divided by that without them. ``share``: the processor time of the dashboard from the first claim until a
second and a half after the last one, divided by the time of the claims; ``cost``: the part of it that there
is not without viewers, when the dashboard follows the commits alone. ``events_per_second`` and
``fetched_per_second``: of all viewers, while they viewed. ``failed``: claims by status.
"""


def measure(
    setting: ComparedSetting, store: Store, plans: Sequence[FleetPlan], load: DashboardLoad
) -> BenchReport:
    """Measure the dashboard on each fleet.

    Raises:
        BenchError: A process does not start, or a page cannot be viewed.
    """
    rows: list[dict[str, Any]] = []
    wrong: list[str] = []
    for plan in plans:
        with open_dashboard(setting, store, plan, load.decisions) as opened:
            found = page_rows(opened, load.views)
            found += paint_rows(opened, min(load.views, MOST_PAINTS))
            found += arrival_rows(opened, load.commits)
            watched, failed = watched_rows(setting, opened, load.viewers)
        rows += [{"hosts": plan.hosts, **row} for row in (*found, *watched)]
        wrong += [f"{plan}: {each}" for each in failed]
    shown = setting.settings(store, views=load.views, viewers=load.viewers, commits=load.commits)
    return TABLE.report(rows, shown, wrong=wrong)


@contextmanager
def open_dashboard(
    setting: ComparedSetting, store: Store, plan: FleetPlan, decisions: int
) -> Iterator[OpenDashboard]:
    """Start placement and the dashboard on a copy of a fleet. Raises `BenchError` if one does not start."""
    announce(f"dashboard: preparing {plan}")
    with ExitStack() as stack:
        database = stack.enter_context(store.copy(plan, "roost"))
        cloud = cloud_databases(plan, setting.folder)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=setting.folder)))
        records = f"sqlite:///{folder / 'records.db'}"
        refused = asyncio.run(write_decisions(database, records, plan, decisions))
        announce(f"dashboard: starting on {plan}")
        claims = stack.enter_context(Roost(setting.folder / "roost.log", database, setting.workers))
        log = setting.folder / "dashboard.log"
        dashboard = stack.enter_context(DashboardProcess(log, database, cloud, records, folder / "dashboard"))
        yield OpenDashboard(plan, claims, dashboard, refused, dashboard.log_in())


@click.command(epilog="Example: roost bench dashboard --hosts 10000 --hosts 100000")
@counts_option("--hosts", (10_000,), "Hosts of the fleet")
@count_option("--views", 30, "Views of each page.")
@count_option("--viewers", 50, "Viewers of the overview and of the map.", least=2)
@count_option("--commits", 20, "Commits whose events are waited for.")
@count_option("--decisions", 200, "Decisions that the pages show.")
@reported(rounds=3, seconds=7.0)
def dashboard(
    setting: ComparedSetting, hosts: tuple[int, ...], views: int, viewers: int, commits: int, decisions: int
) -> BenchReport:
    """Time pages of the dashboard, first paints, live events, and claims beside viewers.

    'roost serve' and 'roost dashboard' are processes on one database of placement. The API database, a cell
    and the records are SQLite files. Exit status: 0 all checks passed, 1 a stream ended or a page could not
    be fetched again, 2 could not run.
    """
    load = DashboardLoad(views, viewers, commits, decisions)
    with setting.store() as store:
        return measure(setting, store, [flat(number) for number in sorted(hosts)], load)
