"""``roost events``: past and current events of a cloud."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import click
import msgspec

from roost.cli.numbers import Number
from roost.cli.output import as_json, output, print_json, print_table, utc
from roost.cli.service_client import PAGE, RequestRefused, ServiceClient, with_conductor
from roost.cli.tables import one_line
from roost.model.errors import OperatorError
from roost.state.api_database.event_types import EVENT_KINDS

PATH = "/v1/events"

POLL_SECONDS = 1.0
"""Seconds between two requests for new events."""

_HEADER = ("time (UTC)", "event", "cell", "about", "detail", "by")
_UNAUTHORIZED = 401


@click.command(epilog="Example: roost events --follow --since 10 --kind host_down")
@click.option("--follow", "-f", is_flag=True, help="Print each event when it happens, until interrupted.")
@click.option(
    "--since",
    type=Number(min=0),
    default=60.0,
    show_default=True,
    metavar="MINUTES",
    help="Begin this many minutes ago.",
)
@click.option("--kind", type=click.Choice(EVENT_KINDS), metavar="KIND", help="Only events of this kind.")
@click.option("--cell", help="Only those of this cell.")
@click.option("--host", help="Only those of this host.")
@click.option("--instance", help="Only those of this instance, by its uuid.")
@as_json
@with_conductor
def events(conductor: ServiceClient, follow: bool, since: float, as_json: bool, **named: str | None) -> None:
    """Show what happened in the cloud, and with --follow what happens.

    Events are hosts and processes that come and go, what operators did, repairs, and instances that changed
    state.

    With --follow each event is one line, with --json one line of JSON; a conductor that does not answer is
    asked again until it does, and no event is left out. A cell that does not answer is named; what instances
    did there is shown when it answers again. The history of an instance is `roost instance history`.

    Exit status: 0 done, 1 refused, 2 could not run, 130 interrupted.
    """
    query = {**named, "since": time.time() - since * 60}
    if follow:
        if output().quiet or output().columns:
            raise click.UsageError("--follow prints whole events: it excludes --quiet and --columns")
        for event in _followed(conductor, query):
            click.echo(_line(event))
        return
    pages = list(_pages(conductor, query))
    found = [event for page in pages for event in page["events"]]
    silent = _silent(pages[-1])
    if as_json:
        print_json({"events": found, "cells_down": silent})
        return
    if output().quiet:
        print_table(("about",), [(_subject(event),) for event in found])
    else:
        print_table(_HEADER, [_row(event) for event in found])
    if silent:
        click.echo(f"roost: {_cells(silent)} cannot be asked; what instances did there is left out", err=True)


def _pages(
    conductor: ServiceClient, query: Mapping[str, object], marker: str | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the pages of existing events after a marker."""
    more = True
    while more:
        page = conductor.ask("GET", PATH, query={**query, "limit": PAGE, "marker": marker})
        yield page
        marker, more = page["next"], page["more"]


def _followed(conductor: ServiceClient, query: Mapping[str, object]) -> Iterator[dict[str, Any]]:
    """Yield all events, without end. Only the first request must succeed at once."""
    marker: str | None = None
    away = False
    silent: list[str] = []
    while True:
        try:
            for page in _pages(conductor, query, marker):
                if away:
                    click.echo(f"roost: {conductor.connection} answers again", err=True)
                away = False
                silent = _told_silent(silent, _silent(page))
                yield from page["events"]
                marker = page["next"]
        except RequestRefused as error:
            # A client does not renew its token when it expires.
            if error.status != _UNAUTHORIZED or marker is None or away:
                raise
            conductor, away = ServiceClient(conductor.connection), True
            continue
        except OperatorError as error:
            if marker is None:
                raise
            if not away:
                click.echo(f"roost: {error}; it is asked again", err=True)
            away = True
        time.sleep(POLL_SECONDS)


def _silent(page: Mapping[str, Any]) -> list[str]:
    """Return the cells that a page has no events of. An earlier version of the conductor names none."""
    return list(page.get("cells_down", ()))


def _told_silent(before: list[str], now: list[str]) -> list[str]:
    """Print the cells that have stopped or resumed answering, and return those that do not answer."""
    if gone := [name for name in now if name not in before]:
        click.echo(f"roost: {_cells(gone)} cannot be asked; what instances do there comes later", err=True)
    if back := [name for name in before if name not in now]:
        click.echo(f"roost: {_cells(back)} can be asked again", err=True)
    return now


def _cells(names: list[str]) -> str:
    return f"{'cell' if len(names) == 1 else 'cells'} {', '.join(names)}"


def _row(event: Mapping[str, Any]) -> tuple[str, ...]:
    about = [event[name] for name in ("host", "node", "instance", "name") if event[name]]
    by = event.get("by") or {}
    return (
        utc(event["at"]),
        event["kind"],
        event["cell"] or "",
        " ".join(about),
        event["detail"] or "",
        by.get("user_id", ""),
    )


def _subject(event: Mapping[str, Any]) -> str:
    """Return the subject of an event: an instance rather than the host that it is on."""
    named = (event[name] for name in ("instance", "node", "host", "name", "cell", "kind"))
    return next(str(each) for each in named if each)


def _line(event: Mapping[str, Any]) -> str:
    form = output().form
    if form == "json":
        return msgspec.json.encode(event).decode()
    texts = [one_line(text) for text in _row(event)]
    if form == "value":
        return "\t".join(texts)
    at, kind, cell, about, detail, by = texts
    by = f"by {by}" if by else ""
    return "  ".join((at, f"{kind:<18}", *filter(None, (cell, about, detail, by))))
