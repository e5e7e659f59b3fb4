"""``roost instance stop`` and ``start``: the power of instances."""

import sys
import time
from typing import Any

import click

from roost.cli.instance_names import PATH, uuid_of
from roost.cli.output import action_as_json, print_json
from roost.cli.service_client import ServiceClient, part_of_path, with_conductor

LOOK_SECONDS = 0.5
"""Seconds between two reads of an instance whose result is waited for."""


@click.command(epilog="Example: roost instance stop web-1 --wait")
@click.argument("names", nargs=-1, required=True, metavar="INSTANCE...")
@click.option("--wait", is_flag=True, help="Wait until all are stopped, or cannot be.")
@action_as_json
@with_conductor
def stop(conductor: ServiceClient, names: tuple[str, ...], wait: bool, as_json: bool) -> None:
    """Stop instances. Their hosts stop the guests; disks and claims are kept.

    With --wait the exit status is 1 if one could not be stopped.
    """
    _switch(conductor, names, "stop", "stopped", wait, as_json)


@click.command(epilog="Example: roost instance start web-1 --wait")
@click.argument("names", nargs=-1, required=True, metavar="INSTANCE...")
@click.option("--wait", is_flag=True, help="Wait until all run, or cannot be started.")
@action_as_json
@with_conductor
def start(conductor: ServiceClient, names: tuple[str, ...], wait: bool, as_json: bool) -> None:
    """Start instances that are stopped, or lost as their host was restarted.

    With --wait the exit status is 1 if one could not be started.
    """
    _switch(conductor, names, "start", "active", wait, as_json)


INSTANCE_POWER = (stop, start)
"""The commands of this module, for the group ``roost instance``."""


def _switch(
    conductor: ServiceClient, names: tuple[str, ...], verb: str, wanted: str, wait: bool, as_json: bool
) -> None:
    uuids = [uuid_of(conductor, name) for name in names]
    found = [conductor.ask("POST", f"{PATH}/{part_of_path(uuid)}/{verb}") for uuid in uuids]
    if wait:
        found = [_settled(conductor, each) for each in found]
    if as_json:
        print_json({"instances": found})
    else:
        for each in found:
            click.echo(" ".join(str(part) for part in (each["uuid"], each["state"], each["reason"]) if part))
    if wait and any(each["state"] != wanted for each in found):
        sys.exit(1)


def _settled(conductor: ServiceClient, instance: dict[str, Any]) -> dict[str, Any]:
    """Return an instance as it is once its host has stopped or started it, or could not."""
    while instance["state"] in ("powering-off", "powering-on"):
        time.sleep(LOOK_SECONDS)
        instance = conductor.ask("GET", f"{PATH}/{part_of_path(instance['uuid'])}")
    return instance
