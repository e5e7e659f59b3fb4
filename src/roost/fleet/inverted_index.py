"""An inverted index: the names of each provider, and the providers with each name.

There are two in a fleet, one of traits and one of aggregates.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from roost.fleet.columns import Rows
from roost.fleet.rowset import RowSet

NameSets = Iterable[tuple[tuple[str, ...], Sequence[int]]]
"""Pairs of sorted names and the rows of the providers that have exactly these names."""


class InvertedIndex:
    """Names by row, and rows by name.

    ``names[row]`` is the sorted tuple of a provider's names. ``rows[name]`` is the set of providers with a
    name; a name that no provider has is not a key.
    """

    __slots__ = ("_interned", "names", "rows")

    def __init__(self) -> None:
        self.names: list[tuple[str, ...]] = []
        self.rows: dict[str, RowSet] = {}
        self._interned: dict[tuple[str, ...], tuple[str, ...]] = {}

    def grow(self, size: int) -> None:
        """Make room for ``size`` rows."""
        self.names.extend([()] * (size - len(self.names)))

    def load(self, sets: NameSets) -> None:
        """Fill an empty index. It must have room for all rows."""
        found: dict[str, list[Rows]] = {}
        for names, rows in sets:
            names = self._intern(names)
            for row in rows:
                self.names[row] = names
            column = np.array(rows, dtype=np.intp)
            for name in names:
                found.setdefault(name, []).append(column)
        for name, columns in found.items():
            self.rows[name] = RowSet.of(np.concatenate(columns), len(self.names))

    def replace(self, row: int, names: tuple[str, ...]) -> None:
        """Replace the names of a provider."""
        before, after = self.names[row], set(names)
        self.names[row] = self._intern(names)
        for name in before:
            if name not in after:
                self.rows[name].discard(row)
                if not len(self.rows[name]):
                    del self.rows[name]
        for name in after.difference(before):
            if name not in self.rows:
                self.rows[name] = RowSet()
            self.rows[name].add(row, len(self.names))

    def copy(self) -> "InvertedIndex":
        """Return an independent copy."""
        other = InvertedIndex()
        other.names = self.names.copy()
        other.rows = {name: rows.copy() for name, rows in self.rows.items()}
        other._interned = self._interned.copy()
        return other

    def _intern(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return one tuple for all equal ones: most hosts of a fleet have the same traits."""
        return self._interned.setdefault(names, names)
