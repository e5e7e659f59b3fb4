"""``roost bench start``."""

from pathlib import Path

import click

from roost.bench import start as benchmark
from roost.bench.cli.options import database, directory, hosts, output, show_report
from roost.bench.comparison import ComparedSetting
from roost.bench.fleets import flat, nested
from roost.bench.store import open_store
from roost.cli.numbers import WholeNumber
from roost.cli.output import document_as_json


@click.command(epilog="Example: roost bench start --hosts 100000 --database postgresql")
@hosts
@click.option(
    "--fleet", type=click.Choice(["flat", "nested"]), default="flat", show_default=True, help="Kind of fleet."
)
@click.option(
    "--workers", type=WholeNumber(1), default=1, show_default=True, help="Worker processes of Roost."
)
@directory
@database
@output
@document_as_json
def start(
    hosts: tuple[int, ...],
    fleet: str,
    workers: int,
    folder: Path,
    database: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure the time of a cold start up to the first answer, and the memory of the service."""
    make = {"flat": flat, "nested": nested}[fleet]
    with open_store(folder, database) as store:
        report = benchmark.measure(
            ComparedSetting(folder=folder, workers=workers),
            store,
            make(1),
            [make(number) for number in hosts],
        )
    show_report(report, as_json, output)
