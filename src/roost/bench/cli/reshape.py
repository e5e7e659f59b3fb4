"""``roost bench reshape``."""

from pathlib import Path

import click

from roost.bench import reshape as benchmark
from roost.bench.cli.options import directory, output, show_report
from roost.cli.numbers import WholeNumber
from roost.cli.output import document_as_json


@click.command(epilog="Example: roost bench reshape --hosts 1000 --together 50")
@click.option("--hosts", type=WholeNumber(1), default=1_000, show_default=True, help="Hosts.")
@click.option(
    "--together", type=WholeNumber(1), default=50, show_default=True, help="Hosts restarted at a time."
)
@click.option("--instances", type=WholeNumber(1), default=2_000, show_default=True, help="Instances on them.")
@directory
@output
@document_as_json
def reshape(
    hosts: int, together: int, instances: int, folder: Path, output: Path | None, as_json: bool
) -> None:
    """Measure reshapes: hosts become trees, some at a time, while their instances run and others are built.

    A conductor, a cell's conductor and agents are processes on a private PostgreSQL server with all syncs on.

    Exit status: 0 done, 2 could not run, or something was lost.
    """
    show_report(benchmark.measure(folder, hosts, together, instances), as_json, output)
