"""``roost map``: the fleet as blocks, a character a host.

answer   the map as the scheduler sends it, read by page
blocks   the map as lines of blocks, in colours or without
"""

from typing import Final

import click
import msgspec

from roost.cli.connection import ServiceConnection, connected_to
from roost.cli.fleet_map.answer import By, MapChoice, read_map
from roost.cli.fleet_map.blocks import Pencil, map_lines
from roost.cli.options import watched, watching
from roost.cli.output import console, document_as_json, print_json
from roost.cli.service_client import ServiceClient
from roost.cli.tables import screen_width

SECONDS: Final = 60.0
"""Seconds that the scheduler has for its response."""


@click.command("map", epilog="Example: roost map --class MEMORY_MB --zone nova")
@click.option(
    "--class",
    "resource_class",
    metavar="CLASS",
    default="VCPU",
    show_default=True,
    help="The resource class that is drawn.",
)
@click.option(
    "--by",
    type=click.Choice(("used", "free", "state")),
    default="used",
    show_default=True,
    help="The share in use of each host, its free units, or its state alone.",
)
@click.option("--zone", help="Only the hosts of this availability zone.")
@click.option("--cell", help="Only the hosts of this cell.")
@click.option(
    "--label",
    metavar="KEY",
    help="Group by this metadata key of host aggregates too, such as rack.",
)
@watching
@document_as_json
@connected_to("scheduler")
def fleet_map(
    connection: ServiceConnection,
    resource_class: str,
    by: By,
    zone: str | None,
    cell: str | None,
    label: str | None,
    watch: float | None,
    as_json: bool,
) -> None:
    """Draw the fleet by zone and cell: a block for each host, a hundred a line.

    The block of a host shows how much of a resource class is in use there, from dark blue (nothing) to yellow
    (all). Without colours, as in a pipe or with NO_COLOR, it is higher the more is in use. `x` is a host that
    is down, `!` one that is disabled. A line begins with the name of its first host, if there is room; hosts
    are in order of their names. The token is that of a user with the role admin or service.
    """
    scheduler = ServiceClient(connection, SECONDS)
    choice = MapChoice(resource_class, by, zone, cell, label)

    def show() -> None:
        shown = console()
        pencil = Pencil.of(shown, screen_width())
        found = read_map(scheduler, choice, pencil.a_line)
        if as_json:
            print_json(msgspec.to_builtins(found))
            return
        for line in map_lines(found, pencil):
            shown.print(line, soft_wrap=pencil.columns is None)

    watched(show, watch)
