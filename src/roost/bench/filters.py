"""Benchmark of filtering: the hosts that have capacity and traits for a request, found in three ways.

loop    loads all hosts from the database for each request and filters them in Python
where   filters in the database, by one SQL statement
fleet   filters the fleet's columns in memory by vector operations

The benchmark fails if the three find different hosts.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.bench.fleets import COMMON_TRAITS, FleetPlan, flat
from roost.bench.goals import Calibration, Goal
from roost.bench.measurement import ComparedSetting, announce, median_ms
from roost.bench.options import counts_option, reported
from roost.bench.queries import SIZES
from roost.bench.replay.plot import BLUE, ORANGE, VERMILION, check_plotting
from roost.bench.report import BenchReport, BenchTable, Column
from roost.bench.store import Store
from roost.fleet import Fleet
from roost.fleet.candidates import CandidateSearch
from roost.ledger.load import load
from roost.ledger.tables import allocations, inventories, provider_traits, resource_providers
from roost.model.request import CandidateQuery, RequestGroup, all_of
from roost.model.vocabulary import DISABLED_TRAIT
from roost.storage import Database

REQUIRED: Final = (COMMON_TRAITS[3], COMMON_TRAITS[17])
DISK_GB: Final = 20
MIN_CALLS: Final = 3
"""Requests that are measured in each way at least, however long they take."""

LOOP_RATIO: Final = Goal(
    workload="hosts found by a Python loop, 3,000 hosts",
    unit="times the fleet's time",
    at_least=50,
    calibrations=(Calibration((513, 495, 693, 854, 644, 796), "SQLite", "B"),),
)
WHERE_RATIO: Final = Goal(
    workload="hosts found by SQL WHERE, 3,000 hosts",
    unit="times the fleet's time",
    at_least=10,
    calibrations=(Calibration((175, 139, 241, 167, 221, 207), "SQLite", "B"),),
)
GROWTH: Final = Goal(
    workload="the first ten hosts of 10,000",
    unit="times those of 1,000",
    at_most=8,
    calibrations=(Calibration((1.25, 1.24, 1.15, 1.25, 1.27, 1.25), machine="B"),),
)

TABLE: Final = BenchTable(
    "filters",
    "Hosts that can hold a request, found in three ways",
    (
        Column("hosts", "hosts", ","),
        Column("found", "found", ","),
        Column("Python loop ms", "loop_ms", ",.2f"),
        Column("SQL WHERE ms", "where_ms", ",.2f"),
        Column("fleet ms", "fleet_ms", ",.3f"),
        Column("loop / fleet", "loop_ratio", ",.0f"),
        Column("WHERE / fleet", "where_ratio", ",.0f"),
    ),
)
"""Each row has the median milliseconds of a request in each way.

``found`` counts the hosts for the first flavor.
"""

RATIOS: Final = (WHERE_RATIO, LOOP_RATIO, GROWTH)
"""Goals of each run of the tests: they do not depend on the machine."""


class FilterQuery(msgspec.Struct, frozen=True):
    """A request for hosts: with ids of the database for SQL, and as a query for the fleet.

    ``amounts``: resource class id -> amount. ``required``, ``forbidden``: trait ids.
    """

    amounts: dict[int, int]
    required: tuple[int, ...]
    forbidden: int
    query: CandidateQuery


def host_queries(fleet: Fleet) -> list[FilterQuery]:
    """Return a request for each of `SIZES`."""
    found = []
    for vcpus, memory in SIZES:
        resources = {"VCPU": vcpus, "MEMORY_MB": memory, "DISK_GB": DISK_GB}
        group = RequestGroup(resources, required=all_of(*REQUIRED), forbidden=frozenset((DISABLED_TRAIT,)))
        amounts = {fleet.resource_classes[name]: amount for name, amount in resources.items()}
        required = tuple(fleet.traits[name] for name in REQUIRED)
        found.append(FilterQuery(amounts, required, fleet.traits[DISABLED_TRAIT], CandidateQuery((group,))))
    return found


def find_by_loop(connection: Connection, query: FilterQuery) -> set[str]:
    """Return the uuids of suitable hosts by loading all hosts and a loop over them."""
    held = allocations.c
    used = sa.select(held.provider_id, held.resource_class_id, sa.func.sum(held.used))
    free_by_host: dict[int, dict[int, int]] = {}
    for row in connection.execute(sa.select(inventories)):
        capacity = int((row.total - row.reserved) * row.allocation_ratio)
        free_by_host.setdefault(row.provider_id, {})[row.resource_class_id] = capacity
    for provider, number, amount in connection.execute(
        used.group_by(held.provider_id, held.resource_class_id)
    ):
        free_by_host[provider][number] -= int(amount)
    # Only the traits of the request are loaded, so that the loop is not slower than necessary.
    asked = provider_traits.c.trait_id.in_((*query.required, query.forbidden))
    traits: dict[int, set[int]] = {}
    for provider, trait in connection.execute(sa.select(provider_traits).where(asked)):
        traits.setdefault(provider, set()).add(trait)
    found = set()
    for provider in connection.execute(sa.select(resource_providers.c.id, resource_providers.c.uuid)):
        free = free_by_host.get(provider.id, {})
        has = traits.get(provider.id, set())
        if (
            all(free.get(number, 0) >= amount for number, amount in query.amounts.items())
            and has.issuperset(query.required)
            and query.forbidden not in has
        ):
            found.add(provider.uuid)
    return found


def find_by_where(connection: Connection, query: FilterQuery) -> set[str]:
    """Return the uuids of suitable hosts by one SQL statement."""
    provider = resource_providers.c.id
    statement = sa.select(resource_providers.c.uuid)
    for number, amount in query.amounts.items():
        has, held = inventories.alias(), allocations.alias()
        used = (
            sa.select(sa.func.coalesce(sa.func.sum(held.c.used), 0))
            .where(held.c.provider_id == provider, held.c.resource_class_id == number)
            .scalar_subquery()
        )
        statement = statement.join(
            has, (has.c.provider_id == provider) & (has.c.resource_class_id == number)
        ).where((has.c.total - has.c.reserved) * has.c.allocation_ratio - used >= amount)
    for trait in query.required:
        statement = statement.where(_has_trait(trait))
    return set(connection.execute(statement.where(~_has_trait(query.forbidden))).scalars())


def find_by_fleet(fleet: Fleet, query: FilterQuery) -> set[str]:
    """Return the uuids of suitable hosts from the fleet."""
    return {fleet.uuid(row) for row in CandidateSearch(fleet, query.query).anchors.tolist()}


def measure(store: Store, plans: Sequence[FleetPlan], seconds: float) -> BenchReport:
    """Measure each way for ``seconds`` on each fleet, and compare the hosts that they find.

    Raises:
        StorageError: A database cannot be read.
    """
    rows = []
    wrong: list[str] = []
    for plan in plans:
        announce(f"filters: {plan}")
        work = partial(_row, plan=plan, seconds=seconds, wrong=wrong)
        with store.copy(plan, "roost") as url:
            database = Database(url, read_only=True)
            try:
                rows.append(database.read_now(work))
            finally:
                asyncio.run(database.close())
    return TABLE.report(rows, {"database": store.kind, "seconds": seconds}, wrong=wrong)


def _row(connection: Connection, plan: FleetPlan, seconds: float, wrong: list[str]) -> dict[str, Any]:
    fleet = load(connection)
    queries = host_queries(fleet)
    for query in queries:
        loop, where = find_by_loop(connection, query), find_by_where(connection, query)
        in_memory = find_by_fleet(fleet, query)
        if not loop == where == in_memory:
            wrong.append(f"{plan}: loop {len(loop)}, where {len(where)}, fleet {len(in_memory)} hosts")

    def timed(find: Callable[[FilterQuery], object]) -> float:
        return median_ms(lambda number: find(queries[number % len(queries)]), seconds, MIN_CALLS)

    loop_ms = timed(lambda query: find_by_loop(connection, query))
    where_ms = timed(lambda query: find_by_where(connection, query))
    fleet_ms = timed(lambda query: find_by_fleet(fleet, query))
    return {
        "hosts": plan.hosts,
        "found": len(find_by_fleet(fleet, queries[0])),
        "loop_ms": loop_ms,
        "where_ms": where_ms,
        "fleet_ms": fleet_ms,
        "loop_ratio": loop_ms / fleet_ms,
        "where_ratio": where_ms / fleet_ms,
    }


def _has_trait(trait: int) -> sa.ColumnElement[bool]:
    having = provider_traits.alias()
    return sa.exists().where(having.c.provider_id == resource_providers.c.id, having.c.trait_id == trait)


_WAYS: Final = (
    ("loop_ms", "all hosts loaded, Python loop", VERMILION),
    ("where_ms", "SQL WHERE", ORANGE),
    ("fleet_ms", "Roost's fleet", BLUE),
)


def draw_filters(found: BenchReport, path: Path) -> None:
    """Draw the time of a request in each way over the number of hosts, on logarithmic axes, as a PNG."""
    # Imported here because the import takes as long as that of all other modules.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    hosts = [row["hosts"] for row in found.rows]
    for field, name, colour in _WAYS:
        times = [row[field] for row in found.rows]
        axes.plot(hosts, times, marker="o", color=colour)
        end = (hosts[-1], times[-1])
        axes.annotate(name, end, (0, 6), textcoords="offset points", color=colour, ha="right")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("hosts")
    axes.set_ylabel("ms for a request")
    axes.grid(color="#DDDDDD")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


@click.command(epilog="Example: roost bench filters --hosts 1000 --hosts 100000 --plot filters.png")
@counts_option("--hosts", (100, 1_000, 10_000), "Hosts of the fleet")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="PNG of time against hosts.")
@reported(seconds=1.0)
def filters(setting: ComparedSetting, hosts: tuple[int, ...], plot: Path | None) -> BenchReport:
    """Find hosts by a Python loop over all of them, by SQL WHERE, and by the fleet; compare the answers.

    Exit status: 0 the answers are equal, 1 they differ, 2 could not run.
    """
    if plot is not None:
        check_plotting()
    with setting.store() as store:
        report = measure(store, [flat(number) for number in sorted(hosts)], setting.seconds)
    if plot is not None:
        draw_filters(report, plot)
    return report
