"""``roost node``: the nodes of the hosts of a running cloud."""

import click

from roost.cli.command_group import CommandGroup
from roost.cli.drain import (
    DrainedPlace,
    drain_by_moves,
    drain_options,
    exit_of_moves,
    live_option,
    move_options,
    tell_left,
    tell_progress,
)
from roost.cli.host import of_cell, print_removed, told_of
from roost.cli.output import action_as_json, as_json, print_json, print_table
from roost.cli.service_client import ServiceClient, part_of_path, with_conductor


@click.group(cls=CommandGroup)
def node() -> None:
    """List, disable, drain and remove the nodes of hosts.

    Exit status: 0 done, 1 refused, 2 could not run.
    """


@node.command("list", epilog="Example: roost node list rack1-01")
@click.argument("name", metavar="HOST")
@of_cell
@as_json
@with_conductor
def list_nodes(conductor: ServiceClient, name: str, cell: str | None, as_json: bool) -> None:
    """List the nodes of a host."""
    answer = conductor.ask("GET", f"/v1/hosts/{part_of_path(name)}/nodes", query={"cell": cell})
    if as_json:
        print_json(answer)
        return
    rows = [
        (each["node"], each["nodename"], told_of(each), str(each["instances"])) for each in answer["nodes"]
    ]
    print_table(("node", "name", "new instances", "instances"), rows, 1)


@node.command("enable", epilog="Example: roost node enable rack1-01 4f1c4f0e-5c26-4c6a-9d1b-2f6b1c1c8f11")
@click.argument("name", metavar="HOST")
@click.argument("node", metavar="NODE")
@of_cell
@action_as_json
@with_conductor
def enable_node(conductor: ServiceClient, name: str, node: str, cell: str | None, as_json: bool) -> None:
    """Place new instances on a node again, if its host and its cell are enabled."""
    changed = conductor.ask("PUT", _path_of_node(name, node), {"enabled": True}, {"cell": cell})
    if as_json:
        print_json(changed)


@node.command("disable", epilog="Example: roost node disable rack1-01 4f1c4f0e-5c26-4c6a-9d1b-2f6b1c1c8f11")
@click.argument("name", metavar="HOST")
@click.argument("node", metavar="NODE")
@of_cell
@click.option("--reason", help="Why, for those who read the list of nodes.")
@action_as_json
@with_conductor
def disable_node(
    conductor: ServiceClient, name: str, node: str, cell: str | None, reason: str | None, as_json: bool
) -> None:
    """Place no new instances on a node. Those that are there stay."""
    body = {"enabled": False, "reason": reason}
    changed = conductor.ask("PUT", _path_of_node(name, node), body, {"cell": cell})
    if as_json:
        print_json(changed)


@node.command(
    "drain", epilog="Example: roost node drain rack1-01 4f1c4f0e-5c26-4c6a-9d1b-2f6b1c1c8f11 --wait"
)
@click.argument("name", metavar="HOST")
@click.argument("node", metavar="NODE")
@of_cell
@drain_options
@move_options
@live_option
@action_as_json
@with_conductor
def drain_node(
    conductor: ServiceClient,
    name: str,
    node: str,
    cell: str | None,
    reason: str,
    wait: bool,
    move: bool,
    pause: bool,
    live: bool,
    as_json: bool,
) -> None:
    """Disable a node and list the instances that are still there.

    Their users delete or rebuild them. --move, --pause and --live: as of roost host drain.

    Exit status 1: instances are left. With --move and --wait: none of them can move.
    """
    if move or pause or live:
        places = [DrainedPlace(_path_of_node(name, node), {"cell": cell})]
        shown = drain_by_moves(conductor, places, reason=reason, move=move, pause=pause, wait=wait, live=live)
        if as_json:
            print_json(shown[0])
        else:
            tell_progress(shown)
        return exit_of_moves(shown, pause)
    found = conductor.ask("GET", f"/v1/hosts/{part_of_path(name)}", query={"cell": cell})
    there = {"cell": found["cell"]}
    conductor.ask("PUT", _path_of_node(name, node), {"enabled": False, "reason": reason}, there)
    drained = {"host": name, "node": node}
    return tell_left(conductor, {"host": name, **there}, wait, as_json, drained, node)


@node.command("remove", epilog="Example: roost node remove rack1-01 4f1c4f0e-5c26-4c6a-9d1b-2f6b1c1c8f11")
@click.argument("name", metavar="HOST")
@click.argument("node", metavar="NODE")
@of_cell
@action_as_json
@with_conductor
def remove_node(conductor: ServiceClient, name: str, node: str, cell: str | None, as_json: bool) -> None:
    """Remove a node without instances, and its providers from placement."""
    print_removed(conductor.ask("DELETE", _path_of_node(name, node), query={"cell": cell}), as_json)


def _path_of_node(host: str, node: str) -> str:
    return f"/v1/hosts/{part_of_path(host)}/nodes/{part_of_path(node)}"
