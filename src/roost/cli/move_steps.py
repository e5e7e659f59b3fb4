"""The steps of a move of an instance as text, and as they happen."""

import time
from typing import Any

import click

from roost.cli.output import print_json, text_of
from roost.cli.service_client import ServiceClient, part_of_path
from roost.model.move_states import CLEANING, DELETED, ENDED, FAILED_MOVE, SWITCHED

PATH = "/v1/moves"

LOOK_SECONDS = 1.0
"""Seconds between two reads of a move that is followed."""

HEADER = ("at (UTC)", "state", "host", "reason")


def step_rows(move: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the rows of the steps of a move, in the columns of `HEADER`."""
    return [
        (text_of("since", each["at"]), each["state"], each["host"] or "", each["reason"] or "")
        for each in move["steps"]
    ]


def follow_move(conductor: ServiceClient, uuid: str, as_json: bool) -> None:
    """Print the steps of a move as they happen, until it has ended, or waits for somebody or a dead host.

    JSON: the whole move at each change. Exits with status 1 if the instance has stayed where it was.
    """
    told = 0
    while True:
        move = conductor.ask("GET", f"{PATH}/{part_of_path(uuid)}")
        if as_json and len(move["steps"]) > told:
            print_json(move)
        elif not as_json:
            for row in step_rows(move)[told:]:
                click.echo("  ".join(part for part in row if part))
        told = len(move["steps"])
        if _is_over(move):
            break
        time.sleep(LOOK_SECONDS)
    if move["state"] in (FAILED_MOVE, DELETED):
        click.echo(f"roost: the instance has not moved: {move['reason']}", err=True)
        raise SystemExit(1)


def _is_over(move: dict[str, Any]) -> bool:
    """Return whether nothing is left to wait for: a host that is dead destroys nothing before it is back."""
    state = move["state"]
    waits = (state == SWITCHED and not move["confirm"]) or (state == CLEANING and move["kind"] == "evacuate")
    return waits or state in ENDED
