"""``roost bench overload``."""

from pathlib import Path
from typing import Any

import click

from roost.bench import overload as benchmark
from roost.bench.cli.options import setting, setting_options, show_report
from roost.bench.fleets import wide
from roost.bench.store import open_store
from roost.cli.numbers import WholeNumber


@click.command(epilog="Example: roost bench overload --duration 10 --idle 2000 --silent 200")
@click.option("--hosts", type=WholeNumber(min=1), default=1_000, show_default=True, help="Hosts.")
@click.option("--clients", type=WholeNumber(1), default=16, show_default=True, help="Clients that claim.")
@click.option(
    "--idle", type=WholeNumber(0), default=2_000, show_default=True, help="Connections that do nothing."
)
@click.option(
    "--silent", type=WholeNumber(0), default=200, show_default=True, help="Those that never say a word."
)
@click.option(
    "--flood", type=WholeNumber(1), default=50, show_default=True, help="Clients with expensive queries."
)
@setting_options
def overload(
    hosts: int,
    clients: int,
    idle: int,
    silent: int,
    flood: int,
    folder: Path,
    database: str,
    output: Path | None,
    as_json: bool,
    **rest: Any,
) -> None:
    """Time claims alone, beside idle connections, and beside a flood of the most expensive queries.

    Exit status: 0 all checks passed, 1 usage differs from the claims or memory exceeds the limits, 2 could
    not run.
    """
    chosen = setting(folder, **rest)
    with open_store(folder, database) as store:
        report = benchmark.measure(chosen, store, wide(hosts), clients, idle, silent, flood)
    show_report(report, as_json, output)
