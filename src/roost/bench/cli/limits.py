"""``roost bench limits``."""

from pathlib import Path

import click

from roost.bench import limits as benchmark
from roost.bench.cli.options import database, directory, duration, output, show_report
from roost.bench.comparison import ComparedSetting
from roost.bench.fleets import flat
from roost.bench.store import open_store
from roost.cli.numbers import WholeNumber
from roost.cli.output import document_as_json


@click.command(epilog="Example: roost bench limits --hosts 100000 --database postgresql")
@click.option(
    "--hosts", type=WholeNumber(min=1), default=10_000, show_default=True, help="Hosts of the fleet."
)
@click.option("--clients", type=WholeNumber(1), default=64, show_default=True, help="Clients that claim.")
@click.option(
    "--workers", type=WholeNumber(1), default=1, show_default=True, help="Worker processes of Roost."
)
@click.option("--rounds", type=WholeNumber(1), default=2, show_default=True, help="Rounds of each service.")
@directory
@database
@duration(1.0)
@output
@document_as_json
def limits(
    hosts: int,
    clients: int,
    workers: int,
    rounds: int,
    folder: Path,
    database: str,
    duration: float,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure what this machine allows for the same work, and the share of it that Roost reaches."""
    chosen = ComparedSetting(folder=folder, workers=workers, rounds=rounds, seconds=duration)
    with open_store(folder, database) as store:
        report = benchmark.measure(chosen, store, flat(hosts), clients)
    show_report(report, as_json, output)
