"""``roost db import-placement`` and ``roost db export-placement``."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from roost.cli.configuration import warn_of_options
from roost.cli.main import FOUND_WRONG
from roost.cli.options import as_json
from roost.exchange import Report, export_placement, import_placement
from roost.exchange.report import Progress as ProgressCallback
from roost.placement.options import read_options
from roost.storage import PATIENT_SECONDS, Database

_database = click.option(
    "--database", metavar="URL", required=True, help="Database of Roost, for example sqlite:///roost.db"
)


@click.command(
    "import-placement",
    epilog="Example: roost db import-placement --from mysql+pymysql://placement@db/placement "
    "--database sqlite:///roost.db",
)
@click.option("--from", "source", metavar="URL", required=True, help="Database of OpenStack Placement.")
@_database
@click.option(
    "--config-file",
    type=click.Path(),
    help="Configuration file of Placement, for its options incomplete_consumer_*.",
)
@as_json
def import_command(source: str, database: str, config_file: str | None, as_json: bool) -> None:
    """Copy a database of OpenStack Placement into an empty database of Roost.

    The source is read in one transaction and is not changed. The copy is committed in parts: after an
    interruption, run the same command again. At the end the command lists the anomalies of the source, each
    with whether it was kept or left out.

    Exit status: 0 copied, 1 copied with anomalies, 2 failed.
    """
    incomplete = read_options(config_file)
    warn_of_options(config_file)
    opened = Database(source, read_only=True, answer_seconds=PATIENT_SECONDS)
    try:
        with _progress("import") as show:
            report = import_placement(opened, database, incomplete, show)
    finally:
        asyncio.run(opened.close())
    _print(report, as_json)


@click.command(
    "export-placement",
    epilog="Example: roost db export-placement --to sqlite:///placement.db --database sqlite:///roost.db",
)
@click.option("--to", "target", metavar="URL", required=True, help="Database of OpenStack Placement.")
@_database
@as_json
def export_command(target: str, database: str, as_json: bool) -> None:
    """Copy a database of Roost into an empty database of OpenStack Placement 16.0.

    The target has no tables, or those of 'placement-manage db sync'. The copy is one transaction: after an
    interruption the target is as it was.

    Exit status: 0 copied, 1 copied with anomalies, 2 failed.
    """
    opened = Database(database, read_only=True, answer_seconds=PATIENT_SECONDS)
    try:
        with _progress("export") as show:
            report = export_placement(opened, target, show)
    finally:
        asyncio.run(opened.close())
    _print(report, as_json)


@contextmanager
def _progress(what: str) -> Iterator[ProgressCallback]:
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
        if report.anomalies:
            anomalies = Table()
            for name in ("kind", "subject", "detail"):
                anomalies.add_column(name, overflow="fold")
            for anomaly in report.anomalies:
                anomalies.add_row(anomaly.kind, anomaly.subject, anomaly.detail)
            console.print(anomalies)
        click.echo(f"{len(report.anomalies)} anomalies" if report.anomalies else "no anomalies")
    if report.anomalies:
        sys.exit(FOUND_WRONG)
