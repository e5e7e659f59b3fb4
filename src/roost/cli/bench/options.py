"""What the commands of ``roost bench`` have in common: options, and how a report is shown."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from roost.bench.contest import Setting
from roost.bench.report import Report, cell
from roost.cli.main import FOUND_WRONG
from roost.cli.options import as_json

WIDTH = 200
"""Of a table that no terminal shows."""

F = TypeVar("F", bound=Callable[..., Any])


def bench_directory() -> Path:
    """Where databases and the peer are kept if nothing else is said.

    Root's own cache cannot be reached by the account that PostgreSQL runs as.
    """
    if os.geteuid() == 0:
        return Path("/var/cache/roost-bench")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roost" / "bench"


directory = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=bench_directory,
    help=f"Databases and the peer are kept here.  [default: {bench_directory()}]",
)
database = click.option(
    "--database",
    default="sqlite",
    show_default=True,
    metavar="sqlite|postgresql|URL",
    help="postgresql: a private server with all syncs on; URL: a PostgreSQL server to make databases on.",
)
hosts = click.option(
    "--hosts",
    type=click.IntRange(min=1),
    multiple=True,
    default=(1_000, 10_000),
    show_default=True,
    help="Size of the fleet; may be repeated.",
)
output = click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write JSON here too."
)


def duration(seconds: float) -> Callable[[F], F]:
    """The option of how long to measure, with its default."""
    return click.option(
        "--duration",
        type=click.FloatRange(min=0, min_open=True),
        default=seconds,
        show_default=True,
        help="Seconds of each turn.",
    )


def contest_options(command: F) -> F:
    """Options of a command that measures services: those of `Setting`, taken apart by `setting`."""
    for option in reversed(
        (
            directory,
            database,
            click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Of Roost."),
            click.option("--peer", is_flag=True, help="OpenStack Placement too, in turns."),
            click.option(
                "--peer-processes", type=click.IntRange(1), default=2, show_default=True, help="Of uwsgi."
            ),
            click.option(
                "--peer-providers",
                type=click.IntRange(0),
                default=12_000,
                show_default=True,
                help="Of the largest fleet that the peer is asked about.",
            ),
            click.option(
                "--rounds", type=click.IntRange(1), default=2, show_default=True, help="Turns of each."
            ),
            duration(3.0),
            click.option(
                "--timeout",
                type=click.FloatRange(min=0, min_open=True),
                default=20.0,
                show_default=True,
                help="Seconds after which an answer is given up and its time taken as a lower bound.",
            ),
            output,
            as_json,
        )
    ):
        command = option(command)
    return command


def setting(
    folder: Path,
    workers: int,
    peer: bool,
    peer_processes: int,
    peer_providers: int,
    rounds: int,
    duration: float,
    timeout: float,
) -> Setting:
    """What `contest_options` were given."""
    folder.mkdir(parents=True, exist_ok=True)
    return Setting(
        folder=folder,
        workers=workers,
        peer=peer,
        peer_processes=peer_processes,
        peer_providers=peer_providers,
        rounds=rounds,
        seconds=duration,
        timeout=timeout,
    )


def show(found: Report, as_json: bool, output: Path | None = None) -> None:
    """Print a report and write it to a file; exit with 1 if it says that something is wrong."""
    text = msgspec.json.format(msgspec.json.encode(found)).decode()
    if output is not None:
        output.write_text(text + "\n")
    if as_json:
        click.echo(text)
    else:
        print_report(found)
    if found.wrong:
        sys.exit(FOUND_WRONG)


def print_report(found: Report) -> None:
    """Print a report as a table."""
    told = ", ".join(f"{name} {value}" for name, value in found.settings.items())
    table = Table(title=f"{found.title}: {told}", title_justify="left", box=box.SIMPLE_HEAD)
    shown = found.shown()
    for column in shown:
        table.add_column(column.title, justify="right", overflow="fold")
    for row in found.rows:
        table.add_row(*(cell(row, column) for column in shown))
    # Nobody folds a table that goes into a file or a pipe.
    width = None if sys.stdout.isatty() else WIDTH
    console = Console(markup=False, highlight=False, width=width)
    console.print(table)
    for line in (*found.notes, *(f"WRONG: {each}" for each in found.wrong)):
        console.print(line)
    console.print(", ".join(f"{name} {value}" for name, value in found.machine.items()))
