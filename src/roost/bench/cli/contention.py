"""``roost bench contention``."""

from pathlib import Path
from typing import Any

import click

from roost.bench import contention as benchmark
from roost.bench.cli.options import setting, setting_options, show_report
from roost.bench.fleets import nearly_full
from roost.bench.store import open_store
from roost.cli.numbers import WholeNumber


@click.command(epilog="Example: roost bench contention --database postgresql --duration 30 --peer")
@click.option("--hosts", type=WholeNumber(min=1), default=20, show_default=True, help="Nearly full hosts.")
@click.option("--clients", type=WholeNumber(1), default=64, show_default=True, help="Connections.")
@click.option(
    "--claims", type=WholeNumber(1), default=2_000, show_default=True, help="Claims that are sent at most."
)
@setting_options
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
    """Claim from many clients on few hosts until they are full, and check that no capacity is exceeded.

    Each service has one round, which ends with the claims or after --duration. Exit status: 0 all checks
    passed, 1 usage exceeds a host's capacity or differs from the claims, 2 could not run.
    """
    chosen = setting(folder, **rest)
    with open_store(folder, database) as store:
        report = benchmark.measure(chosen, store, nearly_full(hosts), clients, claims)
    show_report(report, as_json, output)
