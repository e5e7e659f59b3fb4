"""``roost bench decide``."""

from pathlib import Path
from typing import get_args

import click

from roost.bench import decide as benchmark
from roost.bench.cli.options import database, directory, duration, hosts, output, show_report
from roost.bench.fleets import devices, flat, nested, pinned
from roost.bench.requests import NEEDED_FLEETS, RequestKind
from roost.bench.store import open_store
from roost.cli.numbers import WholeNumber
from roost.cli.output import document_as_json

FLEETS = {"flat": flat, "nested": nested, "pinned": pinned, "devices": devices}


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
@click.option(
    "--size",
    type=WholeNumber(min=1),
    default=10,
    show_default=True,
    help="Members of each group, and ignored hosts of each request.",
)
@click.option(
    "--instances",
    type=WholeNumber(min=1),
    multiple=True,
    default=(1, 10),
    show_default=True,
    help="Instances of a request; may be repeated.",
)
@click.option(
    "--alternates",
    type=WholeNumber(min=0),
    default=2,
    show_default=True,
    help="Alternates of an instance.",
)
@click.option(
    "--concurrent",
    type=WholeNumber(min=1),
    multiple=True,
    default=(1, 64),
    show_default=True,
    help="Durable requests at a time; may be repeated.",
)
@click.option(
    "--durable/--no-durable", default=True, show_default=True, help="Measure durable plain decisions, too."
)
@click.option(
    "--turns",
    type=WholeNumber(min=1),
    default=1,
    show_default=True,
    help="Durable decisions are measured alone, with records and beside refusals in so many turns.",
)
@duration(2.0)
@directory
@database
@output
@document_as_json
def decide(
    hosts: tuple[int, ...],
    fleets: tuple[str, ...],
    queries: tuple[RequestKind, ...],
    size: int,
    instances: tuple[int, ...],
    alternates: int,
    concurrent: tuple[int, ...],
    durable: bool,
    turns: int,
    duration: float,
    folder: Path,
    database: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Time the scheduler's decisions, in memory and durable."""
    for query in queries:
        needed = NEEDED_FLEETS.get(query)
        if needed is not None and needed not in fleets:
            raise click.UsageError(f"--query {query} needs --fleet {needed}")
    plans = [FLEETS[fleet](number) for fleet in fleets for number in hosts]
    rows = benchmark.measure(plans, instances, alternates, duration, queries, size)
    if durable and "plain" in queries:
        with open_store(folder, database) as store:
            rows += benchmark.measure_durable(store, plans, concurrent, alternates, duration, turns)
    show_report(benchmark.report_on(rows, alternates, duration), as_json, output)
