"""``roost bench claims``."""

from pathlib import Path
from typing import Any

import click

from roost.bench import claims as benchmark
from roost.bench.cli.options import setting, setting_options, show_report
from roost.bench.fleets import flat
from roost.bench.store import open_store
from roost.cli.numbers import WholeNumber


@click.command(epilog="Example: roost bench claims --database postgresql --clients 64 --peer")
@click.option(
    "--hosts", type=WholeNumber(min=1), default=10_000, show_default=True, help="Hosts of the fleet."
)
@click.option(
    "--clients",
    type=WholeNumber(1),
    multiple=True,
    default=(1, 16, 64),
    show_default=True,
    help="Connections; may be repeated.",
)
@setting_options
def claims(
    hosts: int,
    clients: tuple[int, ...],
    folder: Path,
    database: str,
    output: Path | None,
    as_json: bool,
    **rest: Any,
) -> None:
    """Time claims of new consumers (PUT, POST of 100) and DELETE, answered once the commit is durable."""
    chosen = setting(folder, **rest)
    with open_store(folder, database) as store:
        report = benchmark.measure(chosen, store, flat(hosts), clients)
    show_report(report, as_json, output)
