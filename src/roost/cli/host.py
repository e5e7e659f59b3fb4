"""``roost host``: the hosts of a running cloud."""

import os
import time
from pathlib import Path
from typing import Any

import click

from roost.cli.command_group import CommandGroup
from roost.cli.drain import (
    WAIT_SECONDS,
    DrainedPlace,
    drain_by_moves,
    drain_options,
    exit_of_moves,
    live_option,
    move_options,
    tell_left,
    tell_progress,
)
from roost.cli.numbers import WholeNumber
from roost.cli.options import watched, watching
from roost.cli.output import action_as_json, as_json, note, print_facts, print_json, print_table
from roost.cli.service_client import RequestRefused, ServiceClient, part_of_path, with_conductor
from roost.model.errors import OperatorError

CONFLICT = 409
STATES = ("up", "down", "unknown")

of_cell = click.option("--cell", help="The cell, if several have a host of this name.")
token_file = click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Append host and token to this file, which only its owner may read, and print nothing.",
)


@click.group(cls=CommandGroup)
def host() -> None:
    """Add, show, disable, drain, move and remove the hosts of all cells.

    Exit status: 0 done, 1 refused, 2 could not run.
    """


@host.command(epilog="Example: roost host add --cell cell1 rack1-01 rack1-02 --token-file tokens")
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@click.option("--cell", required=True, help="The cell of the hosts.")
@token_file
@action_as_json
@with_conductor
def add(
    conductor: ServiceClient, hosts: tuple[str, ...], cell: str, token_file: Path | None, as_json: bool
) -> None:
    """Add hosts to a cell. Prints the token of each host's agent, which is shown only this once."""
    answer = conductor.ask("POST", "/v1/hosts", {"cell": cell, "hosts": hosts})
    _give_tokens(answer["hosts"], token_file, as_json)


@host.command("list", epilog="Example: roost host list --state down --watch 2")
@click.option("--cell", help="Only the hosts of this cell.")
@click.option(
    "--state",
    "states",
    type=click.Choice(STATES),
    multiple=True,
    help="Only hosts in this state; may be given several times.",
)
@click.option("--enabled/--disabled", "is_enabled", default=None, help="Only hosts that are enabled, or not.")
@click.option("--limit", type=WholeNumber(1), metavar="N", help="Show at most N hosts.")
@watching
@as_json
@with_conductor
def list_(
    conductor: ServiceClient,
    cell: str | None,
    states: tuple[str, ...],
    is_enabled: bool | None,
    limit: int | None,
    watch: float | None,
    as_json: bool,
) -> None:
    """List hosts: their state as the conductor sees it, and what is on them."""

    def show() -> None:
        hosts: list[dict[str, Any]] = []
        down: set[str] = set()
        query = {
            "cell": cell,
            "limit": limit,
            "state": ",".join(dict.fromkeys(states)) or None,
            "enabled": is_enabled,
        }
        for page in conductor.pages("/v1/hosts", "hosts", query):
            hosts += page["hosts"]
            down.update(page["cells_down"])
        if as_json:
            print_json({"hosts": hosts, "cells_down": sorted(down)})
            return
        rows = [
            (
                each["host"],
                each["cell"],
                each["state"],
                _enabled(each),
                _number(each["nodes"]),
                _number(None if each["instances"] is None else sum(each["instances"].values())),
                _number(each["orders"]),
            )
            for each in hosts
        ]
        print_table(("host", "cell", "state", "new instances", "nodes", "instances", "orders"), rows, 3)
        warn_of_cells(down)

    watched(show, watch)


@host.command(epilog="Example: roost host show rack1-01")
@click.argument("name", metavar="HOST")
@of_cell
@as_json
@with_conductor
def show(conductor: ServiceClient, name: str, cell: str | None, as_json: bool) -> None:
    """Show a host, and how far it is emptied if its instances are moved away."""
    path, query = f"/v1/hosts/{part_of_path(name)}", {"cell": cell}
    found = conductor.ask("GET", path, query=query)
    drains = []
    if found["enabled"] is False and found["state"] != "unknown":
        drain = conductor.ask("GET", f"{path}/drain", query=query)
        drains = [drain] if drain["move"] or drain["moving"] else []
    if as_json:
        print_json({**found, "drain": drains[0]} if drains else found)
        return
    print_facts(found)
    tell_progress(drains)


@host.command(epilog="Example: roost host enable rack1-01")
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@of_cell
@action_as_json
@with_conductor
def enable(conductor: ServiceClient, hosts: tuple[str, ...], cell: str | None, as_json: bool) -> None:
    """Place new instances on hosts again."""
    _change(conductor, hosts, cell, {"enabled": True}, as_json)


@host.command(epilog="Example: roost host disable rack1-01 --reason 'fan 3'")
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...")
@of_cell
@click.option("--reason", help="Why, for those who read the list of hosts.")
@action_as_json
@with_conductor
def disable(
    conductor: ServiceClient, hosts: tuple[str, ...], cell: str | None, reason: str | None, as_json: bool
) -> None:
    """Place no new instances on hosts. Those that are there stay."""
    _change(conductor, hosts, cell, {"enabled": False, "reason": reason}, as_json)


@host.command(epilog="Example: roost host drain rack1-01 --move --wait")
@click.argument("name", metavar="HOST")
@of_cell
@drain_options
@move_options
@live_option
@action_as_json
@with_conductor
def drain(
    conductor: ServiceClient,
    name: str,
    cell: str | None,
    reason: str,
    wait: bool,
    move: bool,
    pause: bool,
    live: bool,
    as_json: bool,
) -> None:
    """Disable a host and list the instances that are still there.

    Its users delete or rebuild them. With --move conductors move them to other hosts of the cell, a few at
    once ([conductor] moves_per_host), also after this command has ended. Those that cannot move are listed
    with the reason, and tried again. Without --move an earlier --move is paused. Each guest is stopped on the
    way; with --live only if it cannot move while it runs.

    Exit status 1: instances are left. With --move and --wait: none of them can move.
    """
    path = f"/v1/hosts/{part_of_path(name)}"
    if move or pause or live:
        places = [DrainedPlace(path, {"cell": cell})]
        shown = drain_by_moves(conductor, places, reason=reason, move=move, pause=pause, wait=wait, live=live)
        if as_json:
            print_json(shown[0])
        else:
            tell_progress(shown)
        return exit_of_moves(shown, pause)
    found = conductor.ask("PUT", path, {"enabled": False, "reason": reason}, {"cell": cell})
    return tell_left(conductor, {"host": name, "cell": found["cell"]}, wait, as_json, {"host": name})


@host.command(epilog="Example: roost host evacuate rack1-01 --evidence 'rack 7 burned'")
@click.argument("name", metavar="HOST")
@click.option("--evidence", required=True, help="How it is known that no guest runs there.")
@action_as_json
@with_conductor
def evacuate(conductor: ServiceClient, name: str, evidence: str, as_json: bool) -> None:
    """Have all instances of a host that is dead run on other hosts of its cell. Prints their moves.

    A host that is cut off runs on, and its instances would run twice: make sure that it is dead. Its agent
    must have been silent for a minute. Exit status 1: some cannot be evacuated now, for the reasons printed.
    """
    answer = conductor.ask("POST", f"/v1/hosts/{part_of_path(name)}/evacuate", {"evidence": evidence})
    if as_json:
        print_json(answer)
    else:
        rows = [(each["uuid"], each["instance"], each["state"]) for each in answer["moves"]]
        print_table(("uuid", "instance", "state"), rows)
        for uuid, reason in answer["refused"].items():
            note(f"instance {uuid} is not evacuated: {reason}")
    if answer["refused"]:
        raise SystemExit(1)


@host.command(epilog="Example: roost host move rack1-01 --to cell2")
@click.argument("name", metavar="HOST")
@click.option("--to", required=True, metavar="CELL", help="The cell that it goes to.")
@of_cell
@token_file
@action_as_json
@with_conductor
def move(
    conductor: ServiceClient,
    name: str,
    to: str,
    cell: str | None,
    token_file: Path | None,
    as_json: bool,
) -> None:
    """Move an empty host, whose agent is stopped, to another cell. Prints its new token."""
    answer = conductor.ask("POST", f"/v1/hosts/{part_of_path(name)}/move", {"cell": to}, {"cell": cell})
    _give_tokens([answer], token_file, as_json)


@host.command(epilog="Example: roost host remove rack1-01")
@click.argument("name", metavar="HOST")
@of_cell
@click.option("--force", is_flag=True, help="End the instances on it. Needs --evidence.")
@click.option("--evidence", help="How it is known that no guest runs there any more.")
@action_as_json
@with_conductor
def remove(
    conductor: ServiceClient, name: str, cell: str | None, force: bool, evidence: str | None, as_json: bool
) -> None:
    """Remove a host without instances, whose agent is stopped, and its providers from placement.

    With --force its instances are ended: what was being built is built elsewhere, what ran is in error. The
    command waits until their claims are freed.
    """
    if force != (evidence is not None):
        raise click.UsageError("--force and --evidence go together")
    query = {"cell": cell, "force": force or None, "evidence": evidence}
    until = time.monotonic() + 60.0
    while True:
        try:
            answer = conductor.ask("DELETE", f"/v1/hosts/{part_of_path(name)}", query=query)
            break
        except RequestRefused as error:
            if not force or error.status != CONFLICT or time.monotonic() > until:
                raise
            time.sleep(WAIT_SECONDS)
    print_removed(answer, as_json)


@host.command("renew-token", epilog="Example: roost host renew-token rack1-01")
@click.argument("name", metavar="HOST")
@of_cell
@click.option("--revoke", is_flag=True, help="End the old ones now: somebody else may know one.")
@token_file
@action_as_json
@with_conductor
def renew_token(
    conductor: ServiceClient,
    name: str,
    cell: str | None,
    revoke: bool,
    token_file: Path | None,
    as_json: bool,
) -> None:
    """Make a new token for a host's agent. The old one is valid until the new one is used.

    With --revoke the agent is refused until it is started with the new token; its guests go on.
    """
    query = {"cell": cell, "revoke": revoke or None}
    answer = conductor.ask("POST", f"/v1/hosts/{part_of_path(name)}/token", query=query)
    _give_tokens([answer], token_file, as_json)


@host.command(epilog="Example: roost host accept rack1-01")
@click.argument("name", metavar="HOST")
@of_cell
@action_as_json
@with_conductor
def accept(conductor: ServiceClient, name: str, cell: str | None, as_json: bool) -> None:
    """Let a held agent carry out orders again. What its cell's database says counts as right."""
    accepted = conductor.ask("POST", f"/v1/hosts/{part_of_path(name)}/accept", query={"cell": cell})
    if as_json:
        print_json(accepted or {"host": name})


def _change(
    conductor: ServiceClient,
    hosts: tuple[str, ...],
    cell: str | None,
    body: dict[str, object],
    as_json: bool,
) -> None:
    """Change hosts, one after the other."""
    path = "/v1/hosts/{}"
    changed = [conductor.ask("PUT", path.format(part_of_path(name)), body, {"cell": cell}) for name in hosts]
    if as_json:
        print_json({"hosts": changed})


def warn_of_cells(down: set[str]) -> None:
    """Print a line to standard error for cells that do not answer."""
    if down:
        click.echo(f"roost: cannot be asked: {', '.join(sorted(down))}", err=True)


def _give_tokens(added: list[dict[str, Any]], file: Path | None, as_json: bool) -> None:
    if file is not None:
        lines = "".join(f"{each['host']} {each['token']}\n" for each in added)
        try:
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w") as opened:
                opened.write(lines)
        except OSError as error:
            raise OperatorError(
                f"the hosts are added, but {file} cannot be written: {error.strerror}. Make new tokens with "
                "roost host renew-token"
            ) from error
    elif as_json:
        print_json({"hosts": added})
    else:
        for each in added:
            click.echo(f"{each['host']} {each['token']}")


def print_removed(answer: dict[str, Any], as_json: bool) -> None:
    """Print the answer to the removal of a host or node: the providers that stay."""
    if as_json:
        print_json(answer)
        return
    for each in answer["kept_providers"]:
        note(f"stays in placement: {each['uuid']} {each['name']}")


def told_of(place: dict[str, Any]) -> str:
    """Return `yes` if a place gets new instances, or why not; `unknown` if its cell does not answer."""
    if place["enabled"] is not False:
        return "unknown" if place["enabled"] is None else "yes"
    return f"disabled: {place['reason']}" if place["reason"] else "disabled"


def _enabled(host: dict[str, Any]) -> str:
    if host["held"] is not None:
        return f"held: {host['held']}"
    if host["enabled"] is not False and host.get("refused") is not None:
        return f"refused: {host['refused']}"
    return told_of(host)


def _number(value: int | None) -> str:
    return "?" if value is None else str(value)
