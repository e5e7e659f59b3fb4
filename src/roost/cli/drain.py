"""Drains of cells, hosts and nodes: their options, the instances that are left, and the progress of moves."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import click

from roost.cli.output import note, print_json, print_table
from roost.cli.progress import no_progress, progress
from roost.cli.service_client import ServiceClient

WAIT_SECONDS = 2.0
"""Seconds between two checks of a condition that a command waits for."""

F = TypeVar("F", bound=Callable[..., Any])


def drain_options(command: F) -> F:
    """Add the options of a drain to a command."""
    reason = click.option("--reason", default="it is drained", show_default=True, help="Why.")
    wait = click.option("--wait", is_flag=True, help="Wait until no instance is left.")
    return reason(wait(command))


def move_options(command: F) -> F:
    """Add the options of a drain that can move instances to a command."""
    move = click.option("--move", is_flag=True, help="Move the instances to other hosts.")
    pause = click.option(
        "--pause", is_flag=True, help="Begin no further moves; those under way go on. --move resumes it."
    )
    return move(pause(no_progress(command)))


def live_option(command: F) -> F:
    """Add the option of a drain whose instances may move while they run."""
    return click.option(
        "--live",
        is_flag=True,
        help="With --move: while they run, if they can; others are stopped on the way.",
    )(command)


class DrainedPlace(NamedTuple):
    """A cell, a host or a node that is drained: its path in the API, and the query that names its cell."""

    path: str
    query: Mapping[str, object]


def drain_by_moves(
    conductor: ServiceClient,
    places: Sequence[DrainedPlace],
    *,
    reason: str,
    move: bool,
    pause: bool,
    wait: bool,
    live: bool = False,
) -> list[dict[str, Any]]:
    """Have instances moved away from places, or pause that; returns the progress of each place.

    With ``wait`` it returns when all instances are moved, or none of those that are left can move. Raises
    `click.UsageError` if options exclude each other.
    """
    if pause and (move or wait):
        raise click.UsageError("--pause goes with neither --move nor --wait")
    if live and not move:
        raise click.UsageError("--live goes with --move only")
    # A service of before does not know it.
    body = {"enabled": False, "reason": reason, "move": move} | ({"live": True} if live else {})
    for place in places:
        conductor.ask("PUT", place.path, body, place.query)
    with progress("moving instances") as meter:
        while True:
            shown = [conductor.ask("GET", f"{each.path}/drain", query=each.query) for each in places]
            left, moved, moving, stuck, waiting = (
                sum(each[name] for each in shown) for name in ("left", "moved", "moving", "stuck", "waiting")
            )
            meter.count(moved, moved + left)
            meter.detail = f"{moving} under way, {stuck} cannot move"
            if not wait or not (moving or waiting):
                return shown
            time.sleep(WAIT_SECONDS)


def tell_progress(shown: Sequence[Mapping[str, Any]]) -> None:
    """Print the progress of drains with moves: numbers, and the instances that cannot move, with reasons."""
    for each in shown:
        name = " ".join(part for part in (each["host"] or f"cell {each['cell']}", each["node"]) if part)
        said = "" if each["move"] else ", paused"
        note(
            f"{name}: {each['left']} left, {each['moving']} moving, {each['moved']} moved, "
            f"{each['stuck']} cannot move{said}"
        )
        if each["held_back_by"]:
            note(f"{each['held_back_by']} processes or agents do not know moves yet: see roost service list")
    rows = [
        (
            staying["instance"],
            staying["state"],
            each["host"] or each["cell"],
            str(staying["tries"]),
            staying["reason"] or "",
        )
        for each in shown
        for staying in each["staying"]
    ]
    if rows:
        print_table(("uuid", "state", "at", "tries", "why"), rows)


def exit_of_moves(shown: Sequence[Mapping[str, Any]], pause: bool) -> None:
    """Exit with status 1 if instances are left, unless the drain was paused."""
    if not pause and any(each["left"] for each in shown):
        raise SystemExit(1)


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
