"""``roost bench filters``."""

from pathlib import Path

import click

from roost.bench import filters as question
from roost.bench.fleets import flat
from roost.bench.plot import draw_filters
from roost.bench.store import open_store
from roost.cli.bench.options import database, directory, duration, output, show
from roost.cli.options import as_json
from roost.replay.plot import check_plotting


@click.command(epilog="Example: roost bench filters --hosts 1000 --hosts 100000 --plot filters.png")
@click.option(
    "--hosts",
    type=click.IntRange(min=1),
    multiple=True,
    default=(100, 1_000, 10_000),
    show_default=True,
    help="Size of the fleet; may be repeated.",
)
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="PNG of time against hosts.")
@directory
@database
@duration(1.0)
@output
@as_json
def filters(
    hosts: tuple[int, ...],
    plot: Path | None,
    folder: Path,
    database: str,
    duration: float,
    output: Path | None,
    as_json: bool,
) -> None:
    """Find hosts by a Python loop over all of them, by SQL WHERE, and on the fleet; compare the answers.

    Exit status: 0 all is well, 1 the answers differ, 2 could not run.
    """
    if plot is not None:
        check_plotting()
    with open_store(folder, database) as store:
        found = question.measure(store, [flat(number) for number in sorted(hosts)], duration)
    if plot is not None:
        draw_filters(found, plot)
    show(found, as_json, output)
