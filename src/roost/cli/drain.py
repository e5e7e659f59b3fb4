"""Drains of cells, hosts and nodes: their options, and the instances that are left."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

from roost.cli.output import print_json, print_table
from roost.cli.service_client import ServiceClient

WAIT_SECONDS = 2.0
"""Seconds between two checks of a condition that a command waits for."""

F = TypeVar("F", bound=Callable[..., Any])


def drain_options(command: F) -> F:
    """Add the options of a drain to a command."""
    reason = click.option("--reason", default="it is drained", show_default=True, help="Why.")
    wait = click.option("--wait", is_flag=True, help="Wait until no instance is left.")
    return reason(wait(command))


def tell_left(
    conductor: ServiceClient,
    where: dict[str, str],
    wait: bool,
    as_json: bool,
    drained: dict[str, str],
    node: str | None = None,
) -> None:
    """Print the instances that are left at a drained place; with ``wait`` first wait until they are gone.

    ``where``: the query of the list of instances. ``drained``: names the place in JSON. ``node``: only
    instances on this node. Exits with status 1 if instances are left.
    """
    while True:
        left = [
            each
            for page in conductor.pages("/v1/instances", "instances", {**where, "all_projects": True})
            for each in page["instances"]
            if each["state"] != "error" and node in (None, each["node"])
        ]
        if not (wait and left):
            break
        time.sleep(WAIT_SECONDS)
    if as_json:
        print_json({**drained, "instances": left})
    elif left:
        rows = [(each["uuid"], each["state"], each["host"] or "?", each["project_id"]) for each in left]
        print_table(("uuid", "state", "host", "project"), rows)
    if left:
        raise SystemExit(1)
