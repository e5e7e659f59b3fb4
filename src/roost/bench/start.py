"""Benchmark of a cold start: the time to the first answer, and the memory of the service."""

import time
from collections.abc import Sequence
from typing import Final

import msgspec

from roost.bench.comparison import ComparedSetting
from roost.bench.fleets import FleetPlan
from roost.bench.progress import announce
from roost.bench.queries import queries_for
from roost.bench.report import BenchReport, Column, report
from roost.bench.services import Roost
from roost.bench.store import Store

LIMIT: Final = 10

COLUMNS: Final = (
    Column("fleet", "fleet"),
    Column("providers", "providers", ","),
    Column("listening after s", "listening_s", ",.2f"),
    Column("first candidates after s", "first_answer_s", ",.2f"),
    Column("resident MiB", "resident_mib", ",.0f"),
    Column("of these the fleet", "fleet_mib", ",.0f"),
    Column("MiB per 100,000 providers", "mib_per_100000", ",.0f"),
    Column("peak MiB", "peak_mib", ",.0f"),
)


class StartRow(msgspec.Struct, frozen=True):
    """The result of one start.

    Times are in seconds from the start of the process. ``resident_mib``: memory of all processes.
    ``peak_mib``: peak memory of the largest one. ``fleet_mib``: the difference to a fleet of one host.
    """

    fleet: str
    providers: int
    listening_s: float
    first_answer_s: float
    resident_mib: float
    fleet_mib: float
    mib_per_100000: float
    peak_mib: float


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
            StartRow(
                fleet=plan.name,
                providers=plan.providers,
                listening_s=listening,
                first_answer_s=first,
                resident_mib=resident / 2**20,
                fleet_mib=max(0, resident - bare) / 2**20,
                mib_per_100000=max(0, resident - bare) / 2**20 / plan.providers * 100_000,
                peak_mib=peak / 2**20,
            )
        )
    settings = {"database": store.kind, "workers": setting.workers}
    return report("start", "Cold start", COLUMNS, rows, settings)


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
