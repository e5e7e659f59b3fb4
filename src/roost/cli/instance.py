"""``roost instance``: requests, lists, watches, stops, moves and deletes instances; their histories."""

import sys
import time
from collections.abc import Mapping
from typing import Any

import click

from roost.cli.command_group import CommandGroup
from roost.cli.host import warn_of_cells
from roost.cli.instance_history import print_history
from roost.cli.instance_moves import INSTANCE_MOVES
from roost.cli.instance_names import uuid_of
from roost.cli.instance_power import INSTANCE_POWER
from roost.cli.numbers import Number, WholeNumber
from roost.cli.options import key_lists, key_values, watched, watching
from roost.cli.output import (
    action_as_json,
    as_json,
    document_as_json,
    print_facts,
    print_further,
    print_json,
    print_table,
    print_warnings,
)
from roost.cli.service_client import RequestRefused, ServiceClient, part_of_path, with_conductor

SETTLED = frozenset(("active", "stopped", "error", "lost"))
"""States that an instance leaves only by a request."""

LOOK_SECONDS = 1.0
"""Seconds between two reads of an instance that is watched."""

FORBIDDEN = 403
NOT_FOUND = 404


@click.group(cls=CommandGroup)
def instance() -> None:
    """Ask for instances, list, show, watch, stop, move and delete them, and tell their histories.

    INSTANCE is a uuid, four or more of its first characters, or a name, if no other instance has it.

    Exit status: 0 done, 1 refused, or an instance is in error, 2 could not run.
    """


@instance.command(epilog="Example: roost instance create --vcpus 2 --memory-mb 4096 --count 3 --wait")
@click.option("--vcpus", type=WholeNumber(0), default=1, show_default=True, help="vCPUs.")
@click.option("--memory-mb", type=WholeNumber(0), default=0, show_default=True, help="Memory in MiB.")
@click.option("--disk-gb", type=WholeNumber(0), default=0, show_default=True, help="Root disk in GiB.")
@click.option("--name", help="What to call it; several get numbers. Letters, digits, . _ -, at most 64.")
@click.option("--count", type=WholeNumber(1, 1000), default=1, show_default=True, help="Number of instances.")
@click.option("--min-count", type=WholeNumber(1, 1000), help="Place at least so many, or none.")
@click.option("--zone", help="Their availability zone.")
@click.option("--host", help="The host that they are to be on; filters judge it.")
@click.option(
    "--extra-spec",
    "extra_specs",
    multiple=True,
    callback=key_values,
    help="An extra spec of the flavor, KEY=VALUE.",
)
@click.option("--hint", "hints", multiple=True, callback=key_lists, help="A scheduler hint, KEY=VALUE.")
@click.option("--wait", is_flag=True, help="Wait until all are active or in error.")
@action_as_json
@with_conductor
def create(
    conductor: ServiceClient,
    vcpus: int,
    memory_mb: int,
    disk_gb: int,
    name: str | None,
    count: int,
    min_count: int | None,
    zone: str | None,
    host: str | None,
    extra_specs: dict[str, str],
    hints: dict[str, list[str]],
    wait: bool,
    as_json: bool,
) -> None:
    """Ask for instances. The request is durable when this returns; prints the uuids that they will have."""
    flavor = {"vcpus": vcpus, "memory_mb": memory_mb, "disk_gb": disk_gb, "extra_specs": extra_specs}
    body = {
        "flavor": flavor,
        **({} if name is None else {"name": name}),
        "count": count,
        "min_count": min_count,
        "availability_zone": zone,
        "requested_host": host,
        "scheduler_hints": hints,
    }
    accepted = conductor.ask("POST", "/v1/instances", body)
    print_warnings(accepted)
    if wait:
        _watch(conductor, accepted["instances"], as_json)
    elif as_json:
        print_json(accepted)
    else:
        for uuid in accepted["instances"]:
            click.echo(uuid)


@instance.command("list", epilog="Example: roost instance list --state error --all-projects")
@click.option("--name", help="Only those with this name.")
@click.option("--state", help="Only those in this state.")
@click.option("--cell", help="Only those of this cell.")
@click.option("--host", help="Only those of this host.")
@click.option("--project", "project_id", help="Only those of this project.")
@click.option("--request", "request_id", help="Only those of this request, or of several: ID,ID.")
@click.option("--changed-since", type=Number(), help="Only those that changed since, in seconds since 1970.")
@click.option("--all-projects", is_flag=True, help="Those of all projects.")
@click.option("--limit", type=WholeNumber(1), metavar="N", help="Show at most N.")
@watching
@as_json
@with_conductor
def list_instances(
    conductor: ServiceClient, all_projects: bool, watch: float | None, as_json: bool, **chosen: Any
) -> None:
    """List instances. Those of a cell that cannot be asked are `unknown`."""
    query = {**chosen, "all_projects": all_projects or None}

    def show() -> None:
        found: list[dict[str, Any]] = []
        down: set[str] = set()
        for page in conductor.pages("/v1/instances", "instances", query):
            found += page["instances"]
            down.update(page["cells_down"])
        if not found:
            _check_places(conductor, query)
        if as_json:
            print_json({"instances": found, "cells_down": sorted(down)})
            return
        rows = [
            (
                each["uuid"],
                each.get("name") or "",
                each["state"],
                each["flavor"] or "?",
                each["cell"] or "",
                each["host"] or "",
                each["reason"] or "",
            )
            for each in found
        ]
        print_table(("uuid", "name", "state", "flavor", "cell", "host", "reason"), rows)
        warn_of_cells(down)

    watched(show, watch)


@instance.command("show", epilog="Example: roost instance show 4f1c4f0e-5c26-4c6a-9d1b-2f6b1c1c8f11")
@click.argument("name", metavar="INSTANCE")
@as_json
@with_conductor
def show_instance(conductor: ServiceClient, name: str, as_json: bool) -> None:
    """Show an instance with its claim and the attempts that failed."""
    found = conductor.ask("GET", f"/v1/instances/{part_of_path(uuid_of(conductor, name))}")
    if as_json:
        print_json(found)
        return
    attempts = found.pop("attempts")
    print_facts(found)
    rows = [
        (str(each["attempt"]), each["host"] or "", each["result"], each["code"] or "", each["reason"])
        for each in attempts
    ]
    print_further(("attempt", "host", "result", "code", "reason"), rows)


@instance.command(epilog="Example: roost instance delete 4f1c4f0e-5c26-4c6a-9d1b-2f6b1c1c8f11")
@click.argument("names", nargs=-1, required=True, metavar="INSTANCE...")
@action_as_json
@with_conductor
def delete(conductor: ServiceClient, names: tuple[str, ...], as_json: bool) -> None:
    """Delete instances. Their deletion is durable when this returns."""
    uuids = [uuid_of(conductor, name) for name in names]
    for uuid in uuids:
        conductor.ask("DELETE", f"/v1/instances/{part_of_path(uuid)}")
    if as_json:
        print_json({"deleted": uuids})


@instance.command(epilog="Example: roost instance watch 4f1c4f0e-5c26-4c6a-9d1b-2f6b1c1c8f11")
@click.argument("names", nargs=-1, required=True, metavar="INSTANCE...")
@action_as_json
@with_conductor
def watch(conductor: ServiceClient, names: tuple[str, ...], as_json: bool) -> None:
    """Print each change of instances until all are active, stopped, in error or gone.

    Exit status 1: one is in error, or its guest is lost.
    """
    _watch(conductor, [uuid_of(conductor, name) for name in names], as_json)


@instance.command(epilog="Example: roost instance history 4f1c4f0e-5c26-4c6a-9d1b-2f6b1c1c8f11")
@click.argument("name", metavar="INSTANCE")
@document_as_json
@with_conductor
def history(conductor: ServiceClient, name: str, as_json: bool) -> None:
    """Show what happened to an instance, from its acceptance to its end.

    Each action with who asked for it, each event with its host and what came of it. An instance that is
    deleted has a history for [conductor] history_days.
    """
    found = conductor.ask("GET", f"/v1/instances/{part_of_path(uuid_of(conductor, name))}/history")
    if as_json:
        print_json(found)
    else:
        print_history(found)


@instance.command("give-up", epilog="Example: roost instance give-up UUID --evidence 'rack 7 burned'")
@click.argument("name", metavar="INSTANCE")
@click.option("--evidence", required=True, help="How it is known that no guest of it runs.")
@action_as_json
@with_conductor
def give_up(conductor: ServiceClient, name: str, evidence: str, as_json: bool) -> None:
    """Give up an instance whose guest is gone for good.

    One that starts on a host that is down is tried on another host. One that is lost, or ran on a host that
    is down, is in error, and its claim is freed.
    """
    uuid = uuid_of(conductor, name)
    given_up = conductor.ask("POST", f"/v1/instances/{part_of_path(uuid)}/give-up", {"evidence": evidence})
    if as_json:
        print_json(given_up or {"given_up": uuid})


for _command in (*INSTANCE_POWER, *INSTANCE_MOVES):
    instance.add_command(_command)


def _check_places(conductor: ServiceClient, query: Mapping[str, Any]) -> None:
    """Raise `RequestRefused` for a host or cell that does not exist; it would look like an empty one."""
    for kind in ("host", "cell"):
        if query[kind]:
            try:
                conductor.ask("GET", f"/v1/{kind}s/{part_of_path(query[kind])}")
            except RequestRefused as error:
                if error.status != FORBIDDEN:
                    raise


def _watch(conductor: ServiceClient, uuids: list[str] | tuple[str, ...], as_json: bool) -> None:
    told: dict[str, tuple[object, ...]] = {}
    states: dict[str, str] = {}
    while True:
        for uuid in uuids:
            if states.get(uuid) in SETTLED or states.get(uuid) == "gone":
                continue
            found = _find(conductor, uuid)
            states[uuid] = found["state"]
            facts = found["state"], found["host"], found["reason"]
            if told.get(uuid) != facts:
                told[uuid] = facts
                if as_json:
                    print_json(found)
                else:
                    click.echo(" ".join([uuid, *(str(each) for each in facts if each)]))
        if all(state in SETTLED or state == "gone" for state in states.values()):
            break
        time.sleep(LOOK_SECONDS)
    if any(state in ("error", "lost") for state in states.values()):
        sys.exit(1)


def _find(conductor: ServiceClient, uuid: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = conductor.ask("GET", f"/v1/instances/{part_of_path(uuid)}")
        return found
    except RequestRefused as error:
        if error.status != NOT_FOUND:
            raise
        return {"uuid": uuid, "state": "gone", "host": None, "reason": None}
