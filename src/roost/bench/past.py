"""Benchmark of the dashboard's past: views as of a time within a day of commits, and the index for them."""

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from roost.bench.bulk_load import bulk_load
from roost.bench.fleets import SEED, FleetPlan, flat
from roost.bench.goals import Calibration, Goal
from roost.bench.measurement import ComparedSetting, announce
from roost.bench.options import count_option, counts_option, reported
from roost.bench.past_history import RATE, add_history
from roost.bench.report import BenchReport, BenchTable, Column
from roost.dashboard.past.index_entries import key_of
from roost.dashboard.past.index_keeper import IndexKeeper, KeeperPace
from roost.dashboard.past.past_moments import ShownMoment
from roost.dashboard.past.past_reads import PastReads
from roost.fleet.host_levels import levels, tree_uses
from roost.ledger import Ledger
from roost.ledger.past_fleet import PastFleet
from roost.storage import Database

DAY: Final = 86_400.0
MOST_BYTES: Final = 2**34
CHECKED_BACK: Final = 2_000
"""Commits that are undone one by one, to compare the views with."""

VIEWS: Final = ("host", "consumer", "map of five minutes", "map of any commit")


def _goal(hosts: int, view: str, at_most: float, runs: tuple[float, ...], machine: str = "B") -> Goal:
    return Goal(
        workload=f"{view} as of a time within a day at {RATE:g} commits/s, {hosts:,} hosts",
        of={"hosts": hosts, "view": view},
        field="p95_ms",
        unit="ms",
        at_most=at_most,
        calibrations=(Calibration(runs, "SQLite", machine),),
    )


GOALS: Final = (
    _goal(10_000, "host", 500, (99.3, 52.4)),
    _goal(10_000, "consumer", 500, (48.1, 25.5)),
    _goal(10_000, "map of five minutes", 500, (540, 143)),
    _goal(10_000, "map of any commit", 3_000, (578, 134)),
    _goal(100_000, "host", 500, (11.1,), "A"),
    _goal(100_000, "consumer", 500, (3.8,), "A"),
    _goal(100_000, "map of five minutes", 500, (177,), "A"),
    _goal(100_000, "map of any commit", 3_000, (157,), "A"),
)

TABLE: Final = BenchTable(
    "past",
    "Views as of a time",
    (
        Column("hosts", "hosts", ","),
        Column("commits", "commits", ","),
        Column("view", "view"),
        Column("p50 ms", "p50_ms", ",.1f"),
        Column("p95 ms", "p95_ms", ",.1f"),
        Column("longest ms", "most_ms", ",.1f"),
        Column("index made s", "made_s", ",.0f"),
        Column("processor s", "processor_s", ",.0f"),
        Column("index MiB", "mib", ",.0f"),
        Column("loop held at most ms", "held_ms", ",.0f"),
    ),
    GOALS,
)
"""Each row is a view, or the making of the index by one core. ``held_ms``: the longest time for which the
event loop was late meanwhile; on a busy machine mostly that of other processes."""


def measure(setting: ComparedSetting, plans: Sequence[FleetPlan], commits: int, views: int) -> BenchReport:
    """Measure views as of random times on each fleet. ``commits``: of the history."""
    setting.folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    wrong: list[str] = []
    for plan in plans:
        file = _database(setting.folder, plan, commits)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(setting.folder / "past-index")
        found, different = asyncio.run(_measure(file, setting.folder / "past-index", plan, commits, views))
        rows += found
        wrong += [f"{plan}: {each}" for each in different]
    return TABLE.report(rows, {"database": "sqlite", "commits/s": RATE}, wrong=tuple(wrong))


def _database(folder: Path, plan: FleetPlan, commits: int) -> Path:
    """Return the file of a fleet with a history, which is made if it is missing."""
    file = folder / f"past_{plan.key}_{commits}.sqlite"
    if file.exists():
        return file
    announce(f"past: the history of {plan}")
    making = folder / "making_past.sqlite"
    for each in folder.glob(f"{making.name}*"):
        each.unlink()
    database = Database(f"sqlite:///{making}")
    bulk_load(database, plan)
    add_history(database, plan, commits)
    asyncio.run(database.close())
    making.rename(file)
    return file


async def _measure(
    file: Path, folder: Path, plan: FleetPlan, commits: int, views: int
) -> tuple[list[dict[str, Any]], list[str]]:
    database = Database(f"sqlite:///{file}")
    ledger = await Ledger.open(database)
    of = {"hosts": plan.hosts, "commits": commits}
    keeper = IndexKeeper(ledger, folder, MOST_BYTES, pace=KeeperPace(share=0.99))
    announce(f"past: the index of {plan}")
    began, used = time.perf_counter(), time.process_time()
    async with _watched() as held:
        keeping = asyncio.create_task(keeper.run())
        while keeper.filling:
            await asyncio.sleep(0.05)
    made = {
        **of,
        "view": "none: the index is made",
        "made_s": time.perf_counter() - began,
        "processor_s": time.process_time() - used,
        "mib": sum(each.stat().st_size for each in folder.glob("*")) / 2**20,
        "held_ms": 1_000 * max(held),
    }
    past = PastReads(ledger, keeper)
    announce(f"past: views of {plan}")
    async with _watched() as held:
        times = await _views(past, plan, views)
    rows = [made, *({**of, "view": view, **_quantiles(found)} for view, found in times.items())]
    rows[-1]["held_ms"] = 1_000 * max(held)
    wrong = await _compare(past, ledger)
    keeping.cancel()
    await asyncio.wait([keeping])
    await keeper.close()
    await ledger.close()
    await database.close()
    return rows, wrong


async def _views(past: PastReads, plan: FleetPlan, views: int) -> dict[str, list[float]]:
    rng = np.random.default_rng(SEED)
    shown = await past.shown(None)
    assert isinstance(shown, ShownMoment)
    newest, oldest = shown.kept.newest_at, max(shown.kept.oldest_at, shown.kept.newest_at - DAY)
    roots, times = plan.roots(), dict[str, list[float]]({view: [] for view in VIEWS})

    async def timed(view: str, work: Callable[[], Awaitable[Any]]) -> Any:
        began = time.perf_counter()
        found = await work()
        times[view].append(time.perf_counter() - began)
        return found

    async def map_at(at: float) -> None:
        moment = await past.moment(f"{at:.3f}")
        columns = await past.columns(moment.version)
        trees = columns.trees("VCPU")
        levels(trees.capacity, trees.used)

    for at in rng.uniform(oldest, newest, views).tolist():
        root = roots[int(rng.integers(len(roots)))]

        async def host(root: str = root, at: float = at) -> Any:
            return await past.host(root, (await past.moment(f"{at:.3f}")).version)

        found = await timed("host", host)
        consumer, version = found.holders[0].consumer.uuid, found.version
        await timed("consumer", lambda: past.consumer(consumer, version))  # noqa: B023
        await timed("map of five minutes", lambda: map_at(at // 300 * 300 + 300))  # noqa: B023
        await timed("map of any commit", lambda: map_at(at))  # noqa: B023
    return times


async def _compare(past: PastReads, ledger: Ledger) -> list[str]:
    """Compare the amounts as of a commit with those of a fleet whose later commits are undone one by one."""
    undone = await PastFleet.open(ledger.database)
    fleet = await undone.at(undone.version - CHECKED_BACK)
    columns = await past.columns(fleet.version)
    wrong = []
    for name in fleet.inventoried_classes():
        uses = tree_uses(fleet, name)
        keys = np.array([key_of(fleet.uuid(row)) for row in uses.roots.tolist()], dtype=np.uint64)
        trees, at = columns.trees(name), columns.places(keys)
        if not np.array_equal(trees.used[at], uses.used) or not np.array_equal(
            trees.capacity[at], uses.capacity
        ):
            wrong.append(f"{name} at commit {fleet.version} is not what undoing the commits gives")
    return wrong


@contextlib.asynccontextmanager
async def _watched() -> AsyncIterator[list[float]]:
    """Record by how many seconds the event loop is late, each millisecond."""
    late = [0.0]

    async def watch() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            late.append(time.perf_counter() - began - 0.001)

    task = asyncio.create_task(watch())
    try:
        yield late
    finally:
        task.cancel()
        await asyncio.wait([task])


def _quantiles(seconds: list[float]) -> dict[str, float]:
    found = 1_000 * np.sort(seconds)
    return {
        "p50_ms": float(found[len(found) // 2]),
        "p95_ms": float(found[int(0.95 * (len(found) - 1))]),
        "most_ms": float(found[-1]),
    }


@click.command(epilog="Example: roost bench past --hosts 10000 --hosts 100000")
@counts_option("--hosts", (10_000,), "Hosts of the fleet")
@count_option(
    "--commits", round(DAY * RATE), "Commits of the history: by default those of a day.", least=4_000
)
@count_option("--views", 50, "Views of each kind.")
@reported(database=False)
def past(setting: ComparedSetting, hosts: tuple[int, ...], commits: int, views: int) -> BenchReport:
    """Show hosts, consumers and the map as of random times of a day, and make the index for them.

    Exit status: 0 the views are what undoing the commits gives, 1 they are not, 2 could not run.
    """
    return measure(setting, [flat(number) for number in sorted(hosts)], commits, views)
