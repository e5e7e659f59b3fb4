"""What each host has and uses, kept current. Only for fleets without trees: see `servable`."""

from collections.abc import Sequence

import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Int32, Int64, Rows
from roost.fleet.totals import tree_totals
from roost.model.vocabulary import MAX_INT
from roost.scheduler.labels import Indexes

_ONE_BY_ONE = 16
"""Up to so many rows are summed one by one; more by vector operations, which cost more to begin with."""


class KeptTotals:
    """`Totals` of all hosts by place, for the classes that somebody has asked for.

    ``row_at``: intp[places], the fleet's row of each host's root provider, -1 where there is none.
    """

    def __init__(self, fleet: Fleet, index: Indexes, row_at: Rows) -> None:
        self.index = index
        self._fleet = fleet
        self._row_at = row_at
        self._columns: dict[str, tuple[Int64, Int64]] = {}
        self._rooms: dict[str, Int32] = {}

    def both(self, resource_class: str) -> tuple[Int64, Int64]:
        """Capacity and use."""
        columns = self._columns.get(resource_class)
        if columns is None:
            columns = tree_totals(self._fleet, resource_class, self._row_at)
            for column in columns:
                column[self._row_at < 0] = 0
            self._columns[resource_class] = columns
        return columns

    def room(self, resource_class: str) -> Int32:
        """What each host has left: int32[places], -1 where that is less than nothing.

        A quarter of the bytes that capacity and use have: what is looked through at once for all hosts.
        """
        room = self._rooms.get(resource_class)
        if room is None:
            room = self._rooms[resource_class] = _room(*self.both(resource_class))
        return room

    def refresh(self, places: Sequence[int]) -> None:
        """Sum up again at some places that have a row."""
        fleet = self._fleet
        if len(places) <= _ONE_BY_ONE:
            for place in places:
                row = self._row_at.item(place)
                for name, (capacity, used) in self._columns.items():
                    total, in_use = self._of_one(name, row)
                    capacity[place], used[place] = total, in_use
                    if name in self._rooms:
                        self._rooms[name][place] = max(-1, min(total - in_use, MAX_INT))
            return
        rows = self._row_at[places]
        for name, columns in self._columns.items():
            for column, totals in zip(columns, tree_totals(fleet, name, rows), strict=True):
                column[places] = totals
            if name in self._rooms:
                self._rooms[name][places] = _room(columns[0][places], columns[1][places])

    def _of_one(self, name: str, root: int) -> tuple[int, int]:
        """As `tree_totals` says it."""
        stock = self._fleet.stock(name)
        slot = stock.slot(root)
        return (0, 0) if slot < 0 else (stock.capacity.item(slot), stock.used.item(slot))


def rows_at(fleet: Fleet, index: Indexes, host_at_row: Rows) -> Rows:
    """The row of each of the hosts ``index``, given the host at each row: -1 where there is none."""
    row_of = np.full(int(index.max(initial=-1)) + 1, -1, dtype=np.intp)
    rows = np.flatnonzero(host_at_row >= 0)
    row_of[host_at_row[rows]] = rows
    return row_of[index]


def _room(capacity: Int64, used: Int64) -> Int32:
    room: Int32 = np.clip(capacity - used, -1, MAX_INT).astype(np.int32)
    return room
