"""``roost bench metrics``."""

from pathlib import Path

import click

from roost.bench import metrics as benchmark
from roost.bench.cli.options import database, directory, duration, output, show_report
from roost.bench.fleets import flat
from roost.bench.store import open_store
from roost.cli.numbers import WholeNumber
from roost.cli.output import document_as_json


@click.command(epilog="Example: roost bench metrics --rounds 20")
@click.option(
    "--hosts", type=WholeNumber(min=1), default=10_000, show_default=True, help="Hosts of the fleet."
)
@click.option(
    "--clients",
    type=WholeNumber(1),
    multiple=True,
    default=(1, 16),
    show_default=True,
    help="Connections; may be repeated.",
)
@click.option("--rounds", type=WholeNumber(1), default=8, show_default=True, help="Rounds of each service.")
@duration(2.0)
@directory
@database
@output
@document_as_json
def metrics(
    hosts: int,
    clients: tuple[int, ...],
    rounds: int,
    duration: float,
    folder: Path,
    database: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure the processor time of claims and candidates with and without metrics, in turns."""
    folder.mkdir(parents=True, exist_ok=True)
    with open_store(folder, database) as store:
        report = benchmark.measure(folder, store, flat(hosts), clients, rounds, duration)
    show_report(report, as_json, output)
