"""The pools of a fleet: its sharing providers, and the aggregates through which they serve trees.

The place of a pool in its own tree counts as well: pools above one another may serve a common subtree.
"""

from collections.abc import Iterable, Set

from roost.fleet.fleet import Fleet


class SharingPools:
    """The pools of a fleet as of the last `take_in`. Iterating gives their rows, ascending."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        # By pool: the aggregates through which it serves trees, and the rows above it, also of former pools.
        self._aggregates: dict[int, tuple[str, ...]] = {}
        self._above: dict[int, tuple[int, ...]] = {}
        self._in: dict[str, set[int]] = {}
        self.rows: list[int] = []
        self.take_in(fleet.sharing().rows().tolist())

    def __len__(self) -> int:
        return len(self._aggregates)

    def __contains__(self, row: int) -> bool:
        return row in self._aggregates

    def among(self, rows: Set[int]) -> list[int]:
        """Return the pools among some rows."""
        return [row for row in rows if row in self._aggregates] if self._aggregates else []

    def serving(self, rows: Iterable[int], root: int) -> list[int]:
        """Return the pools of other trees that serve the tree with a root and these rows, ascending."""
        if not self._aggregates:
            return []
        fleet = self._fleet
        found: set[int] = set()
        for row in rows:
            for aggregate in fleet.aggregates_of(row):
                found |= self._in.get(aggregate, set())
        return sorted(pool for pool in found if fleet.root.item(pool) != root)

    def take_in(self, touched: Iterable[int]) -> list[int] | None:
        """Update the pools after changes of some rows.

        Returns the pools that may serve other trees than before, ascending; None if a pool has moved within
        its tree or to another one. A provider that moves touches all providers below it, so a pool that moves
        is among ``touched``.
        """
        fleet, sharing = self._fleet, self._fleet.sharing()
        differing: list[int] = []
        for row in touched:
            is_pool = row in sharing
            if not is_pool and row not in self._aggregates:
                continue
            before = self._aggregates.pop(row, None)
            now = fleet.aggregates_of(row) if is_pool else None
            if now is not None:
                above = self._rows_above(row)
                if self._above.setdefault(row, above) != above:
                    return None
                self._aggregates[row] = now
            if now == before:
                continue
            differing.append(row)
            for aggregate in before or ():
                self._in[aggregate].discard(row)
            for aggregate in now or ():
                self._in.setdefault(aggregate, set()).add(row)
        if differing:
            self.rows = sorted(self._aggregates)
        return sorted(differing)

    def _rows_above(self, row: int) -> tuple[int, ...]:
        parent, found = self._fleet.parent, []
        while (row := parent.item(row)) >= 0:
            found.append(row)
        return tuple(found)
