"""Benchmark of decisions: filter, weigh, select, claim and find alternates, in memory and durable."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, get_args

import click
from msgspec.structs import replace

from roost.bench.decisions import measure, measure_durable
from roost.bench.fleets import FleetPlan, devices, flat, nested, pinned
from roost.bench.goals import Calibration, Goal
from roost.bench.measurement import ComparedSetting
from roost.bench.options import count_option, counts_option, hosts, reported
from roost.bench.report import BenchReport, BenchTable, Column
from roost.bench.requests import NEEDED_FLEETS, RequestKind

_PLAIN: Final = {"fleet": "flat", "query": "plain", "instances": 1, "concurrent": 1, "store": "none"}

GOALS: Final = (
    Goal(
        workload="decisions in memory, 5,000 hosts, one by one",
        of={**_PLAIN, "hosts": 5_000, "shapes": "repeated"},
        field="per_second",
        unit="decisions/s",
        at_least=10_000,
        calibrations=(Calibration((8_244,)),),
    ),
    Goal(
        workload="decisions in memory, 5,000 hosts, ten at a time",
        of={**_PLAIN, "hosts": 5_000, "shapes": "repeated", "instances": 10},
        field="per_second",
        unit="decisions/s",
        at_least=10_000,
        calibrations=(Calibration((10_245, 9_963)),),
    ),
    Goal(
        workload="decisions in memory, 100,000 hosts",
        of={**_PLAIN, "hosts": 100_000, "shapes": "repeated"},
        field="per_second",
        unit="decisions/s",
        at_least=4_000,
        calibrations=(Calibration((6_715,)),),
    ),
    Goal(
        workload="a decision in memory, 1,000,000 hosts, flavor seen before",
        of={**_PLAIN, "hosts": 1_000_000, "shapes": "repeated"},
        field="p50_ms",
        unit="ms",
        at_most=1,
        calibrations=(Calibration((0.125,)),),
    ),
    Goal(
        workload="a decision in memory, 1,000,000 hosts, new flavor",
        of={**_PLAIN, "hosts": 1_000_000, "shapes": "fresh"},
        field="p50_ms",
        unit="ms",
        at_most=10,
        calibrations=(Calibration((2.74,)),),
    ),
    Goal(
        workload="durable decisions, 10,000 hosts, 64 at a time",
        of={**_PLAIN, "hosts": 10_000, "shapes": "repeated", "concurrent": 64, "store": "sqlite"},
        field="per_second",
        unit="decisions/s",
        at_least=3_000,
        calibrations=(Calibration((3_912,), "SQLite"),),
    ),
    Goal(
        workload="durable decisions with records, 1,000 hosts, 64 at a time",
        unit="of the rate without",
        at_least=0.9,
        calibrations=(Calibration((0.81, 0.87, 0.82), "SQLite"),),
    ),
    Goal(
        workload="durable decisions beside a refusal a second, 10,000 trees, 8 at a time",
        unit="of the rate without",
        at_least=0.9,
        calibrations=(Calibration((0.93, 0.98), "SQLite"),),
    ),
    Goal(
        workload="durable decisions beside a refusal a second, 10,000 trees, 64 at a time",
        unit="of the rate without",
        at_least=0.9,
        calibrations=(Calibration((0.82,), "SQLite"),),
    ),
    Goal(
        workload="an explained refusal, 10,000 trees, 8 at a time",
        unit="ms",
        at_most=50,
        calibrations=(Calibration((46, 47), "SQLite"),),
    ),
    Goal(
        workload="an explained refusal, 10,000 trees, 64 at a time",
        unit="ms",
        at_most=50,
        calibrations=(Calibration((110,), "SQLite"),),
    ),
)

GROWTH: Final = Goal(
    workload="a decision in memory, flavor seen before, 10,000 hosts",
    unit="times that on 1,000 hosts",
    at_most=6,
    calibrations=(Calibration((0.73, 0.78, 0.93, 0.83, 0.85, 0.82), machine="B"),),
)
"""A goal of each run of the tests: it does not depend on the machine."""

TABLE: Final = BenchTable(
    "decide",
    "Decisions",
    (
        Column("fleet", "fleet"),
        Column("query", "query"),
        Column("size", "size", ","),
        Column("hosts", "hosts", ","),
        Column("shapes", "shapes"),
        Column("instances", "instances", ","),
        Column("store", "store"),
        Column("concurrent", "concurrent", ","),
        Column("p50 ms", "p50_ms", ",.3f"),
        Column("p99 ms", "p99_ms", ",.3f"),
        Column("first ms", "first_ms", ",.2f"),
        Column("processor µs", "processor_us", ",.0f"),
        Column("decisions/s", "per_second", ",.0f"),
    ),
    GOALS,
)
"""Each row is for requests of ``instances`` each, by ``concurrent`` tasks.

``fleet``: the name of the plan. ``size``: members of each group or ignored hosts, 0 for other queries.
Milliseconds are those of a request; ``per_second`` counts instances. ``first_ms``: the time of the first
request, before any equivalence class is cached. ``processor_us``: processor time of all threads of the
scheduler's process for one durable decision; None for decisions in memory.
"""

FLEETS: Final[Mapping[str, Callable[[int], FleetPlan]]] = {
    "flat": flat,
    "nested": nested,
    "pinned": pinned,
    "devices": devices,
}


def report_on(rows: Sequence[Mapping[str, Any]], alternates: int, seconds: float) -> BenchReport:
    """Return the report of measured decisions."""
    table = replace(TABLE, title=f"Decisions with {alternates} alternates each")
    settings = {"seconds": seconds, "alternates": alternates}
    return table.report(rows, settings, _costs_beside(rows))


def _costs_beside(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return notes on the cost of records and refusals for the durable decisions beside them."""
    durable = {
        tuple(row[name] for name in ("fleet", "hosts", "concurrent", "store")): row
        for row in rows
        if row.get("processor_us") is not None
    }
    notes = []
    for (fleet, size, concurrent, store), row in durable.items():
        alone = durable.get((fleet, size, concurrent, store.partition(",")[0]))
        if alone is None or alone is row:
            continue
        rate = row["per_second"] / alone["per_second"]
        notes.append(
            f"{fleet}, {size:,} hosts, {store}, {concurrent} at a time: {rate:.0%} of the rate, "
            f"{row['processor_us'] - alone['processor_us']:+.0f} µs of the processor a decision."
        )
    return notes


@click.command(epilog="Example: roost bench decide --hosts 10000 --fleet nested --query same_subtree")
@hosts
@click.option(
    "--fleet",
    "fleets",
    type=click.Choice(tuple(FLEETS)),
    multiple=True,
    default=("flat",),
    show_default=True,
    help="Hosts of one provider each, or of eleven, with NUMA objects, or with these and PCI devices; "
    "may be repeated.",
)
@click.option(
    "--query",
    "queries",
    type=click.Choice(get_args(RequestKind)),
    multiple=True,
    default=("plain",),
    show_default=True,
    help="What requests have beside a flavor; may be repeated. numa needs a pinned fleet; pci and "
    "numa_pci need one with devices; same_subtree, numa_trees, splittable and split need a nested one.",
)
@count_option("--size", 10, "Members of each group, and ignored hosts of each request.")
@counts_option("--instances", (1, 10), "Instances of a request")
@count_option("--alternates", 2, "Alternates of an instance.", least=0)
@counts_option("--concurrent", (1, 64), "Durable requests at a time")
@click.option(
    "--durable/--no-durable", default=True, show_default=True, help="Measure durable plain decisions, too."
)
@count_option(
    "--turns", 1, "Durable decisions are measured alone, with records and beside refusals in so many turns."
)
@reported(seconds=2.0)
def decide(
    setting: ComparedSetting,
    hosts: tuple[int, ...],
    fleets: tuple[str, ...],
    queries: tuple[RequestKind, ...],
    size: int,
    instances: tuple[int, ...],
    alternates: int,
    concurrent: tuple[int, ...],
    durable: bool,
    turns: int,
) -> BenchReport:
    """Time the scheduler's decisions, in memory and durable."""
    for query in queries:
        needed = NEEDED_FLEETS.get(query)
        if needed is not None and needed not in fleets:
            raise click.UsageError(f"--query {query} needs --fleet {needed}")
    plans = [FLEETS[fleet](number) for fleet in fleets for number in hosts]
    rows = measure(plans, instances, alternates, setting.seconds, queries, size)
    if durable and "plain" in queries:
        with setting.store() as store:
            rows += measure_durable(store, plans, concurrent, alternates, setting.seconds, turns)
    return report_on(rows, alternates, setting.seconds)
