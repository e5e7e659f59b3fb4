"""The history of an instance as text: a line for each action, and a table of its events."""

from datetime import UTC, date, datetime
from typing import Any

import click
from rich.table import Table

from roost.cli.output import console

WORDS = {"bury": "put into cell0", "give_up": "given up"}
"""Texts for events whose names in the API are not plain words."""

HEADER = ("time (UTC)", "took", "event", "result", "host", "why")


def print_history(found: dict[str, Any]) -> None:
    """Print a history, which is a response of `GET /v1/instances/{uuid}/history`."""
    shown = console()
    facts = [f"{name} {found[name]}" for name in ("flavor", "cell") if found[name]]
    shown.print(", ".join([f"{found['uuid']} is {found['state']}", *facts]))
    for action in found["actions"]:
        shown.print()
        shown.print(heading(action))
        table = Table(*HEADER, box=None, pad_edge=False, padding=(0, 2, 0, 0))
        *narrow, why = table.columns
        for column in narrow:
            column.no_wrap = True
        why.overflow = "fold"
        for line in lines(action):
            table.add_row(*line)
        shown.print(table)
    if found["missing"]:
        click.echo(f"roost: missing: {', '.join(found['missing'])}", err=True)


def heading(action: dict[str, Any]) -> str:
    """Return an action as one line: its start, its result, its user, and the reason of its failure."""
    result = action["result"] or "not at its end"
    took = _took(action) if action["finished_at"] is not None else ""
    parts = [f"{_began(action):%Y-%m-%d} {action['kind']}: {result}{f' after {took}' if took else ''}"]
    if action["user_id"] is not None:
        parts.append(f"by {action['user_id']}")
    if action["request_id"] is not None:
        parts.append(action["request_id"])
    told = {event["reason"] for event in action["events"]}
    reason = "" if action["reason"] in (None, *told) else f": {action['reason']}"
    return ", ".join(parts) + reason


def lines(action: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of an action's events, in the columns of `HEADER`."""
    day = _began(action).date()
    return [_line(event, day) for event in action["events"]]


def _line(event: dict[str, Any], day: date) -> tuple[str, ...]:
    began = _began(event)
    later = "" if began.date() == day else f"{began:%Y-%m-%d} "
    number = "" if event["attempt"] is None else f" {event['attempt']}"
    code = None if event["code"] is None else f"({event['code']})"
    run = f"run {event['run']}" if event["name"] == "schedule" else None
    return (
        f"{later}{began:%H:%M:%S}.{began.microsecond // 1000:03}",
        "…" if event["finished_at"] is None else _took(event),
        f"{WORDS.get(event['name'], event['name'])}{number}",
        event["result"] or "",
        event["host"] or "",
        " ".join(each for each in (event["reason"], code, run) if each),
    )


def _began(entry: dict[str, Any]) -> datetime:
    return datetime.fromtimestamp(entry["started_at"], UTC)


def _took(entry: dict[str, Any]) -> str:
    """Return the duration of an event as text; empty if it took no time."""
    seconds = entry["finished_at"] - entry["started_at"]
    return "" if seconds <= 0 else f"{seconds:.3f} s" if seconds < 100 else f"{seconds:.0f} s"
