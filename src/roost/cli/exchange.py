"""``roost db import-placement`` and ``roost db export-placement``."""

import asyncio
import sys

import click

from roost.cli.configuration import warn_of_options
from roost.cli.databases import CommandDatabase, with_database
from roost.cli.failures import FOUND_WRONG
from roost.cli.options import database_url
from roost.cli.output import action_as_json, note, print_further, print_json, print_table
from roost.cli.progress import no_progress, progress
from roost.placement.exchange import ExchangeReport, export_placement, import_placement
from roost.placement.options import read_options
from roost.storage import COMMAND_ANSWER_SECONDS, Database


@click.command(
    "import-placement",
    epilog="Example: roost db import-placement --from mysql+pymysql://placement@db/placement "
    "--database sqlite:///roost.db",
)
@click.option("--from", "source", metavar="URL", required=True, help="Database of OpenStack Placement.")
@database_url
@click.option(
    "--config-file",
    type=click.Path(),
    help="Configuration file of Placement, for its options incomplete_consumer_*.",
)
@no_progress
@action_as_json
def import_command(source: str, url: str, config_file: str | None, as_json: bool) -> None:
    """Copy a database of OpenStack Placement into an empty database of Roost.

    The source is read in one transaction and is not changed. The copy is committed in parts: after an
    interruption, run the same command again. At the end the command lists the anomalies of the source, each
    with whether it was kept or left out.

    Exit status: 0 copied, 1 copied with anomalies, 2 failed.
    """
    incomplete = read_options(config_file)
    warn_of_options(config_file)
    opened = Database(source, read_only=True, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        with progress("import") as meter:
            meter.begin("import", "providers and consumers")
            report = import_placement(opened, url, incomplete, meter.count)
    finally:
        asyncio.run(opened.close())
    _print(report, as_json)


@click.command(
    "export-placement",
    epilog="Example: roost db export-placement --to sqlite:///placement.db --database sqlite:///roost.db",
)
@click.option("--to", "target", metavar="URL", required=True, help="Database of OpenStack Placement.")
@with_database
@no_progress
@action_as_json
def export_command(target: str, named: CommandDatabase, as_json: bool) -> None:
    """Copy a database of Roost into an empty database of OpenStack Placement 16.0.

    The target has no tables, or those of 'placement-manage db sync'. The copy is one transaction: after an
    interruption the target is as it was.

    Exit status: 0 copied, 1 copied with anomalies, 2 failed.
    """
    opened = Database(named.url, read_only=True, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        with progress("export") as meter:
            meter.begin("export", "providers and consumers")
            report = export_placement(opened, target, meter.count)
    finally:
        asyncio.run(opened.close())
    _print(report, as_json)


def _print(report: ExchangeReport, as_json: bool) -> None:
    if as_json:
        print_json(report)
    else:
        rows = [
            (name, f"{copied:,}", f"{report.there_already[name]:,}") for name, copied in report.copied.items()
        ]
        print_table(("rows", "copied", "there already"), rows, numbers=2)
        if report.anomalies:
            anomalies = [(each.kind, each.subject, each.detail) for each in report.anomalies]
            print_further(("kind", "subject", "detail"), anomalies)
        note(f"{len(report.anomalies)} anomalies" if report.anomalies else "no anomalies")
    if report.anomalies:
        sys.exit(FOUND_WRONG)
