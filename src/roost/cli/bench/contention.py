"""``roost bench contention``."""

from pathlib import Path
from typing import Any

import click

from roost.bench import contention as question
from roost.bench.fleets import nearly_full
from roost.bench.store import open_store
from roost.cli.bench.options import contest_options, setting, show


@click.command(epilog="Example: roost bench contention --database postgresql --duration 30 --peer")
@click.option("--hosts", type=click.IntRange(min=1), default=20, show_default=True, help="Nearly full ones.")
@click.option("--clients", type=click.IntRange(1), default=64, show_default=True, help="Connections.")
@click.option("--claims", type=click.IntRange(1), default=2_000, show_default=True, help="Tried at most.")
@contest_options
def contention(
    hosts: int,
    clients: int,
    claims: int,
    folder: Path,
    database: str,
    output: Path | None,
    as_json: bool,
    **rest: Any,
) -> None:
    """Claim from many clients on few hosts until they are full; see that they are not fuller.

    One turn each, which ends with the claims or after --duration. Exit status: 0 all is well, 1 a host
    holds more than it has or a claim is not accounted for, 2 could not run.
    """
    chosen = setting(folder, **rest)
    with open_store(folder, database) as store:
        found = question.measure(chosen, store, nearly_full(hosts), clients, claims)
    show(found, as_json, output)
