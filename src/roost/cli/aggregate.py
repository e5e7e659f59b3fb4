"""``roost aggregate``: host aggregates and availability zones."""

import uuid
from typing import Any

import click

from roost.cli.command_group import CommandGroup
from roost.cli.drain import (
    DrainedPlace,
    drain_by_moves,
    drain_options,
    exit_of_moves,
    live_option,
    move_options,
    tell_progress,
)
from roost.cli.numbers import WholeNumber
from roost.cli.options import key_values, watched, watching
from roost.cli.output import (
    action_as_json,
    as_json,
    note,
    print_facts,
    print_further,
    print_json,
    print_table,
)
from roost.cli.service_client import RequestRefused, ServiceClient, part_of_path, with_conductor
from roost.model.aggregate import AVAILABILITY_ZONE

PATH = "/v1/aggregates"
NOT_FOUND = 404

metadata_option = click.option(
    "--metadata",
    multiple=True,
    callback=key_values,
    metavar="KEY=VALUE",
    help="Metadata, which filters and weighers read; may be given several times.",
)
zone_option = click.option("--zone", help="The availability zone that it makes its nodes a part of.")


@click.group(cls=CommandGroup)
def aggregate() -> None:
    """Make, list, show, change, drain and delete host aggregates and availability zones.

    AGGREGATE is the uuid of one, or its name. NODE is the uuid of a node's root provider, the node's own
    name, or that of a compute service with one node.

    Exit status: 0 done, 1 refused, 2 could not run.
    """


@aggregate.command(epilog="Example: roost aggregate create rack1 --zone az1 --metadata ssd=true")
@click.argument("name")
@zone_option
@metadata_option
@action_as_json
@with_conductor
def create(
    conductor: ServiceClient, name: str, zone: str | None, metadata: dict[str, str], as_json: bool
) -> None:
    """Make an aggregate without members. Prints its uuid."""
    wanted = {"name": name, "metadata": {**metadata, **_zone(zone)}}
    made = conductor.ask("POST", PATH, wanted)
    if as_json:
        print_json(made)
    else:
        click.echo(made["uuid"])


@aggregate.command("list", epilog="Example: roost aggregate list --watch 2")
@click.option("--limit", type=WholeNumber(1), metavar="N", help="Show at most N.")
@watching
@as_json
@with_conductor
def list_aggregates(conductor: ServiceClient, limit: int | None, watch: float | None, as_json: bool) -> None:
    """List aggregates, without their members."""

    def show() -> None:
        found = [
            each
            for page in conductor.pages(PATH, "aggregates", {"limit": limit})
            for each in page["aggregates"]
        ]
        if as_json:
            print_json({"aggregates": found})
            return
        rows = [
            (
                each["uuid"],
                each["name"],
                each["availability_zone"] or "",
                _pairs({k: v for k, v in each["metadata"].items() if k != AVAILABILITY_ZONE}),
                str(each["member_count"]),
            )
            for each in found
        ]
        print_table(("uuid", "name", "zone", "metadata", "members"), rows, 1)

    watched(show, watch)


@aggregate.command("show", epilog="Example: roost aggregate show rack1")
@click.argument("name", metavar="AGGREGATE")
@as_json
@with_conductor
def show_aggregate(conductor: ServiceClient, name: str, as_json: bool) -> None:
    """Show an aggregate with its members."""
    _print(_found(conductor, name), as_json)


@aggregate.command(
    "set", epilog="Example: roost aggregate set rack1 --zone az2 --metadata ssd=false --unset gpu"
)
@click.argument("name", metavar="AGGREGATE")
@click.option("--name", "new_name", help="A new name.")
@zone_option
@click.option("--no-zone", is_flag=True, help="It is no availability zone any more.")
@metadata_option
@click.option("--unset", multiple=True, metavar="KEY", help="Metadata that it has no more.")
@action_as_json
@with_conductor
def set_aggregate(
    conductor: ServiceClient,
    name: str,
    new_name: str | None,
    zone: str | None,
    no_zone: bool,
    metadata: dict[str, str],
    unset: tuple[str, ...],
    as_json: bool,
) -> None:
    """Change name, zone and metadata of an aggregate. What is not named stays.

    Refused if it would change the zone of a node with instances, or if others change it at the same time.
    """
    if no_zone and zone is not None:
        raise click.UsageError("--zone and --no-zone exclude each other")
    found = _found(conductor, name)
    gone = {*unset, *((AVAILABILITY_ZONE,) if no_zone else ())}
    if unknown := sorted(gone - found["metadata"].keys()):
        raise click.UsageError(f"aggregate {found['name']} has no metadata {', '.join(unknown)}")
    kept = {key: value for key, value in found["metadata"].items() if key not in gone}
    body = {
        "name": new_name or found["name"],
        "metadata": {**kept, **metadata, **_zone(zone)},
        "generation": found["generation"],
    }
    changed = conductor.ask("PUT", f"{PATH}/{found['uuid']}", body)
    if as_json:
        print_json(changed)


@aggregate.command(epilog="Example: roost aggregate add rack1 rack1-01 rack1-02")
@click.argument("name", metavar="AGGREGATE")
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@action_as_json
@with_conductor
def add(conductor: ServiceClient, name: str, nodes: tuple[str, ...], as_json: bool) -> None:
    """Make nodes members of an aggregate, all or none. Those that are members already stay."""
    _change_members(conductor, name, {"add": nodes}, as_json)


@aggregate.command(epilog="Example: roost aggregate remove rack1 rack1-02")
@click.argument("name", metavar="AGGREGATE")
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@action_as_json
@with_conductor
def remove(conductor: ServiceClient, name: str, nodes: tuple[str, ...], as_json: bool) -> None:
    """Remove nodes from an aggregate, all or none. Those that are no members are left out."""
    _change_members(conductor, name, {"remove": nodes}, as_json)


@aggregate.command(epilog="Example: roost aggregate drain rack1 --move --wait")
@click.argument("name", metavar="AGGREGATE")
@drain_options
@move_options
@live_option
@action_as_json
@with_conductor
def drain(
    conductor: ServiceClient,
    name: str,
    reason: str,
    wait: bool,
    move: bool,
    pause: bool,
    live: bool,
    as_json: bool,
) -> None:
    """Disable the hosts of an aggregate's nodes and move their instances to other hosts of their cells.

    Each host is drained as by roost host drain --move; roost host enable ends that. Without --move nothing
    moves, and earlier moves are paused, as with --pause.

    Exit status 1: instances are left. With --move and --wait: none of them can move.
    """
    members = _found(conductor, name)["members"]
    hosts = sorted({each["host"] for each in members if each["host"] is not None})
    places = [DrainedPlace(f"/v1/hosts/{part_of_path(host)}", {}) for host in hosts]
    shown = drain_by_moves(conductor, places, reason=reason, move=move, pause=pause, wait=wait, live=live)
    unknown = sorted(each["node"] for each in members if each["host"] is None)
    if as_json:
        print_json({"aggregate": name, "drains": shown, "unknown_nodes": unknown})
    else:
        tell_progress(shown)
        for each in unknown:
            note(f"no cell that answers has node {each}: it is not drained")
    exit_of_moves(shown, pause)


@aggregate.command(epilog="Example: roost aggregate delete rack1")
@click.argument("name", metavar="AGGREGATE")
@action_as_json
@with_conductor
def delete(conductor: ServiceClient, name: str, as_json: bool) -> None:
    """Delete an aggregate without members."""
    uuid = _found(conductor, name)["uuid"]
    conductor.ask("DELETE", f"{PATH}/{uuid}")
    if as_json:
        print_json({"deleted": [uuid]})


def _change_members(
    conductor: ServiceClient, name: str, body: dict[str, tuple[str, ...]], as_json: bool
) -> None:
    uuid = _found(conductor, name)["uuid"]
    changed = conductor.ask("POST", f"{PATH}/{uuid}/members", body)
    if as_json:
        print_json(changed)


def _found(conductor: ServiceClient, name: str) -> dict[str, Any]:
    """Return the aggregate with a uuid or a name. Raises `RequestRefused` if there is none."""
    if _is_uuid(name):
        try:
            return _shown(conductor, name)
        except RequestRefused as error:
            if error.status != NOT_FOUND:
                raise
    named = conductor.ask("GET", PATH, query={"name": name})["aggregates"]
    if not named:
        raise RequestRefused(NOT_FOUND, f"no aggregate {name}")
    return _shown(conductor, named[0]["uuid"])


def _shown(conductor: ServiceClient, of: str) -> dict[str, Any]:
    found: dict[str, Any] = conductor.ask("GET", f"{PATH}/{part_of_path(of)}")
    return found


def _is_uuid(name: str) -> bool:
    try:
        uuid.UUID(name)
    except ValueError:
        return False
    return True


def _print(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    members = found.pop("members")
    print_facts(found)
    rows = [
        (each["nodename"] or "", each["host"] or "no cell that answers has it", each["node"])
        for each in members
    ]
    print_further(("node", "host", "provider"), rows)


def _zone(zone: str | None) -> dict[str, str]:
    return {} if zone is None else {AVAILABILITY_ZONE: zone}


def _pairs(metadata: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(metadata.items()))
