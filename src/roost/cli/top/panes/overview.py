"""The overview: use by resource class, the fullest hosts, and the rates of the service that has metrics."""

import time
from collections.abc import Sequence
from functools import lru_cache

from rich.console import Console
from rich.text import Text

from roost.cli.top.panes.pane import PaneQuery
from roost.cli.top.screen import headline, tables
from roost.cli.top.service_reader import ServiceReader
from roost.cli.top.view import View, Watcher


class OverviewTables:
    """A view of the watcher, as lines."""

    choices: Sequence[str] = ()

    def __init__(self, view: View, has_metrics: bool, now: float) -> None:
        self._view = view
        self._has_metrics = has_metrics
        self._now = now
        self._of_width = lru_cache(maxsize=1)(self._lines)

    def head(self, width: int) -> list[Text]:
        """Return the numbers of the fleet, and what cannot be read."""
        said = Text(headline(self._view))
        said.truncate(width, overflow="ellipsis")
        return [said]

    def total(self, width: int) -> int:
        """Return the number of lines of all tables."""
        return len(self._of_width(width))

    def lines(self, width: int, first: int, number: int) -> list[Text]:
        """Return lines of the tables."""
        return self._of_width(width)[first : first + number]

    def _lines(self, width: int) -> list[Text]:
        console = Console(width=width, markup=False, highlight=False, color_system="truecolor")
        drawn = console.render_lines(tables(self._view, self._has_metrics, self._now), pad=False)
        return [
            Text.assemble(*((each.text, each.style or "") for each in line), no_wrap=True) for line in drawn
        ]


class OverviewPane:
    """The pane of the overview."""

    title = "overview"
    key = "o"
    pages = False
    sorts: Sequence[str] = ()
    searches = False

    def __init__(self, watcher: Watcher, has_metrics: bool) -> None:
        self._watcher = watcher
        self._has_metrics = has_metrics

    def read(self, services: ServiceReader, query: PaneQuery) -> OverviewTables:
        """Read placement and the metrics address."""
        return OverviewTables(self._watcher.look(), self._has_metrics, time.time())
