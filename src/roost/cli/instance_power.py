"""``roost instance stop``, ``start``, ``rebuild``, ``shelve`` and ``unshelve``: words on single instances."""

import sys
import time
from typing import Any

import click

from roost.cli.instance_names import PATH, uuid_of
from roost.cli.options import key_values
from roost.cli.output import action_as_json, print_json
from roost.cli.service_client import ServiceClient, part_of_path, with_conductor

_UNDER_WAY = (
    *("powering-", "rebuilding", "shelving", "offloaded", "unshelving"),
    *("assigned", "starting", "failed", "abandoned"),
)
"""The beginnings of states that an instance leaves by itself."""

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


@click.command(epilog="Example: roost instance rebuild web-1 --image 5d1c2a0f --wait")
@click.argument("name", metavar="INSTANCE")
@click.option("--image", help="The id of the new image; without it the same one.")
@click.option("--disk-format", help="The disk format of the new image.")
@click.option(
    "--property",
    "properties",
    multiple=True,
    callback=key_values,
    help="A property of the new image, KEY=VALUE.",
)
@click.option("--wait", is_flag=True, help="Wait until it is made, or cannot be.")
@action_as_json
@with_conductor
def rebuild(
    conductor: ServiceClient,
    name: str,
    image: str | None,
    disk_format: str | None,
    properties: dict[str, str],
    wait: bool,
    as_json: bool,
) -> None:
    """Have the guest of an instance made anew on its host. What is on its disks is lost.

    Host and claim stay. With --wait the exit status is 1 if the guest could not be made: the instance is lost
    then, and can be rebuilt again.
    """
    body = {}
    if image is not None or disk_format is not None or properties:
        body = {"image": {"id": image, "disk_format": disk_format, "properties": properties}}
    path = f"{PATH}/{part_of_path(uuid_of(conductor, name))}/rebuild"
    _tell(conductor, [conductor.ask("POST", path, body)], ("active", "stopped"), wait, as_json)


@click.command(epilog="Example: roost instance shelve web-1 --wait")
@click.argument("names", nargs=-1, required=True, metavar="INSTANCE...")
@click.option(
    "--discard-disks",
    is_flag=True,
    help="The disks may be made anew from the images; what is on them is lost.",
)
@click.option("--wait", is_flag=True, help="Wait until all are shelved.")
@action_as_json
@with_conductor
def shelve(
    conductor: ServiceClient, names: tuple[str, ...], discard_disks: bool, wait: bool, as_json: bool
) -> None:
    """Shelve instances. Their hosts destroy the guests, and what they hold is freed.

    The disks stay in the store that hosts share; without one, --discard-disks is needed. With --wait the exit
    status is 1 if one was not shelved.
    """
    _switch(conductor, names, "shelve", "shelved", wait, as_json, {"discard_disks": discard_disks})


@click.command(epilog="Example: roost instance unshelve web-1 --wait")
@click.argument("names", nargs=-1, required=True, metavar="INSTANCE...")
@click.option("--wait", is_flag=True, help="Wait until all run, or stay shelved.")
@action_as_json
@with_conductor
def unshelve(conductor: ServiceClient, names: tuple[str, ...], wait: bool, as_json: bool) -> None:
    """Have shelved instances run again, on hosts of their cells that the scheduler chooses.

    One that no host takes stays shelved, with the reason. With --wait the exit status is 1 then.
    """
    _switch(conductor, names, "unshelve", "active", wait, as_json)


INSTANCE_POWER = (stop, start, rebuild, shelve, unshelve)
"""The commands of this module, for the group ``roost instance``."""


def _switch(
    conductor: ServiceClient,
    names: tuple[str, ...],
    verb: str,
    wanted: str,
    wait: bool,
    as_json: bool,
    body: dict[str, Any] | None = None,
) -> None:
    uuids = [uuid_of(conductor, name) for name in names]
    found = [conductor.ask("POST", f"{PATH}/{part_of_path(uuid)}/{verb}", body) for uuid in uuids]
    _tell(conductor, found, (wanted,), wait, as_json)


def _tell(
    conductor: ServiceClient, found: list[dict[str, Any]], wanted: tuple[str, ...], wait: bool, as_json: bool
) -> None:
    if wait:
        found = [_settled(conductor, each) for each in found]
    if as_json:
        print_json({"instances": found})
    else:
        for each in found:
            click.echo(" ".join(str(part) for part in (each["uuid"], each["state"], each["reason"]) if part))
    if wait and any(each["state"] not in wanted for each in found):
        sys.exit(1)


def _settled(conductor: ServiceClient, instance: dict[str, Any]) -> dict[str, Any]:
    """Return an instance as it is once what was asked is done, or cannot be."""
    while instance["state"].startswith(_UNDER_WAY):
        time.sleep(LOOK_SECONDS)
        instance = conductor.ask("GET", f"{PATH}/{part_of_path(instance['uuid'])}")
    return instance
