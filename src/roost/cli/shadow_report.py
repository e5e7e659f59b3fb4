"""``roost nova-scheduler report``: agreement and differences of shadow mode, with reasons."""

import asyncio
import sys
from datetime import UTC, datetime

import click

from roost.cli.configuration import placement_source
from roost.cli.failures import FOUND_WRONG
from roost.cli.options import config_files, settings
from roost.cli.output import document_as_json, print_json, print_table
from roost.cli.records import TimeParameter
from roost.model.errors import OperatorError
from roost.nova.options import BridgeOptions
from roost.nova.shadow.comparison_store import read_comparisons
from roost.nova.shadow.summary import ShadowSummary, summary_of
from roost.nova.shadow.tables import SCHEMA
from roost.process.option_source import Source
from roost.storage import Database, configured_url

MEANINGS = {
    "same": "the same host",
    "tie": "another host of the same weight, or another of the best that both draw from",
    "both_refused": "both found no host",
    "other": "another host",
    "refused_by_roost": "Nova's scheduler found a host, Roost none",
    "refused_by_nova": "Roost found a host, Nova's scheduler claimed none",
    "failed": "Roost came to no decision",
}
"""The meaning of each outcome; see `roost.nova.shadow.comparison.ComparedOutcome`."""


@click.command(epilog="Example: roost nova-scheduler report --config-file roost.conf --since 2026-11-26")
@click.option(
    "--since",
    type=TimeParameter(),
    help="Only calls that came at this time or later, UTC, as 2026-11-26T08:00.  [default: all]",
)
@config_files
@settings
@document_as_json
def report(
    since: datetime | None, config_files: tuple[str, ...], settings: tuple[str, ...], as_json: bool
) -> None:
    """Show how far the decisions of shadow mode agree with the claims of Nova's scheduler.

    Comparisons are in the bridge's own database, connection in [nova_bridge], and are kept for 30 days. Late
    ones were decided when the claim of Nova's scheduler was there already; over HTTP it counts in weights.

    Exit status: 0 all agree, 1 there are differences that are not late, or nothing was compared, 2 could not
    run.
    """
    begin = 0.0 if since is None else since.replace(tzinfo=UTC).timestamp()
    found = asyncio.run(_read(placement_source(config_files, settings), begin))
    if as_json:
        print_json(found)
    else:
        print_summary(found)
    if not found.instances or any(each.number > each.late for each in found.differences):
        sys.exit(FOUND_WRONG)


def print_summary(found: ShadowSummary) -> None:
    """Print the numbers of outcomes, and the differences, the most frequent cause first."""
    if found.agreement is None:
        click.echo("no call was compared")
    else:
        seconds = found.median_seconds or 0.0
        click.echo(
            f"{found.instances} instances were compared: {100 * found.agreement:.1f} % agree; half of the "
            f"decisions took at most {1000 * seconds:.0f} ms; {found.late} were late"
        )
    if found.outcomes:
        click.echo()
        rows = [
            (name, MEANINGS[name], str(found.outcomes[name])) for name in MEANINGS if name in found.outcomes
        ]
        print_table(("outcome", "meaning", "instances"), rows, numbers=1)
    if found.differences:
        click.echo()
        differences = [
            (
                each.outcome,
                each.cause,
                str(each.number),
                str(each.late),
                each.examples[0].reason,
                each.examples[0].run,
            )
            for each in found.differences
        ]
        print_table(("difference", "cause", "number", "late", "newest example", "run"), differences)
        click.echo()
        click.echo("'roost records RUN' shows Roost's decision in full")


async def _read(source: Source, since: float) -> ShadowSummary:
    """Return the summary of the comparisons in the bridge's database. Raises `OperatorError`."""
    url = configured_url(source.read(BridgeOptions).connection, source, BridgeOptions.group)
    if url is None:
        raise OperatorError("no database of the bridge: set connection in [nova_bridge] of a --config-file")
    database = Database(url, read_only=True)
    try:
        if SCHEMA.revision(database) is None:
            return summary_of([])
        SCHEMA.check(database)
        return summary_of(await database.read(read_comparisons(since)))
    finally:
        await database.close()
