"""``roost cell``: the cells of a running cloud."""

import click

from roost.cli.command_group import CommandGroup
from roost.cli.drain import (
    DrainedPlace,
    drain_by_moves,
    drain_options,
    exit_of_moves,
    move_options,
    tell_left,
    tell_progress,
)
from roost.cli.host import told_of
from roost.cli.options import watched, watching
from roost.cli.output import action_as_json, as_json, print_facts, print_json, print_table
from roost.cli.service_client import ServiceClient, part_of_path, with_conductor


@click.group(cls=CommandGroup)
def cell() -> None:
    """Add, show, disable, drain and remove cells.

    Exit status: 0 done, 1 refused, 2 could not run.
    """


@cell.command(epilog="Example: roost cell add cell1")
@click.argument("name")
@click.option("--section", help="The configuration's section that names its database.  [default: cell_NAME]")
@action_as_json
@with_conductor
def add(conductor: ServiceClient, name: str, section: str | None, as_json: bool) -> None:
    """Add a cell.

    Its database is `connection` in the section, in the configuration of the conductors; it is set up by
    `roost db upgrade` and answers. Then start its conductor, `roost cell-conductor NAME`, and add hosts.
    """
    found = conductor.ask("POST", "/v1/cells", {"name": name, "section": section})
    if as_json:
        print_json(found)


@cell.command("list", epilog="Example: roost cell list --watch 2")
@watching
@as_json
@with_conductor
def list_cells(conductor: ServiceClient, watch: float | None, as_json: bool) -> None:
    """List all cells."""

    def show() -> None:
        answer = conductor.ask("GET", "/v1/cells")
        if as_json:
            print_json(answer)
            return
        rows = [
            (
                each["name"],
                each["section"] or "",
                each["state"].replace("_", " "),
                told_of(each),
                str(each["conductors"]),
                f"{each['hosts_up']} of {each['hosts']}",
                "?" if each["instances"] is None else str(sum(each["instances"].values())),
            )
            for each in answer["cells"]
        ]
        print_table(
            ("cell", "section", "state", "new instances", "conductors", "hosts up", "instances"), rows, 3
        )

    watched(show, watch)


@cell.command("show", epilog="Example: roost cell show cell1")
@click.argument("name")
@as_json
@with_conductor
def show_cell(conductor: ServiceClient, name: str, as_json: bool) -> None:
    """Show a cell."""
    found = conductor.ask("GET", f"/v1/cells/{part_of_path(name)}")
    (print_json if as_json else print_facts)(found)


@cell.command(epilog="Example: roost cell enable cell1")
@click.argument("name")
@action_as_json
@with_conductor
def enable(conductor: ServiceClient, name: str, as_json: bool) -> None:
    """Place new instances in a cell again. Hosts that are disabled stay so."""
    changed = conductor.ask("PUT", f"/v1/cells/{part_of_path(name)}", {"enabled": True})
    if as_json:
        print_json(changed)


@cell.command(epilog="Example: roost cell disable cell1 --reason 'new switches'")
@click.argument("name")
@click.option("--reason", help="Why, for those who read the list of cells.")
@action_as_json
@with_conductor
def disable(conductor: ServiceClient, name: str, reason: str | None, as_json: bool) -> None:
    """Place no new instances in a cell, also on hosts that are added later. Those that are there stay."""
    body = {"enabled": False, "reason": reason}
    changed = conductor.ask("PUT", f"/v1/cells/{part_of_path(name)}", body)
    if as_json:
        print_json(changed)


@cell.command(epilog="Example: roost cell drain cell1 --move --wait")
@click.argument("name")
@drain_options
@move_options
@action_as_json
@with_conductor
def drain(
    conductor: ServiceClient, name: str, reason: str, wait: bool, move: bool, pause: bool, as_json: bool
) -> None:
    """Disable a cell and empty it: a rack, or whatever the cell is.

    With --move its instances are moved to hosts of other cells, a few at once, as long as the cell is
    disabled; what cannot move is named with the reason, and tried again. Without it the instances that are
    there are listed, and their users delete or rebuild them. Exit status 1: instances are left.
    """
    if move or pause:
        place = DrainedPlace(f"/v1/cells/{part_of_path(name)}", {})
        shown = drain_by_moves(conductor, [place], reason=reason, move=move, pause=pause, wait=wait)
        if as_json:
            print_json(shown[0])
        else:
            tell_progress(shown)
        return exit_of_moves(shown, pause)
    conductor.ask("PUT", f"/v1/cells/{part_of_path(name)}", {"enabled": False, "reason": reason})
    return tell_left(conductor, {"cell": name}, wait, as_json, {"cell": name})


@cell.command(epilog="Example: roost cell remove cell1")
@click.argument("name")
@action_as_json
@with_conductor
def remove(conductor: ServiceClient, name: str, as_json: bool) -> None:
    """Remove a cell without hosts and instances. Its database stays as it is."""
    conductor.ask("DELETE", f"/v1/cells/{part_of_path(name)}")
    if as_json:
        print_json({"removed": [name]})
