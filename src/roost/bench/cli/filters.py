"""``roost bench filters``."""

from pathlib import Path

import click

from roost.bench import filters as benchmark
from roost.bench.cli.options import database, directory, duration, output, show_report
from roost.bench.fleets import flat
from roost.bench.plot import draw_filters
from roost.bench.replay.plot import check_plotting
from roost.bench.store import open_store
from roost.cli.numbers import WholeNumber
from roost.cli.output import document_as_json


@click.command(epilog="Example: roost bench filters --hosts 1000 --hosts 100000 --plot filters.png")
@click.option(
    "--hosts",
    type=WholeNumber(min=1),
    multiple=True,
    default=(100, 1_000, 10_000),
    show_default=True,
    help="Hosts of the fleet; may be repeated.",
)
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="PNG of time against hosts.")
@directory
@database
@duration(1.0)
@output
@document_as_json
def filters(
    hosts: tuple[int, ...],
    plot: Path | None,
    folder: Path,
    database: str,
    duration: float,
    output: Path | None,
    as_json: bool,
) -> None:
    """Find hosts by a Python loop over all of them, by SQL WHERE, and by the fleet; compare the answers.

    Exit status: 0 the answers are equal, 1 they differ, 2 could not run.
    """
    if plot is not None:
        check_plotting()
    with open_store(folder, database) as store:
        report = benchmark.measure(store, [flat(number) for number in sorted(hosts)], duration)
    if plot is not None:
        draw_filters(report, plot)
    show_report(report, as_json, output)
