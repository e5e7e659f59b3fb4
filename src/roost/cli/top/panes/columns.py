"""Rows of a screen: cells in columns whose widths are fixed, so that nothing moves while values change."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.text import Text

from roost.cli.bars import percent
from roost.cli.tables import GAP, one_line, shortened

Cell = str | Text

LEAST_NAME: Final = 16
"""Least columns of a name. Other columns leave a narrow screen before it gets fewer."""

MOST_NAME: Final = 48
"""Most columns of a name: on a wide screen the numbers stay beside it."""

NEARLY_FULL: Final = 0.9
"""Share in use from which it is red."""


class PaneColumn(NamedTuple):
    """A column.

    ``width``: its characters; 0: the rest of the line, which the column of names takes. ``right``: aligned to
    the right. ``rank``: the columns with the highest rank leave a narrow screen first. ``ends``: the end of a
    long text is kept, where names of hosts differ.
    """

    title: str
    width: int = 0
    right: bool = False
    rank: int = 0
    ends: bool = False


class FittedColumns:
    """The columns that fit a screen of so many characters a line."""

    def __init__(self, columns: Sequence[PaneColumn], width: int) -> None:
        places = [*range(len(columns))]
        while _least(columns, places) > width and (most := max(columns[each].rank for each in places)):
            places = [each for each in places if columns[each].rank < most]
        rest = width - _least(columns, places) + LEAST_NAME
        self._places = places
        self._columns = [columns[each] for each in places]
        self._widths = [each.width or max(min(rest, MOST_NAME), 1) for each in self._columns]

    def head(self) -> Text:
        """Return the line of titles."""
        line = self._line([Text(each.title) for each in self._columns])
        line.stylize("bold")
        return line

    def row(self, cells: Sequence[Cell]) -> Text:
        """Return a row as a line. ``cells``: of all columns, those that do not fit included."""
        chosen = (cells[each] for each in self._places)
        return self._line([_of_one_line(each) for each in chosen])

    def _line(self, cells: Sequence[Text]) -> Text:
        line = Text(no_wrap=True)
        for cell, column, width in zip(cells, self._columns, self._widths, strict=True):
            if line.plain:
                line.append(GAP)
            if column.ends and cell.cell_len > width:
                cell = Text(shortened(cell.plain, width))
            cell.truncate(width, overflow="ellipsis")
            space = " " * (width - cell.cell_len)
            line.append_text(Text(space) + cell if column.right else cell + Text(space))
        return line


def _of_one_line(cell: Cell) -> Text:
    if isinstance(cell, str):
        return Text(one_line(cell))
    return cell.copy() if cell.plain.isprintable() else Text(one_line(cell.plain), cell.style)


def _least(columns: Sequence[PaneColumn], places: Sequence[int]) -> int:
    return sum(columns[each].width or LEAST_NAME for each in places) + len(GAP) * (len(places) - 1)


def share_cell(used: int, capacity: int) -> Text:
    """Return the share in use; empty for a host without the class."""
    if not (used or capacity):
        return Text("")
    share = used / max(capacity, 1)
    return Text(percent(used, capacity), "red" if share >= NEARLY_FULL else "")
