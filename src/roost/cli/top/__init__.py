"""``roost top``: a running service, live in the terminal.

figures   rates and latencies, computed from two samples
view      the capacity and figures at one moment, read from the API and the metrics address
screen    a view as tables
"""

import time

import click
import httpx
import msgspec
from rich.console import Console
from rich.live import Live

from roost.cli.connection import ServiceConnection, connected_to
from roost.cli.numbers import Number, WholeNumber
from roost.cli.output import console, document_as_json
from roost.cli.top.screen import screen
from roost.cli.top.view import MOST_ANSWER_SECONDS, View, Watcher
from roost.model.errors import OperatorError

SOMETHING_UNREACHABLE = 1


@click.command(epilog="Example: roost top --url http://localhost:8778 --metrics http://localhost:9100")
@click.option("--metrics", metavar="URL", help="The service's metrics address, see --metrics-port.")
@click.option(
    "--interval",
    type=Number(min=0.1),
    default=2.0,
    show_default=True,
    help="Seconds between two samples.",
)
@click.option(
    "--fullest",
    type=WholeNumber(0, 1000),
    default=10,
    show_default=True,
    help="Number of the fullest hosts to show.",
)
@click.option("--once", is_flag=True, help="Show one interval and end. Status 1: an address does not answer.")
@document_as_json
@connected_to("placement")
def top(
    connection: ServiceConnection,
    metrics: str | None,
    interval: float,
    fullest: int,
    once: bool,
    as_json: bool,
) -> None:
    """Watch a service: hosts, use, requests, decisions, refusals, latency, lag and processes.

    Hosts and use come from the API (GET /v1/capacity). All else comes from the metrics address and covers the
    interval between two samples. The token is that of a user with the role admin or service.
    As JSON it prints a line for each interval.
    """
    shown = console()
    headers = connection.headers()
    seconds = max(interval, MOST_ANSWER_SECONDS)
    with httpx.Client(timeout=seconds, **connection.way()) as client:
        try:
            watcher = Watcher(client, connection.url, metrics, headers, fullest)
        except httpx.InvalidURL as error:
            raise OperatorError(f"--metrics {metrics} is not a URL: {error}") from error
        if once:
            view = _after_one_interval(watcher, metrics, interval)
            _print(shown, view, metrics, as_json)
            raise SystemExit(SOMETHING_UNREACHABLE if view.problems else 0)
        if as_json:
            _follow_as_json(watcher, interval)
        _follow(shown, watcher, metrics, interval)


def _after_one_interval(watcher: Watcher, metrics: str | None, interval: float) -> View:
    view = watcher.look()
    if metrics is None:
        return view
    time.sleep(interval)
    return watcher.look()


def _follow(console: Console, watcher: Watcher, metrics: str | None, interval: float) -> None:
    with Live(console=console, screen=console.is_terminal, auto_refresh=False) as live:
        while True:
            live.update(screen(watcher.look(), metrics is not None, time.time()), refresh=True)
            time.sleep(interval)


def _follow_as_json(watcher: Watcher, interval: float) -> None:
    while True:
        click.echo(msgspec.json.encode(watcher.look()))
        time.sleep(interval)


def _print(console: Console, view: View, metrics: str | None, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode(view))
    else:
        console.print(screen(view, metrics is not None, time.time()))
