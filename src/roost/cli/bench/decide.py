"""``roost bench decide``."""

from pathlib import Path

import click

from roost.bench import decide as benchmark
from roost.bench.fleets import flat
from roost.bench.store import open_store
from roost.cli.bench.options import database, directory, duration, hosts, output, show_report
from roost.cli.options import as_json


@click.command(epilog="Example: roost bench decide --hosts 10000 --instances 1 --instances 100")
@hosts
@click.option(
    "--instances",
    type=click.IntRange(min=1),
    multiple=True,
    default=(1, 10),
    show_default=True,
    help="Instances of a request; may be repeated.",
)
@click.option(
    "--alternates",
    type=click.IntRange(min=0),
    default=2,
    show_default=True,
    help="Alternates of an instance.",
)
@click.option(
    "--concurrent",
    type=click.IntRange(min=1),
    multiple=True,
    default=(1, 64),
    show_default=True,
    help="Durable requests at a time; may be repeated.",
)
@click.option(
    "--durable/--no-durable", default=True, show_default=True, help="Measure durable decisions, too."
)
@duration(2.0)
@directory
@database
@output
@as_json
def decide(
    hosts: tuple[int, ...],
    instances: tuple[int, ...],
    alternates: int,
    concurrent: tuple[int, ...],
    durable: bool,
    duration: float,
    folder: Path,
    database: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Time the scheduler's decisions, in memory and durable."""
    plans = [flat(number) for number in hosts]
    rows = benchmark.measure(plans, instances, alternates, duration)
    if durable:
        with open_store(folder, database) as store:
            rows += benchmark.measure_durable(store, plans, concurrent, alternates, duration)
    show_report(benchmark.report_on(rows, alternates, duration), as_json, output)
