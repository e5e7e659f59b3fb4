"""``roost bench start``."""

from pathlib import Path

import click

from roost.bench import start as question
from roost.bench.contest import Setting
from roost.bench.fleets import flat, nested
from roost.bench.store import open_store
from roost.cli.bench.options import database, directory, hosts, output, show
from roost.cli.options import as_json


@click.command(epilog="Example: roost bench start --hosts 100000 --database postgresql")
@hosts
@click.option(
    "--fleet", type=click.Choice(["flat", "nested"]), default="flat", show_default=True, help="Kind."
)
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Of Roost.")
@directory
@database
@output
@as_json
def start(
    hosts: tuple[int, ...],
    fleet: str,
    workers: int,
    folder: Path,
    database: str,
    output: Path | None,
    as_json: bool,
) -> None:
    """Time a cold start up to the first answer, and weigh the fleet in memory."""
    make = {"flat": flat, "nested": nested}[fleet]
    with open_store(folder, database) as store:
        found = question.measure(
            Setting(folder=folder, workers=workers), store, make(1), [make(number) for number in hosts]
        )
    show(found, as_json, output)
