"""Times on the command line."""

from datetime import datetime

import click

_FORMS = ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S")
EXAMPLES = "2026-11-26, 2026-11-26T08:00 or 2026-11-26T08:00:30"


class TimeParameter(click.DateTime):
    """A date, or a date with a time."""

    name = "time"

    def __init__(self) -> None:
        super().__init__(_FORMS)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the word that stands for the value in help texts."""
        return "TIME"

    def convert(
        self, value: str | datetime, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Return the time. Raises `BadParameter`, which names the value and the expected form."""
        try:
            found: datetime = super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is no time: write it as {EXAMPLES}", param, ctx)
        return found
