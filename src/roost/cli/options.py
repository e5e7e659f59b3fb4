"""Options that several commands share."""

import sys
import time
from collections.abc import Callable

import click

from roost.cli.numbers import Number, WholeNumber

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
    type=WholeNumber(1, 65535),
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
    """Return the pairs of a repeatable option KEY=VALUE; a callback of click. Raises `BadParameter`."""
    pairs: dict[str, str] = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not equals or not key:
            raise click.BadParameter(f"{value!r} is not KEY=VALUE")
        if pairs.get(key, text) != text:
            raise click.BadParameter(f"{key} is given twice: {pairs[key]!r} and {text!r}")
        pairs[key] = text
    return pairs


def key_lists(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, list[str]]:
    """Return the values of each key of a repeatable option KEY=VALUE, whose keys may be repeated too.

    A callback of click. Raises `BadParameter`.
    """
    lists: dict[str, list[str]] = {}
    for value in values:
        [(key, text)] = key_values(ctx, param, (value,)).items()
        lists.setdefault(key, []).append(text)
    return lists


watching = click.option(
    "--watch",
    type=Number(min=0.1),
    metavar="SECONDS",
    help="Show it again after this many seconds, until interrupted.",
)


def watched(show: Callable[[], None], seconds: float | None) -> None:
    """Call ``show`` once, or every ``seconds``."""
    while True:
        if seconds is not None and sys.stdout.isatty():
            click.clear()
        show()
        if seconds is None:
            return
        time.sleep(seconds)
