"""``roost status``: what is wrong with a cloud now, worst first.

checks     the checks of each part of a cloud, which return findings
"""

import sys
import time
from collections.abc import Mapping

import click
import msgspec

from roost.cli.connection import ServiceConnection, connected_to_all
from roost.cli.failures import COULD_NOT_RUN, FOUND_WRONG
from roost.cli.numbers import WholeNumber
from roost.cli.options import watched, watching
from roost.cli.output import as_json, note, output, print_json, print_table
from roost.cli.profiles import Service
from roost.cli.status.checks import StatusReport, checked


@click.command(epilog="Example: roost status --watch 5")
@click.option(
    "--minutes",
    type=WholeNumber(min=1, max=1440),
    default=10,
    show_default=True,
    help="Count refusals of this many last minutes.",
)
@watching
@as_json
@connected_to_all("conductor")
def status(
    connections: Mapping[Service, ServiceConnection], minutes: int, watch: float | None, as_json: bool
) -> None:
    """Show what is wrong with a cloud, worst first: processes, cells, databases, hosts, refusals.

    Scheduler and placement are asked too: at --url, or where their own environment variables or the profile
    say. Exit status 1: something is wrong; 2: nothing could be asked, as with a token that may see nothing.
    """
    found: list[StatusReport] = []

    def show() -> None:
        report = checked(connections, time.time(), minutes)
        found[:] = [report]
        if as_json:
            print_json(msgspec.to_builtins(report))
            return
        if report.findings or not output().is_for_people:
            rows = [(each.level, each.about, each.says) for each in report.findings]
            print_table(("level", "about", "what"), rows, named_by="about")
        note(report.summary)

    watched(show, watch)
    if found[0].wrong:
        sys.exit(FOUND_WRONG)
    if found[0].unknown and not found[0].counts:
        sys.exit(COULD_NOT_RUN)
