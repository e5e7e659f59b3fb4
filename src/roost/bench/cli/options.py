"""Options that several commands of ``roost bench`` share, and the output of a report."""

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

from roost.bench.comparison import ComparedSetting
from roost.bench.report import BenchReport, format_cell
from roost.cli.failures import FOUND_WRONG
from roost.cli.numbers import Number, WholeNumber
from roost.cli.output import document_as_json

WIDTH = 200
"""Columns of text in the table if standard output is not a terminal."""

F = TypeVar("F", bound=Callable[..., Any])


def bench_directory() -> Path:
    """Return the default of --dir, the folder of databases and of the peer.

    For root it is outside root's home, to which PostgreSQL's account has no access.
    """
    if os.geteuid() == 0:
        return Path("/var/cache/roost-bench")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "roost" / "bench"


directory = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=bench_directory,
    help=f"Folder of the databases and of the peer.  [default: {bench_directory()}]",
)
database = click.option(
    "--database",
    default="sqlite",
    show_default=True,
    metavar="sqlite|postgresql|URL",
    help="postgresql: a private server with all syncs on; URL: a PostgreSQL server that gets databases.",
)
hosts = click.option(
    "--hosts",
    type=WholeNumber(min=1),
    multiple=True,
    default=(1_000, 10_000),
    show_default=True,
    help="Hosts of the fleet; may be repeated.",
)
output = click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the report as JSON, too."
)


def duration(seconds: float) -> Callable[[F], F]:
    """Return a decorator that adds the option --duration with a default."""
    return click.option(
        "--duration",
        type=Number(min=0, min_open=True),
        default=seconds,
        show_default=True,
        help="Seconds of each round.",
    )


def setting_options(command: F) -> F:
    """Add to a command the options from which `setting` makes a `ComparedSetting`."""
    for option in reversed(
        (
            directory,
            database,
            click.option(
                "--workers",
                type=WholeNumber(1),
                default=1,
                show_default=True,
                help="Worker processes of Roost.",
            ),
            click.option("--peer", is_flag=True, help="Measure OpenStack Placement too, in turns."),
            click.option(
                "--peer-processes",
                type=WholeNumber(1),
                default=2,
                show_default=True,
                help="Worker processes of uwsgi.",
            ),
            click.option(
                "--peer-providers",
                type=WholeNumber(0),
                default=12_000,
                show_default=True,
                help="Providers of the largest fleet on which the peer is measured.",
            ),
            click.option(
                "--rounds",
                type=WholeNumber(1),
                default=2,
                show_default=True,
                help="Rounds of each service.",
            ),
            duration(3.0),
            click.option(
                "--timeout",
                type=Number(min=0, min_open=True),
                default=20.0,
                show_default=True,
                help="Seconds after which an answer is abandoned; its time counts as a lower bound.",
            ),
            output,
            document_as_json,
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
) -> ComparedSetting:
    """Return a `ComparedSetting` with the values of `setting_options`."""
    folder.mkdir(parents=True, exist_ok=True)
    return ComparedSetting(
        folder=folder,
        workers=workers,
        peer=peer,
        peer_processes=peer_processes,
        peer_providers=peer_providers,
        rounds=rounds,
        seconds=duration,
        timeout=timeout,
    )


def show_report(report: BenchReport, as_json: bool, output: Path | None = None) -> None:
    """Print a report and write it to ``output``. Exit with 1 if one of its checks failed."""
    text = msgspec.json.format(msgspec.json.encode(report)).decode()
    if output is not None:
        output.write_text(text + "\n")
    if as_json:
        click.echo(text)
    else:
        print_report(report)
    if report.wrong:
        sys.exit(FOUND_WRONG)


def print_report(report: BenchReport) -> None:
    """Print a report as a table."""
    settings = ", ".join(f"{name} {value}" for name, value in report.settings.items())
    table = Table(title=f"{report.title}: {settings}", title_justify="left", box=box.SIMPLE_HEAD)
    columns = report.visible_columns()
    for column in columns:
        table.add_column(column.title, justify="right", overflow="fold")
    for row in report.rows:
        table.add_row(*(format_cell(row, column) for column in columns))
    # Files and pipes do not wrap lines, so the table need not fit a terminal.
    width = None if sys.stdout.isatty() else WIDTH
    console = Console(markup=False, highlight=False, width=width)
    console.print(table)
    for line in (*report.notes, *(f"WRONG: {each}" for each in report.wrong)):
        console.print(line)
    console.print(", ".join(f"{name} {value}" for name, value in report.machine.items()))
