"""A set of rows: which providers have a trait, or are in an aggregate.

Why not one boolean column for each: a region has tens of thousands of aggregates (racks) with forty hosts
each, and a few dozen traits that nearly every host has. So a small set is a Python set, and becomes a
boolean column once it holds enough rows for the column to be the smaller of the two.
"""

import numpy as np

from roost.fleet.columns import Bools, Rows, grown

_DENSE_FROM = 64
"""Below this many rows a set is never a column."""

_BYTES_PER_MEMBER = 64
"""What a row costs in a Python set, about; in a column it costs one byte for each row of the fleet."""


class RowSet:
    """Rows of the fleet, growable, with vectorised membership.

    Holds either ``_rows`` (sparse) or ``_column`` (dense, indexed by row).
    """

    __slots__ = ("_column", "_count", "_rows")

    def __init__(self) -> None:
        self._rows: set[int] = set()
        self._column: Bools | None = None
        self._count = 0

    @classmethod
    def of(cls, rows: Rows, rows_in_fleet: int) -> "RowSet":
        """The set of these rows, each there once."""
        made = cls()
        if _is_many(len(rows), rows_in_fleet):
            made._densify(rows, rows_in_fleet)
        else:
            made._rows = set(rows.tolist())
        return made

    def __len__(self) -> int:
        return self._count if self._column is not None else len(self._rows)

    def __contains__(self, row: int) -> bool:
        if self._column is not None:
            return row < len(self._column) and bool(self._column[row])
        return row in self._rows

    def add(self, row: int, rows_in_fleet: int) -> None:
        """Add ``row``; ``rows_in_fleet`` decides whether the set is better kept as a column."""
        if self._column is None:
            self._rows.add(row)
            if _is_many(len(self._rows), rows_in_fleet):
                self._densify(np.fromiter(self._rows, dtype=np.intp, count=len(self._rows)), rows_in_fleet)
        elif row not in self:
            self._column = grown(self._column, row + 1, False)
            self._column[row] = True
            self._count += 1

    def discard(self, row: int) -> None:
        """Remove ``row`` if it is there."""
        if self._column is None:
            self._rows.discard(row)
        elif row in self:
            self._column[row] = False
            self._count -= 1

    def rows(self) -> Rows:
        """The rows, ascending."""
        if self._column is not None:
            return np.flatnonzero(self._column)
        return np.fromiter(sorted(self._rows), dtype=np.intp, count=len(self._rows))

    def among(self, rows: Rows) -> Bools:
        """For each of ``rows`` whether it is in the set: bool[len(rows)]."""
        if self._column is not None:
            if len(rows) == 0 or int(rows.max()) < len(self._column):
                return self._column[rows]
            inside = rows < len(self._column)
            found = np.zeros(len(rows), dtype=np.bool_)
            found[inside] = self._column[rows[inside]]
            return found
        if not self._rows:
            return np.zeros(len(rows), dtype=np.bool_)
        return np.isin(rows, np.fromiter(self._rows, dtype=np.intp, count=len(self._rows)))

    def copy(self) -> "RowSet":
        """An independent copy."""
        other = RowSet()
        other._rows = set(self._rows)
        other._column = None if self._column is None else self._column.copy()
        other._count = self._count
        return other

    def _densify(self, rows: Rows, rows_in_fleet: int) -> None:
        column = np.zeros(max(rows_in_fleet, int(rows.max()) + 1), dtype=np.bool_)
        column[rows] = True
        self._column = column
        self._count = len(rows)
        self._rows = set()


def _is_many(rows: int, rows_in_fleet: int) -> bool:
    """Whether a set of so many rows is better kept as a column."""
    return rows > max(_DENSE_FROM, rows_in_fleet // _BYTES_PER_MEMBER)
