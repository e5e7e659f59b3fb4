"""``roost bench all`` and ``roost bench render``."""

import shutil
import sys
from pathlib import Path

import click

from roost.bench.contest import Setting
from roost.bench.errors import BenchError
from roost.bench.markdown import block, names_in, replaced
from roost.bench.peer import find_peer
from roost.bench.plot import draw_filters
from roost.bench.suite import FULL, QUICK, read, run
from roost.cli.bench.options import directory, print_report
from roost.cli.main import FOUND_WRONG
from roost.replay.plot import check_plotting

FILTERS = "filters"


@click.command("all", epilog="Example: roost bench all --full --peer ./results")
@click.argument("results", type=click.Path(path_type=Path, file_okay=False))
@click.option("--full", is_flag=True, help="All that is quoted: hours. Else some minutes.")
@click.option("--peer", is_flag=True, help="OpenStack Placement too, in turns.")
@click.option("--no-plot", is_flag=True, help="Draw no plot, for which matplotlib is needed.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Of Roost.")
@directory
def all_command(results: Path, full: bool, peer: bool, no_plot: bool, workers: int, folder: Path) -> None:
    """Ask all questions; write each answer as JSON, and a plot, into the folder RESULTS.

    What has a file there already is not measured again: an interrupted run goes on, a new one needs a new
    folder. Exit status: 0 all is well, 1 some answer was wrong, 2 could not run.
    """
    if not no_plot:
        check_plotting()
    extent = FULL if full else QUICK
    folder.mkdir(parents=True, exist_ok=True)
    if peer:
        find_peer(folder)
    setting = Setting(
        folder=folder,
        workers=workers,
        peer=peer,
        rounds=extent.rounds,
        seconds=extent.seconds,
        timeout=extent.timeout,
    )
    wrong = False
    for name, found in run(extent, setting, results):
        print_report(found)
        wrong = wrong or bool(found.wrong)
        if name == FILTERS and not no_plot:
            draw_filters(found, results / "filters.png")
    if wrong:
        sys.exit(FOUND_WRONG)


@click.command(epilog="Example: roost bench render ./results docs/benchmarks.md")
@click.argument("results", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.argument("page", type=click.Path(path_type=Path, dir_okay=False, exists=True))
def render(results: Path, page: Path) -> None:
    """Put the tables and pictures of RESULTS into PAGE, between the comments that name them.

    Exit status: 0 all have been put, 1 the page names reports that are not there, 2 could not run.
    """
    text = page.read_text()
    missing = []
    for name in names_in(text):
        path = results / f"{name}.json"
        if not path.exists():
            missing.append(name)
            continue
        shown = block(read(path))
        picture = results / f"{name}.png"
        if picture.exists():
            (page.parent / "images").mkdir(exist_ok=True)
            shutil.copy(picture, page.parent / "images")
            shown += f"\n\n![{name}](images/{picture.name})"
        text = replaced(text, name, shown)
    if not names_in(text):
        raise BenchError(f"{page} names no reports")
    page.write_text(text)
    if missing:
        click.echo(f"roost: not in {results}: {', '.join(missing)}", err=True)
        sys.exit(FOUND_WRONG)
