"""Benchmark of a cold start: the time to the first answer, and the memory of the service."""

import time
from collections.abc import Callable, Sequence
from typing import Final

import click

from roost.bench.fleets import FleetPlan, flat, nested
from roost.bench.goals import Calibration, Goal
from roost.bench.measurement import ComparedSetting, announce
from roost.bench.options import hosts, reported, workers
from roost.bench.queries import queries_for
from roost.bench.report import BenchReport, BenchTable, Column
from roost.bench.services import Roost
from roost.bench.store import Store

LIMIT: Final = 10

GOALS: Final = (
    Goal(
        workload="cold start, 100,000 flat hosts",
        of={"fleet": "flat", "providers": 100_000},
        field="listening_s",
        unit="s",
        at_most=5,
        calibrations=(Calibration((4.91, 3.6), "SQLite"),),
    ),
    Goal(
        workload="memory after a start, 100,000 flat hosts",
        of={"fleet": "flat", "providers": 100_000},
        field="resident_mib",
        unit="MiB",
        at_most=300,
        calibrations=(Calibration((222,), "SQLite"),),
    ),
)

TABLE: Final = BenchTable(
    "start",
    "Cold start",
    (
        Column("fleet", "fleet"),
        Column("providers", "providers", ","),
        Column("listening after s", "listening_s", ",.2f"),
        Column("first candidates after s", "first_answer_s", ",.2f"),
        Column("resident MiB", "resident_mib", ",.0f"),
        Column("of these the fleet", "fleet_mib", ",.0f"),
        Column("MiB per 100,000 providers", "mib_per_100000", ",.0f"),
        Column("peak MiB", "peak_mib", ",.0f"),
    ),
    GOALS,
)
"""Each row is one start.

Times are in seconds from the start of the process. ``resident_mib``: memory of all processes.
``peak_mib``: peak memory of the largest one. ``fleet_mib``: the difference to a fleet of one host.
"""


def measure(
    setting: ComparedSetting, store: Store, smallest: FleetPlan, plans: Sequence[FleetPlan]
) -> BenchReport:
    """Start a service on each fleet. ``smallest``: the fleet of one host that memory is compared with.

    Raises:
        BenchError: A service does not start or does not answer.
    """
    bare = _start(setting, store, smallest)[2]
    rows = []
    for plan in plans:
        listening, first, resident, peak = _start(setting, store, plan)
        rows.append(
            {
                "fleet": plan.name,
                "providers": plan.providers,
                "listening_s": listening,
                "first_answer_s": first,
                "resident_mib": resident / 2**20,
                "fleet_mib": max(0, resident - bare) / 2**20,
                "mib_per_100000": max(0, resident - bare) / 2**20 / plan.providers * 100_000,
                "peak_mib": peak / 2**20,
            }
        )
    return TABLE.report(rows, {"database": store.kind, "workers": setting.workers})


def _start(setting: ComparedSetting, store: Store, plan: FleetPlan) -> tuple[float, float, int, int]:
    """Return seconds until the service listens, and until it returns candidates, memory, and peak memory."""
    announce(f"start: {plan}")
    path = next(queries_for(plan)[0].paths(LIMIT))
    with store.copy(plan, "roost") as url:
        service = Roost(setting.folder / "roost.log", url, setting.workers)
        started = time.perf_counter()
        with service:
            service.request("GET", path).raise_for_status()
            first = time.perf_counter() - started
            return service.start_seconds, first, service.resident(), service.peak()


@click.command(epilog="Example: roost bench start --hosts 100000 --database postgresql")
@hosts
@click.option(
    "--fleet", type=click.Choice(["flat", "nested"]), default="flat", show_default=True, help="Kind of fleet."
)
@workers
@reported()
def start(setting: ComparedSetting, hosts: tuple[int, ...], fleet: str) -> BenchReport:
    """Measure the time of a cold start up to the first answer, and the memory of the service."""
    make: Callable[[int], FleetPlan] = {"flat": flat, "nested": nested}[fleet]
    with setting.store() as store:
        return measure(setting, store, make(1), [make(number) for number in hosts])
