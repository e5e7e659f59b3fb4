"""``roost bench all`` and ``roost bench render``."""

import shutil
import sys
from pathlib import Path

import click

from roost.bench.cli.options import directory, print_report
from roost.bench.comparison import ComparedSetting
from roost.bench.errors import BenchError
from roost.bench.markdown import render_report, replace_report, report_names
from roost.bench.peer import find_peer
from roost.bench.plot import draw_filters
from roost.bench.replay.plot import check_plotting
from roost.bench.suite import FULL, QUICK, read_report, run_suite
from roost.cli.failures import FOUND_WRONG
from roost.cli.numbers import WholeNumber

FILTERS = "filters"


@click.command("all", epilog="Example: roost bench all --full --peer ./results")
@click.argument("results", type=click.Path(path_type=Path, file_okay=False))
@click.option("--full", is_flag=True, help="All figures that are quoted, in hours instead of minutes.")
@click.option("--peer", is_flag=True, help="Measure OpenStack Placement too, in turns.")
@click.option("--no-plot", is_flag=True, help="Draw no plot. A plot needs matplotlib.")
@click.option(
    "--workers", type=WholeNumber(1), default=1, show_default=True, help="Worker processes of Roost."
)
@directory
def all_command(results: Path, full: bool, peer: bool, no_plot: bool, workers: int, folder: Path) -> None:
    """Run all benchmarks; write each report as JSON, and a plot, into the folder RESULTS.

    A report that is there already is not measured again: an interrupted run continues, a new run needs a new
    folder. Exit status: 0 all checks passed, 1 a check failed, 2 could not run.
    """
    if not no_plot:
        check_plotting()
    extent = FULL if full else QUICK
    folder.mkdir(parents=True, exist_ok=True)
    if peer:
        find_peer(folder)
    setting = ComparedSetting(
        folder=folder,
        workers=workers,
        peer=peer,
        rounds=extent.rounds,
        seconds=extent.seconds,
        timeout=extent.timeout,
    )
    failed = False
    for name, report in run_suite(extent, setting, results):
        print_report(report)
        failed = failed or bool(report.wrong)
        if name == FILTERS and not no_plot:
            draw_filters(report, results / "filters.png")
    if failed:
        sys.exit(FOUND_WRONG)


@click.command(epilog="Example: roost bench render ./results docs/benchmarks.md")
@click.argument("results", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.argument("page", type=click.Path(path_type=Path, dir_okay=False, exists=True))
def render(results: Path, page: Path) -> None:
    """Put the tables and plots of RESULTS into PAGE, between the comments with their names.

    Exit status: 0 all were put there, 1 RESULTS has not all reports that the page names, 2 could not run.
    """
    text = page.read_text()
    missing = []
    for name in report_names(text):
        path = results / f"{name}.json"
        if not path.exists():
            missing.append(name)
            continue
        shown = render_report(read_report(path))
        plot = results / f"{name}.png"
        if plot.exists():
            (page.parent / "images").mkdir(exist_ok=True)
            shutil.copy(plot, page.parent / "images")
            shown += f"\n\n![{name}](images/{plot.name})"
        text = replace_report(text, name, shown)
    if not report_names(text):
        raise BenchError(f"{page} names no reports")
    page.write_text(text)
    if missing:
        click.echo(f"roost: not in {results}: {', '.join(missing)}", err=True)
        sys.exit(FOUND_WRONG)
