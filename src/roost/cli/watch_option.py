"""The option ``--watch`` of commands that show a list."""

import sys
import time
from collections.abc import Callable

import click

from roost.cli.numbers import Number

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
