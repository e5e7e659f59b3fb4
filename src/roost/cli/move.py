"""``roost move``: moves of instances, listed, shown, confirmed, reverted, aborted."""

from typing import Any

import click

from roost.cli.command_group import CommandGroup
from roost.cli.host import warn_of_cells
from roost.cli.instance_names import uuid_of
from roost.cli.move_steps import HEADER, PATH, step_rows
from roost.cli.numbers import WholeNumber
from roost.cli.options import watched, watching
from roost.cli.output import (
    action_as_json,
    as_json,
    print_facts,
    print_further,
    print_json,
    print_table,
    text_of,
)
from roost.cli.service_client import RequestRefused, ServiceClient, part_of_path, with_conductor

NOT_FOUND = 404


@click.group(cls=CommandGroup)
def move() -> None:
    """List and show moves of instances to other hosts; confirm, revert and abort them.

    `roost instance migrate`, `live-migrate`, `resize` and `evacuate` begin them. MOVE is the uuid of one, or
    an instance as `roost instance` takes it, by which its newest move is meant.

    Exit status: 0 done, 1 refused, 2 could not run.
    """


@move.command("list", epilog="Example: roost move list --under-way --host host-0001")
@click.option("--instance", "named", metavar="INSTANCE", help="Only those of this instance.")
@click.option("--host", help="Only those from this host or to it.")
@click.option("--cell", help="Only those of this cell.")
@click.option("--under-way", is_flag=True, help="Only those that have not ended.")
@click.option("--limit", type=WholeNumber(1), metavar="N", help="Show at most N.")
@watching
@as_json
@with_conductor
def list_moves(
    conductor: ServiceClient,
    named: str | None,
    under_way: bool,
    watch: float | None,
    as_json: bool,
    **chosen: Any,
) -> None:
    """List moves, the newest first, also those that have ended."""
    instance = None if named is None else uuid_of(conductor, named)
    query = {**chosen, "instance": instance, "under_way": under_way or None}

    def show() -> None:
        found: list[dict[str, Any]] = []
        down: set[str] = set()
        for page in conductor.pages(PATH, "moves", query):
            found += page["moves"]
            down.update(page["cells_down"])
        if as_json:
            print_json({"moves": found, "cells_down": sorted(down)})
            return
        rows = [
            (
                each["uuid"],
                each["instance"],
                each["kind"],
                each["state"],
                each["source_host"] or "",
                each["target_host"] or each["requested_host"] or "",
                text_of("began_at", each["began_at"]),
                each["reason"] or "",
            )
            for each in found
        ]
        print_table(("uuid", "instance", "kind", "state", "from", "to", "began (UTC)", "reason"), rows)
        warn_of_cells(down)

    watched(show, watch)


@move.command("show", epilog="Example: roost move show web-1")
@click.argument("named", metavar="MOVE")
@as_json
@with_conductor
def show_move(conductor: ServiceClient, named: str, as_json: bool) -> None:
    """Show a move with its steps: the states that it entered, with times, targets and reasons."""
    found = conductor.ask("GET", f"{PATH}/{part_of_path(move_of(conductor, named))}")
    if as_json:
        print_json(found)
        return
    rows = step_rows(found)
    found.pop("steps")
    print_facts(found)
    print_further(HEADER, rows)


@move.command(epilog="Example: roost move confirm web-1")
@click.argument("named", metavar="MOVE")
@action_as_json
@with_conductor
def confirm(conductor: ServiceClient, named: str, as_json: bool) -> None:
    """Confirm a move whose instance runs on the target: the source destroys what it keeps of the guest."""
    _say(conductor, named, "confirm", as_json)


@move.command(epilog="Example: roost move revert web-1")
@click.argument("named", metavar="MOVE")
@action_as_json
@with_conductor
def revert(conductor: ServiceClient, named: str, as_json: bool) -> None:
    """Revert a move that is not confirmed: the instance goes back to the host that it came from."""
    _say(conductor, named, "revert", as_json)


@move.command(epilog="Example: roost move abort web-1")
@click.argument("named", metavar="MOVE")
@action_as_json
@with_conductor
def abort(conductor: ServiceClient, named: str, as_json: bool) -> None:
    """Abort a move whose target was not told to start the guest: the instance stays on its host."""
    _say(conductor, named, "abort", as_json)


def _say(conductor: ServiceClient, named: str, word: str, as_json: bool) -> None:
    found = conductor.ask("POST", f"{PATH}/{part_of_path(move_of(conductor, named))}/{word}")
    if as_json:
        print_json(found)
    else:
        print_facts(found)


def move_of(conductor: ServiceClient, named: str) -> str:
    """Return the uuid of a move that is named by it, or by its instance.

    Raises `RequestRefused`: no instance matches, several do, or it has never moved.
    """
    uuid = uuid_of(conductor, named)
    found = conductor.ask("GET", PATH, query={"instance": uuid, "limit": 1})["moves"]
    if found:
        return str(found[0]["uuid"])
    if uuid == named.lower():
        return uuid
    raise RequestRefused(NOT_FOUND, f"instance {uuid} has no move")
