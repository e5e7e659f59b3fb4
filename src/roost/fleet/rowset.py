"""A set of rows, such as the providers that have a trait or are in an aggregate.

A small set is *sparse*, a Python set, and becomes *dense*, a boolean column, once the column takes less
memory. A region has tens of thousands of aggregates (racks) with forty hosts each, for which columns would be
too large, and a few dozen traits that nearly every host has, for which Python sets would be too large.
"""

from collections.abc import Sequence

import numpy as np

from roost.fleet.columns import Bools, Rows, grown

_MAX_ALWAYS_SPARSE = 64
"""Rows of the largest set that is sparse in a fleet of any size."""

_BYTES_PER_MEMBER = 64
"""Approximate bytes of one member of a sparse set. A dense set has one byte for each row of the fleet."""


class RowSet:
    """Rows of the fleet, with vectorised membership.

    Sparse: ``_rows``. Dense: ``_column``, bool by row, and ``_count`` members.
    """

    __slots__ = ("_column", "_count", "_rows")

    def __init__(self) -> None:
        self._rows: set[int] = set()
        self._column: Bools | None = None
        self._count = 0

    @classmethod
    def of(cls, rows: Rows, rows_in_fleet: int) -> "RowSet":
        """Make the set of these distinct rows."""
        made = cls()
        if _is_dense(len(rows), rows_in_fleet):
            made._make_dense(rows, rows_in_fleet)
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
        """Add ``row``. ``rows_in_fleet`` decides whether the set becomes dense."""
        if self._column is None:
            self._rows.add(row)
            if _is_dense(len(self._rows), rows_in_fleet):
                self._make_dense(np.fromiter(self._rows, dtype=np.intp, count=len(self._rows)), rows_in_fleet)
        elif row not in self:
            self._column = grown(self._column, row + 1, False)
            self._column[row] = True
            self._count += 1

    def discard(self, row: int) -> None:
        """Remove ``row`` if it is a member."""
        if self._column is None:
            self._rows.discard(row)
        elif row in self:
            self._column[row] = False
            self._count -= 1

    def rows(self) -> Rows:
        """Return the rows, ascending."""
        if self._column is not None:
            return np.flatnonzero(self._column)
        return np.fromiter(sorted(self._rows), dtype=np.intp, count=len(self._rows))

    def among(self, rows: Rows) -> Bools:
        """Return for each of ``rows`` whether it is a member: bool[len(rows)]."""
        if self._column is not None:
            if len(rows) == 0 or int(rows.max()) < len(self._column):
                return self._column[rows]
            inside = rows < len(self._column)
            found = np.zeros(len(rows), dtype=np.bool_)
            found[inside] = self._column[rows[inside]]
            return found
        return _among(np.fromiter(self._rows, dtype=np.intp, count=len(self._rows)), rows)

    @staticmethod
    def any_among(sets: Sequence["RowSet"], rows: Rows) -> Bools:
        """Return for each of ``rows`` whether it is a member of at least one set: bool[len(rows)]."""
        if len(sets) == 1:
            return sets[0].among(rows)
        inside: Bools = np.zeros(len(rows), dtype=np.bool_)
        # All small sets are looked up as one: to prepare a lookup costs more than the lookup.
        few: list[int] = []
        for each in sets:
            if each._column is None:
                few += each._rows
            else:
                inside |= each.among(rows)
        return inside | _among(np.array(few, dtype=np.intp), rows) if few else inside

    def copy(self) -> "RowSet":
        """Return an independent copy."""
        other = RowSet()
        other._rows = set(self._rows)
        other._column = None if self._column is None else self._column.copy()
        other._count = self._count
        return other

    def _make_dense(self, rows: Rows, rows_in_fleet: int) -> None:
        column = np.zeros(max(rows_in_fleet, int(rows.max()) + 1), dtype=np.bool_)
        column[rows] = True
        self._column = column
        self._count = len(rows)
        self._rows = set()


def _among(members: Rows, rows: Rows) -> Bools:
    """Return for each of ``rows`` whether it is one of ``members``: bool[len(rows)]."""
    if not len(members):
        return np.zeros(len(rows), dtype=np.bool_)
    # numpy's isin sorts, which takes ten times as long for all rows of a fleet.
    marks = np.zeros(max(int(members.max()), int(rows.max(initial=0))) + 1, dtype=np.bool_)
    marks[members] = True
    return marks[rows]


def _is_dense(rows: int, rows_in_fleet: int) -> bool:
    """Return whether a set of ``rows`` rows takes less memory as a column."""
    return rows > max(_MAX_ALWAYS_SPARSE, rows_in_fleet // _BYTES_PER_MEMBER)
