"""Options that several commands share, and how commands print results."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime

import click
import msgspec
from rich.console import Console
from rich.table import Table

_ANY_WIDTH = 100_000
"""Characters of a line that is written to no terminal, at most."""

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")

database_url = click.option(
    "--database", "url", metavar="URL", required=True, help="SQLAlchemy URL, as in sqlite:///roost.db"
)

placement_database = click.option(
    "--database", metavar="URL", help="SQLAlchemy URL; else [placement_database] connection."
)

config_files = click.option(
    "--config-file",
    "config_files",
    type=click.Path(),
    multiple=True,
    help="A file with options by upstream's names; several add up.  [default: placement.conf in "
    "$OS_PLACEMENT_CONFIG_DIR]",
)

settings = click.option(
    "--set", "settings", metavar="GROUP.OPTION=VALUE", multiple=True, help="An option by upstream's name."
)

metrics_port = click.option(
    "--metrics-port",
    type=click.IntRange(1, 65535),
    help="Serve metrics for Prometheus under /metrics on this port; without it nothing is counted.",
)

metrics_host = click.option(
    "--metrics-host", default="127.0.0.1", show_default=True, help="Address of --metrics-port to listen on."
)

no_authentication = click.option(
    "--insecure-no-authentication",
    "insecure",
    is_flag=True,
    help="Serve on an address that other machines can reach although tokens are not checked.",
)


def key_values(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """The callback of an option that is given several times, as KEY=VALUE. Raises `BadParameter`."""
    pairs = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{value!r} is not KEY=VALUE")
        pairs[key] = text
    return pairs


def print_json(document: object) -> None:
    """Print a document as indented JSON."""
    click.echo(msgspec.json.format(msgspec.json.encode(document)))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: int = 0) -> None:
    """Print rows under a header. On a terminal long values are folded, elsewhere each row is one line.

    ``numbers``: the number of last columns that are aligned to the right.
    """
    table = Table()
    for place, name in enumerate(header):
        right = place >= len(header) - numbers
        table.add_column(name, overflow="fold", justify="right" if right else "left")
    for row in rows:
        table.add_row(*row)
    console = Console(markup=False, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        # A value that is folded cannot be searched for.
        console.width = _ANY_WIDTH
    console.print(table)


def utc(seconds: float) -> str:
    """A time as tables show it. ``seconds``: since the epoch."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
