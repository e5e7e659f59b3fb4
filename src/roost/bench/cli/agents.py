"""``roost bench agents``."""

from pathlib import Path

import click

from roost.bench import agents as benchmark
from roost.bench.cli.options import directory, output, show_report
from roost.cli.numbers import Number, WholeNumber
from roost.cli.output import document_as_json


@click.command(epilog="Example: roost bench agents --hosts 1000 --idle 60")
@click.option(
    "--hosts", type=WholeNumber(1), multiple=True, default=(1_000,), show_default=True, help="Hosts."
)
@click.option("--cells", type=WholeNumber(1), default=1, show_default=True, help="Cells.")
@click.option("--tls/--no-tls", default=True, show_default=True, help="Agents reach their cells by HTTPS.")
@click.option("--idle", type=Number(1), default=60.0, show_default=True, help="Seconds without requests.")
@click.option(
    "--singles", type=WholeNumber(1), default=20, show_default=True, help="Instances one after the other."
)
@click.option("--many", type=WholeNumber(1), default=300, show_default=True, help="Instances at once.")
@click.option("--trace", type=click.Path(path_type=Path), help="Then replay the Azure trace in this folder.")
@click.option("--bins", type=WholeNumber(1), help="Only its first N bins.")
@directory
@output
@document_as_json
def agents(
    hosts: tuple[int, ...],
    cells: int,
    tls: bool,
    idle: float,
    singles: int,
    many: int,
    trace: Path | None,
    bins: int | None,
    folder: Path,
    output: Path | None,
    as_json: bool,
) -> None:
    """Measure agents over the wire: a conductor, cells and agents as processes on a PostgreSQL server.

    The server is a private one, with all syncs on.

    Exit status: 0 done, 2 could not run.
    """
    report = benchmark.measure(folder, hosts, cells, tls, idle, singles, many, trace, bins)
    show_report(report, as_json, output)
