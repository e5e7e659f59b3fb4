"""Instances move to other hosts: ``roost instance migrate``, ``live-migrate``, ``resize``, ``evacuate``."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from roost.cli.instance_names import PATH, uuid_of
from roost.cli.move_steps import follow_move
from roost.cli.numbers import WholeNumber
from roost.cli.options import key_values
from roost.cli.output import action_as_json, print_json
from roost.cli.service_client import ServiceClient, part_of_path, with_conductor

F = TypeVar("F", bound=Callable[..., Any])

_to_host = click.option("--host", help="The host that it is to go to; without it the scheduler chooses one.")
_force = click.option(
    "--force", is_flag=True, help="No filter judges --host; it must have room nevertheless."
)
_wait = click.option(
    "--wait", is_flag=True, help="Print the steps as they happen, until it has moved or stays."
)
_any_cell = click.option(
    "--any-cell", is_flag=True, help="To a host of any cell; those of its own are preferred."
)


def _confirm(default: bool) -> Callable[[F], F]:
    return click.option(
        "--confirm/--no-confirm",
        default=default,
        show_default=True,
        help="Confirm the move as soon as the instance runs there, or let it wait for `roost move`.",
    )


@click.command(epilog="Example: roost instance migrate web-1 --host host-0002 --wait")
@click.argument("name", metavar="INSTANCE")
@_to_host
@_force
@_any_cell
@_confirm(True)
@_wait
@action_as_json
@with_conductor
def migrate(
    conductor: ServiceClient,
    name: str,
    host: str | None,
    force: bool,
    any_cell: bool,
    confirm: bool,
    wait: bool,
    as_json: bool,
) -> None:
    """Have an instance move to another host of its cell, or of any. Prints the uuid of the move.

    Its guest is stopped on the way. If no host can take it, it stays where it is: with --wait the exit status
    is 1 then.
    """
    body = {**_target(host, force), "confirm": confirm}
    # A service of before does not know it.
    _begin(conductor, name, "migrate", body | {"any_cell": True} if any_cell else body, wait, as_json)


@click.command("live-migrate", epilog="Example: roost instance live-migrate web-1 --wait")
@click.argument("name", metavar="INSTANCE")
@_to_host
@_force
@_wait
@action_as_json
@with_conductor
def live_migrate(
    conductor: ServiceClient, name: str, host: str | None, force: bool, wait: bool, as_json: bool
) -> None:
    """Have an instance move to another host of its cell while its guest runs on.

    Prints the uuid of the move. Until the guest has gone over, `roost move abort` keeps it where it is. If it
    stays, the exit status with --wait is 1.
    """
    _begin(conductor, name, "live-migrate", _target(host, force), wait, as_json)


@click.command(epilog="Example: roost instance resize web-1 --vcpus 4 --memory-mb 8192 --wait")
@click.argument("name", metavar="INSTANCE")
@click.option("--vcpus", type=WholeNumber(0), required=True, help="vCPUs.")
@click.option("--memory-mb", type=WholeNumber(0), required=True, help="Memory in MiB.")
@click.option("--disk-gb", type=WholeNumber(0), default=0, show_default=True, help="Root disk in GiB.")
@click.option(
    "--extra-spec",
    "extra_specs",
    multiple=True,
    callback=key_values,
    help="An extra spec of the flavor, KEY=VALUE.",
)
@_to_host
@_force
@click.option(
    "--in-place", is_flag=True, help="Its own host may be the target, if it has room for both sizes."
)
@_any_cell
@_confirm(False)
@_wait
@action_as_json
@with_conductor
def resize(
    conductor: ServiceClient,
    name: str,
    host: str | None,
    force: bool,
    in_place: bool,
    any_cell: bool,
    confirm: bool,
    wait: bool,
    as_json: bool,
    **flavor: Any,
) -> None:
    """Have an instance move to another host of its cell, or of any, with another flavor.

    Prints the uuid of the move.

    It waits to be confirmed there; `roost move revert` brings host and flavor of before back.
    """
    body = {**_target(host, force), "flavor": flavor, "confirm": confirm}
    # A service of before does not know them.
    body |= {key: True for key, wanted in (("in_place", in_place), ("any_cell", any_cell)) if wanted}
    _begin(conductor, name, "resize", body, wait, as_json)


@click.command(epilog="Example: roost instance evacuate web-1 --evidence 'rack 7 burned' --wait")
@click.argument("name", metavar="INSTANCE")
@click.option("--evidence", required=True, help="How it is known that no guest of it runs.")
@_to_host
@_force
@_wait
@action_as_json
@with_conductor
def evacuate(
    conductor: ServiceClient,
    name: str,
    evidence: str,
    host: str | None,
    force: bool,
    wait: bool,
    as_json: bool,
) -> None:
    """Have an instance run on another host of its cell, as its own is dead. Prints the uuid of the move.

    A host that is cut off runs on, and the instance would run twice: make sure that it is dead. Its agent
    must have been silent for a minute. `roost host evacuate` does it for all instances of a host.
    """
    body = {**_target(host, force), "evidence": evidence}
    _begin(conductor, name, "evacuate", body, wait, as_json)


INSTANCE_MOVES = (migrate, live_migrate, resize, evacuate)
"""The commands of this module, for the group ``roost instance``."""


def _target(host: str | None, force: bool) -> dict[str, Any]:
    """Return the target as a part of a request. A service of before does not know ``force``."""
    if force and host is None:
        raise click.UsageError("--force needs --host")
    return {"host": host, "force": True} if force else {"host": host}


def _begin(
    conductor: ServiceClient, name: str, kind: str, body: dict[str, Any], wait: bool, as_json: bool
) -> None:
    begun = conductor.ask("POST", f"{PATH}/{part_of_path(uuid_of(conductor, name))}/{kind}", body)
    if wait:
        follow_move(conductor, begun["uuid"], as_json)
    elif as_json:
        print_json(begun)
    else:
        click.echo(begun["uuid"])
