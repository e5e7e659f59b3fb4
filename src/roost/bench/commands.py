"""The group ``roost bench``; each command that measures stands in the module of its benchmark."""

import shutil
import sys
from pathlib import Path
from typing import Final

import click

from roost.bench.agents import agents
from roost.bench.candidates import candidates
from roost.bench.claims import claims
from roost.bench.contention import contention
from roost.bench.dashboard.benchmark import dashboard
from roost.bench.decide import decide
from roost.bench.errors import BenchError
from roost.bench.filters import draw_filters, filters
from roost.bench.limits import limits
from roost.bench.maintenance import maintenance
from roost.bench.measurement import ComparedSetting, show_with
from roost.bench.metrics import metrics
from roost.bench.nova.decisions import nova
from roost.bench.nova.feed import nova_feed
from roost.bench.options import directory, workers
from roost.bench.overload import overload
from roost.bench.past import past
from roost.bench.peer import VERSION, find_peer, set_up_peer
from roost.bench.replay.plot import check_plotting
from roost.bench.report import read_report, render_report, replace_report, report_names, show_report
from roost.bench.reshape import reshape
from roost.bench.start import start
from roost.bench.suite import FULL, QUICK, goals_table, run_suite
from roost.cli.command_group import CommandGroup
from roost.cli.failures import FOUND_WRONG
from roost.cli.progress import no_progress, progress

FILTERS: Final = "filters"
GOALS: Final = "goals"
"""The table of a page that is made from the goals and not from results."""


@click.group(cls=CommandGroup, epilog="Example: roost bench candidates --hosts 1000 --hosts 10000 --peer")
@click.pass_context
def bench(context: click.Context) -> None:
    """Measure Roost on fleets that are made once and kept in the bench directory.

    With --peer OpenStack Placement does the same work in turns with Roost, and the ratio is printed; 'roost
    bench peer-setup' installs it. A replay prints figures of its own: see 'roost replay'.
    """
    show_with(context.with_resource(progress("bench")).show)
    context.call_on_close(lambda: show_with(None))


@click.command("all", epilog="Example: roost bench all --full --peer ./results")
@click.argument("results", type=click.Path(path_type=Path, file_okay=False))
@click.option("--full", is_flag=True, help="All figures that are quoted, in hours instead of minutes.")
@click.option("--peer", is_flag=True, help="Measure OpenStack Placement too, in turns.")
@click.option("--no-plot", is_flag=True, help="Draw no plot. A plot needs matplotlib.")
@workers
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
        show_report(report)
        failed = failed or bool(report.wrong)
        if name == FILTERS and not no_plot:
            draw_filters(report, results / "filters.png")
    if failed:
        sys.exit(FOUND_WRONG)


@click.command(epilog="Example: roost bench render ./results docs/benchmarks.md")
@click.argument("results", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.argument("page", type=click.Path(path_type=Path, dir_okay=False, exists=True))
def render(results: Path, page: Path) -> None:
    """Put the tables and plots of RESULTS into PAGE, between the comments with their names; goals as well.

    Exit status: 0 all were put there, 1 RESULTS has not all reports that the page names, 2 could not run.
    """
    text = page.read_text()
    missing = []
    for name in report_names(text):
        if name == GOALS:
            text = replace_report(text, name, goals_table())
            continue
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


@click.command("peer-setup", epilog="Example: roost bench peer-setup")
@directory
def peer_setup(folder: Path) -> None:
    """Install OpenStack Placement at pinned versions into a virtual environment in the bench directory.

    An environment that is there with these versions is kept.
    """
    folder.mkdir(parents=True, exist_ok=True)
    peer = set_up_peer(folder)
    click.echo(f"OpenStack Placement {VERSION} is in {peer.folder}")


COMMANDS = (
    candidates,
    claims,
    contention,
    filters,
    decide,
    start,
    past,
    dashboard,
    limits,
    overload,
    metrics,
    agents,
    reshape,
    maintenance,
    nova,
    nova_feed,
    all_command,
    render,
    peer_setup,
)

for command in COMMANDS:
    bench.add_command(no_progress(command))
