"""``roost events``: what happened in a cloud, and what happens."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import click
import msgspec

from roost.cli.numbers import Number
from roost.cli.output import as_json, output, print_json, print_table, utc
from roost.cli.service_client import PAGE, ServiceClient, ServiceRefused, with_conductor
from roost.cli.tables import one_line
from roost.conductor.events.types import EVENT_KINDS
from roost.model.errors import OperatorError

PATH = "/v1/events"

POLL_SECONDS = 1.0
"""Seconds between two questions for what follows."""

_HEADER = ("time (UTC)", "event", "cell", "about", "detail")
_UNAUTHORIZED = 401


@click.command(epilog="Example: roost events --follow --since 10 --kind host_down")
@click.option("--follow", "-f", is_flag=True, help="Print each event when it happens, until interrupted.")
@click.option(
    "--since",
    type=Number(min=0),
    default=60.0,
    show_default=True,
    metavar="MINUTES",
    help="Begin so many minutes ago.",
)
@click.option("--kind", type=click.Choice(EVENT_KINDS), metavar="KIND", help="Only events of this kind.")
@click.option("--cell", help="Only those of this cell.")
@click.option("--host", help="Only those of this host.")
@click.option("--instance", help="Only those of this instance, by its uuid.")
@as_json
@with_conductor
def events(conductor: ServiceClient, follow: bool, since: float, as_json: bool, **named: str | None) -> None:
    """Show what happened in the cloud: hosts and processes up and down, what operators did, repairs.

    With --follow each event is one line, with --json one line of JSON; a conductor that does not answer is
    asked again until it does, and no event is left out. The history of an instance is
    `roost instance history`.

    Exit status: 0 done, 1 refused, 2 could not run, 130 interrupted.
    """
    query = {**named, "since": time.time() - since * 60}
    if follow:
        if output().quiet or output().columns:
            raise click.UsageError("--follow prints whole events: it excludes --quiet and --columns")
        for event in _followed(conductor, query):
            click.echo(_line(event))
        return
    found = [event for page in _pages(conductor, query) for event in page["events"]]
    if as_json:
        print_json({"events": found})
    else:
        print_table(_HEADER, [_row(event) for event in found])


def _pages(
    conductor: ServiceClient, query: Mapping[str, object], marker: str | None = None
) -> Iterator[dict[str, Any]]:
    """The pages of what is there, after a marker."""
    more = True
    while more:
        page = conductor.ask("GET", PATH, query={**query, "limit": PAGE, "marker": marker})
        yield page
        marker, more = page["next"], page["more"]


def _followed(conductor: ServiceClient, query: Mapping[str, object]) -> Iterator[dict[str, Any]]:
    """All events, for ever. Only the first answer must come at once."""
    marker: str | None = None
    away = False
    while True:
        try:
            for page in _pages(conductor, query, marker):
                if away:
                    click.echo(f"roost: {conductor.connection} answers again", err=True)
                away = False
                yield from page["events"]
                marker = page["next"]
        except ServiceRefused as error:
            # A token that has expired is not asked for again by the client that has it.
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


def _row(event: Mapping[str, Any]) -> tuple[str, ...]:
    about = [event[name] for name in ("host", "node", "instance", "name") if event[name]]
    return (utc(event["at"]), event["kind"], event["cell"] or "", " ".join(about), event["detail"] or "")


def _line(event: Mapping[str, Any]) -> str:
    form = output().form
    if form == "json":
        return msgspec.json.encode(event).decode()
    texts = [one_line(text) for text in _row(event)]
    if form == "value":
        return "\t".join(texts)
    at, kind, *others = texts
    return "  ".join((at, f"{kind:<17}", *filter(None, others)))
