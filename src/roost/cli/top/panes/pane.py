"""A pane: one view of a cloud, read from services and shown as lines below a head that stays."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from rich.text import Text

from roost.cli.tables import folded, one_line
from roost.cli.top.panes.columns import Cell, FittedColumns, PaneColumn
from roost.cli.top.service_reader import ServiceReader


class PaneQuery(NamedTuple):
    """The part of a pane that is asked for.

    ``pane``: its number. ``first`` and ``rows``: the rows, if the service pages them. ``sort``: an order of
    the pane. ``search``: a part of a name. ``choice``: the number of one of `PaneView.choices`.
    """

    pane: int
    first: int = 0
    rows: int = 0
    sort: str = ""
    search: str = ""
    choice: int = 0


class PaneView(Protocol):
    """The content of a pane. ``choices``: those of the arrows to the left and right."""

    choices: Sequence[str]

    def head(self, width: int) -> list[Text]:
        """Return the lines that stay while the others scroll."""
        raise NotImplementedError

    def total(self, width: int) -> int:
        """Return the number of all lines below the head, loaded or not."""
        raise NotImplementedError

    def lines(self, width: int, first: int, number: int) -> list[Text]:
        """Return the lines from ``first`` on; those that are not loaded are an ellipsis."""
        raise NotImplementedError


class Pane(Protocol):
    """A view of a cloud.

    ``title``: on its tab. ``key``: a letter that shows it, beside its number. ``pages``: the service pages
    its rows. ``sorts``: the orders of its rows. ``searches``: rows are searched by name.
    """

    title: str
    key: str
    pages: bool
    sorts: Sequence[str]
    searches: bool

    def read(self, services: ServiceReader, query: PaneQuery) -> PaneView:
        """Read what is to be shown. Raises `ServiceSilent`."""
        raise NotImplementedError


class TableView:
    """Rows in columns, below a summary.

    ``rows``: those that are loaded, from the row ``first`` of ``all_rows`` on. ``nothing``: a sentence in
    place of no rows.
    """

    def __init__(
        self,
        summary: Text,
        columns: Sequence[PaneColumn],
        rows: Sequence[Sequence[Cell]],
        first: int = 0,
        all_rows: int | None = None,
        nothing: str = "",
        choices: Sequence[str] = (),
    ) -> None:
        self.choices = choices
        self._summary = summary
        self._columns = columns
        self._rows = rows
        self._first = first
        self._all_rows = len(rows) if all_rows is None else all_rows
        self._nothing = nothing

    def head(self, width: int) -> list[Text]:
        """Return the summary and the titles of the columns."""
        summary = self._summary.copy()
        summary.truncate(width, overflow="ellipsis")
        return [summary, FittedColumns(self._columns, width).head()]

    def total(self, width: int) -> int:
        """Return the number of all rows."""
        return self._all_rows or len(self._sentence(width))

    def lines(self, width: int, first: int, number: int) -> list[Text]:
        """Return the rows that are loaded, and an ellipsis for each of the others."""
        if not self._all_rows:
            return [Text(line, "dim") for line in self._sentence(width)]
        fitted = FittedColumns(self._columns, width)
        lines = []
        for place in range(first, min(first + number, self._all_rows)):
            at = place - self._first
            loaded = 0 <= at < len(self._rows)
            lines.append(fitted.row(self._rows[at]) if loaded else Text("…", "dim"))
        return lines

    def _sentence(self, width: int) -> list[str]:
        return folded(one_line(self._nothing), max(width, 1))
