"""``roost top``: a running service, live in the terminal.

figures         rates and latencies, computed from two samples
view            the capacity and figures at one moment, read from the API and the metrics address
screen          a view as tables

On a terminal it has several views, each a pane:

panes           the panes: what each reads, and its rows
service_reader  reads of services over connections that stay open
background      the thread that reads what is shown
session         the pane that is shown, its first row, and how keys change that
frame           the lines of the whole screen
keyboard        keys, signals and the mode of the terminal
terminal        draws the screen until `q`
"""

import time
from collections.abc import Mapping

import click
import httpx
import msgspec
from rich.console import Console
from rich.live import Live

from roost.cli.connection import ServiceConnection, connected_to_all
from roost.cli.numbers import Number, WholeNumber
from roost.cli.output import console, document_as_json
from roost.cli.profiles import Service
from roost.cli.top.panes.cells import CellsPane
from roost.cli.top.panes.devices import DevicesPane
from roost.cli.top.panes.hosts import HostsPane
from roost.cli.top.panes.overview import OverviewPane
from roost.cli.top.panes.pane import Pane
from roost.cli.top.panes.refusals import RefusalsPane
from roost.cli.top.screen import screen
from roost.cli.top.service_reader import ServiceReader
from roost.cli.top.terminal import is_interactive, show_panes
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
@connected_to_all("placement", others_needed=False)
def top(
    connections: Mapping[Service, ServiceConnection],
    metrics: str | None,
    interval: float,
    fullest: int,
    once: bool,
    as_json: bool,
) -> None:
    """Watch a service: use, hosts, cells, GPUs, refusals; with --metrics requests, latency, lag, processes.

    Keys: 1 to 5 or tab show another view; arrows, page keys, home and end scroll; s sorts; / searches hosts
    by name; left and right choose a class of devices; q ends. Placement, scheduler and conductor are asked:
    at --url, or where their own environment variables or the profile say. Rates come from the metrics address
    and cover the interval between two samples. The token is that of a user with the role admin or service.

    Without a terminal it shows use and rates alone. As JSON it prints a line for each interval.
    """
    shown = console()
    connection = connections["placement"]
    headers = connection.headers()
    seconds = max(interval, MOST_ANSWER_SECONDS)
    with (
        httpx.Client(timeout=seconds, **connection.way()) as client,
        ServiceReader(connections, seconds) as services,
    ):
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
        elif is_interactive():
            show_panes(_panes(watcher, metrics), services, interval)
            return
        _follow(shown, watcher, metrics, interval)


def _panes(watcher: Watcher, metrics: str | None) -> list[Pane]:
    return [
        OverviewPane(watcher, metrics is not None),
        HostsPane(),
        CellsPane(),
        DevicesPane(),
        RefusalsPane(),
    ]


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
