"""The suite of all benchmarks, in a short and in a full form. Each report is a JSON file in one folder.

A step whose file exists is not measured again, so that an interrupted suite continues.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

from msgspec.structs import replace

from roost.bench import (
    agents,
    candidates,
    claims,
    contention,
    decide,
    decisions,
    filters,
    limits,
    overload,
    past,
    start,
)
from roost.bench.dashboard import benchmark as dashboard
from roost.bench.dashboard.benchmark import DashboardLoad
from roost.bench.fleets import flat, nearly_full, nested, wide
from roost.bench.goals import GOAL_TITLES, MACHINES, Goal
from roost.bench.measurement import ComparedSetting, announce
from roost.bench.nova import decisions as nova_decisions
from roost.bench.nova import feed as nova_feed
from roost.bench.replay import azure
from roost.bench.report import BenchReport, markdown_table, read_report
from roost.bench.store import Store, open_store

ALTERNATES: Final = 2


class Extent(NamedTuple):
    """The extent of a suite.

    ``sizes``, ``decided``, ``filtered``: numbers of hosts for HTTP, for decisions and for filters.
    ``limits``: limits of candidate queries. ``dashboard``: the amounts of that benchmark. ``seconds``: the
    length of a round. ``timeout``: seconds after which a response is abandoned.
    """

    sizes: tuple[int, ...]
    decided: tuple[int, ...]
    filtered: tuple[int, ...]
    clients: tuple[int, ...]
    databases: tuple[str, ...]
    limits: tuple[int, ...]
    dashboard: DashboardLoad
    rounds: int
    seconds: float
    timeout: float


QUICK: Final = Extent(
    sizes=(1_000, 10_000),
    decided=(1_000, 10_000),
    filtered=(100, 1_000, 10_000),
    clients=(1, 64),
    databases=("sqlite",),
    limits=(1_000, 10),
    dashboard=DashboardLoad(views=5, commits=5, decisions=50),
    rounds=1,
    seconds=1.0,
    timeout=5.0,
)
FULL: Final = Extent(
    sizes=(1_000, 10_000, 100_000, 1_000_000),
    decided=(1_000, 5_000, 10_000, 100_000, 1_000_000),
    filtered=(100, 1_000, 10_000, 100_000),
    clients=(1, 16, 64),
    databases=("sqlite", "postgresql"),
    limits=(1_000, 10, 0),
    dashboard=DashboardLoad(),
    rounds=3,
    seconds=5.0,
    timeout=300.0,
)


class SuiteStep(NamedTuple):
    """One report of the suite.

    ``name``: of its file. ``database``: the kind of store that it needs. ``measure``: makes the report.
    """

    name: str
    database: str
    measure: Callable[[Store], BenchReport]


def steps(extent: Extent, setting: ComparedSetting) -> Iterator[SuiteStep]:
    """Yield all steps of a suite in order."""
    seconds = extent.seconds
    small = [size for size in extent.sizes if size <= 10_000]
    trees = [nested(size) for size in small] + [wide(10), wide(2, devices=32)]
    limited = [limit for limit in extent.limits if limit]
    decided = [flat(size) for size in extent.decided]
    shown = [size for size in extent.sizes if 10_000 <= size <= 100_000]
    for database in extent.databases:
        yield SuiteStep(
            f"candidates-{database}",
            database,
            lambda store: candidates.measure(
                setting, store, [flat(size) for size in extent.sizes], extent.limits, clients=1
            ),
        )
        yield SuiteStep(
            f"trees-{database}",
            database,
            lambda store: candidates.measure(setting, store, trees, limited, clients=1),
        )
        yield SuiteStep(
            f"claims-{database}",
            database,
            lambda store: claims.measure(setting, store, flat(10_000), extent.clients),
        )
        yield SuiteStep(
            f"contention-{database}",
            database,
            lambda store: contention.measure(
                replace(setting, seconds=10 * seconds), store, nearly_full(20), 64, 2_000
            ),
        )
        yield SuiteStep(
            f"start-{database}",
            database,
            lambda store: start.measure(setting, store, flat(1), [flat(size) for size in extent.sizes]),
        )
        yield SuiteStep(
            f"limits-{database}",
            database,
            lambda store: limits.measure(setting, store, flat(10_000), 64),
        )
        yield SuiteStep(
            f"dashboard-{database}",
            database,
            lambda store: dashboard.measure(setting, store, [flat(size) for size in shown], extent.dashboard),
        )
        yield SuiteStep(
            f"overload-{database}",
            database,
            lambda store: overload.measure(
                setting, store, wide(1_000), clients=16, idle=2_000, silent=200, flood=50
            ),
        )
        yield SuiteStep(
            f"durable-{database}",
            database,
            lambda store: decide.report_on(
                decisions.measure_durable(
                    store, [flat(n) for n in extent.decided], (1, 64), ALTERNATES, seconds
                ),
                ALTERNATES,
                seconds,
            ),
        )
    yield SuiteStep(
        "filters",
        "sqlite",
        lambda store: filters.measure(store, [flat(size) for size in extent.filtered], seconds),
    )
    yield SuiteStep(
        "decide",
        "sqlite",
        lambda _: decide.report_on(
            decisions.measure(decided, (1, 10), ALTERNATES, seconds),
            ALTERNATES,
            seconds,
        ),
    )


def run_suite(extent: Extent, setting: ComparedSetting, results: Path) -> Iterator[tuple[str, BenchReport]]:
    """Measure each step that has no file in ``results``, and yield the reports of all steps.

    Raises:
        BenchError: A step cannot be measured, or a file is not a report.
    """
    results.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        stores: dict[str, Store] = {}
        every = list(steps(extent, setting))
        for number, step in enumerate(every, 1):
            path = results / f"{step.name}.json"
            if not path.exists():
                announce(f"{step.name}, report {number} of {len(every)}")
                if step.database not in stores:
                    stores[step.database] = stack.enter_context(open_store(setting.folder, step.database))
                part = path.with_suffix(".part")
                part.write_text(step.measure(stores[step.database]).as_json())
                part.replace(path)
            yield step.name, read_report(path)


def all_goals() -> list[Goal]:
    """Return the goals of all benchmarks."""
    programs = (candidates, claims, decide, start, past, dashboard, overload, agents)
    modules = (*programs, azure, nova_decisions, nova_feed)
    goals = [goal for module in modules for goal in module.GOALS]
    return [*goals, *filters.RATIOS, decide.GROWTH]


def goals_table() -> str:
    """Return all goals with their calibrations as a Markdown table, and their machines below it."""
    lines = markdown_table(GOAL_TITLES, (line for goal in all_goals() for line in goal.lines()))
    return "\n".join([*lines, "", *(f"- Machine {letter}: {text}." for letter, text in MACHINES.items())])
