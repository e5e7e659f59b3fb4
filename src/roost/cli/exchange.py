"""``roost db import-placement`` and ``roost db export-placement``: to Roost, and back."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from roost.cli.main import FOUND_WRONG
from roost.cli.options import as_json
from roost.exchange import Report, export_placement, import_placement
from roost.exchange.report import Progress as Told
from roost.placement.options import read_options
from roost.storage import Database

_database = click.option(
    "--database", metavar="URL", required=True, help="Roost's database, as in sqlite:///roost.db"
)


@click.command(
    "import-placement",
    epilog="Example: roost db import-placement --from mysql+pymysql://placement@db/placement "
    "--database sqlite:///roost.db",
)
@click.option("--from", "source", metavar="URL", required=True, help="OpenStack Placement's database.")
@_database
@click.option(
    "--config-file", type=click.Path(), help="Placement's configuration: incomplete_consumer_project_id, ..."
)
@as_json
def import_command(source: str, database: str, config_file: str | None, as_json: bool) -> None:
    """Copy a database of OpenStack Placement into an empty one of Roost.

    The source is read in one transaction and not written to. What is copied is committed in portions: if
    it was interrupted, the same command goes on. At the end everything doubtful in the source is listed,
    with what became of it.

    Exit status: 0 all is well, 1 copied, but something is doubtful, 2 could not run.
    """
    incomplete = read_options(config_file)
    opened = Database(source, read_only=True)
    try:
        with _progress("import") as told:
            report = import_placement(opened, database, incomplete, told)
    finally:
        asyncio.run(opened.close())
    _print(report, as_json)


@click.command(
    "export-placement",
    epilog="Example: roost db export-placement --to sqlite:///placement.db --database sqlite:///roost.db",
)
@click.option("--to", "target", metavar="URL", required=True, help="OpenStack Placement's database.")
@_database
@as_json
def export_command(target: str, database: str, as_json: bool) -> None:
    """Write a database that OpenStack Placement 16.0 serves.

    The target is empty (the tables are made), or only 'placement-manage db sync' was run on it. It gets
    everything, or nothing if this is interrupted.

    Exit status: 0 all is well, 1 written, but something is doubtful, 2 could not run.
    """
    opened = Database(database, read_only=True)
    try:
        with _progress("export") as told:
            report = export_placement(opened, target, told)
    finally:
        asyncio.run(opened.close())
    _print(report, as_json)


@contextmanager
def _progress(what: str) -> Iterator[Told]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _print(report: Report, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(report)))
    else:
        console = Console(markup=False, highlight=False)
        counts = Table()
        for name in ("", "copied", "there already"):
            counts.add_column(name, justify="right" if name else "left")
        for name, copied in report.copied.items():
            counts.add_row(name, f"{copied:,}", f"{report.there_already[name]:,}")
        console.print(counts)
        if report.doubts:
            doubts = Table()
            for name in ("kind", "subject", "detail"):
                doubts.add_column(name, overflow="fold")
            for doubt in report.doubts:
                doubts.add_row(doubt.kind, doubt.subject, doubt.detail)
            console.print(doubts)
        click.echo(f"{len(report.doubts)} doubtful thing(s)" if report.doubts else "nothing doubtful")
    if report.doubts:
        sys.exit(FOUND_WRONG)
