"""Columns with one element for each host: their layout, and capacity and use of the hosts' trees."""

import math
from collections.abc import Sequence

import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Bools, Float64, Int32, Int64, Rows
from roost.fleet.fits import meets_units
from roost.model.assignment import Assigned
from roost.model.vocabulary import MAX_INT
from roost.scheduler.candidates.candidate_source import Chosen, ProviderLevels
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.tree_providers import providers_of, with_trait

_LARGEST_BLOCK = 512
"""Places of the largest block."""
SMALLEST_BLOCK = 16
"""Places of the smallest block."""


class PlaceLayout:
    """A *place* for each host: its position in columns of ``blocks`` × ``size``, a power of two (``shift``).

    Cells stand one after the other, each beginning with a new block; within a cell the hosts are in the order
    that breaks ties. So the best host of a cell is in consecutive blocks.

    ``index_at`` and ``rank_at``: intp[places], the host at each place and its `NodeTable.tie_rank`. The spare
    places at the end of a cell repeat its last host, and ``spare`` marks them. ``place_of``: intp[hosts].
    ``of_cell``: the first block of each cell and the one after its last.
    """

    def __init__(self, cell: Int32, cells: int, tie_rank: Rows) -> None:
        hosts = len(cell)
        counts = np.bincount(cell, minlength=cells)
        self.size = _size(hosts, int(np.count_nonzero(counts)))
        self.shift = self.size.bit_length() - 1
        ends = np.cumsum(-(-counts // self.size))
        starts = ends - (-(-counts // self.size))
        self.blocks = int(ends[-1]) if cells else 0
        self.of_cell = list(zip(starts.tolist(), ends.tolist(), strict=True))
        order = np.lexsort((tie_rank, cell))
        in_order = cell[order]
        place = np.arange(hosts) + (starts * self.size - (np.cumsum(counts) - counts))[in_order]
        self.place_of: Rows = np.empty(hosts, dtype=np.intp)
        self.place_of[order] = place
        self.index_at: Rows = np.full(self.blocks * self.size, -1, dtype=np.intp)
        self.index_at[place] = order
        self.spare: Bools = self.index_at < 0
        last_filled = np.maximum.accumulate(np.where(self.spare, 0, np.arange(len(self.index_at))))
        self.index_at = self.index_at[last_filled]
        self.rank_at: Rows = tie_rank[self.index_at]
        self._in_tie_order: Rows = self.place_of[np.argsort(tie_rank)]

    def in_tie_order(self, chosen: Bools) -> Rows:
        """Return the chosen places, given bool[places], in the order that breaks ties between their hosts.

        In one cell that is the order of the places. Spare places cannot be chosen.

        The order of all places is kept, because sorting a hundred thousand of them for each request would
        take longer than the rest of the decision.
        """
        if len(self.of_cell) == 1:
            return np.flatnonzero(chosen)
        return self._in_tie_order[chosen[self._in_tie_order]]

    def __len__(self) -> int:
        """Return the number of places."""
        return len(self.index_at)


def _size(hosts: int, cells: int) -> int:
    """Return the block size: about as many places in a block as there are blocks.

    It is smaller where cells would be mostly spare places.
    """
    size = SMALLEST_BLOCK
    while size < _LARGEST_BLOCK and size * size < hosts and 2 * size * cells <= hosts:
        size *= 2
    return size


Room = tuple[int, int, int, int, int]
"""Inventory of a host in one class: used, capacity, min_unit, max_unit, step_size."""

Rooms = dict[str, Room | None]
"""Cached inventory of a host by resource class; None: the host lacks the class."""


class HostEntry:
    """One host in plain Python numbers, shared by all equivalence classes.

    Reading each number from a column again for each class would cost more than its use.

    ``row``: in the fleet, -1 if there is none. ``numbers``: of each weigher with a column. ``meets``: whether
    the host meets conditions other than room, by the conditions.
    """

    __slots__ = ("meets", "numbers", "rooms", "row")

    def __init__(self, row: int, rooms: Rooms) -> None:
        self.row = row
        self.rooms = rooms
        self.numbers: list[float] = []
        self.meets: dict[bytes, bool] = {}


class CachedTotals:
    """`Totals` of all hosts by place, for the resource classes that were read.

    ``row_at``: intp[places], the fleet's row of each host's root provider, -1 where there is none.
    """

    def __init__(self, fleet: Fleet, index: Indexes, row_at: Rows) -> None:
        self.index = index
        self._fleet = fleet
        self._row_at = row_at
        self._classes: dict[str, _Class] = {}

    def both(self, resource_class: str) -> tuple[Int64, Int64]:
        """Return capacity and use of all hosts: int64[places] each."""
        one = self._class(resource_class)
        return one.capacity, one.used

    def free(self, resource_class: str, chosen: Chosen) -> Float64:
        """Return the free amount of the hosts at some places: float64[n], a new array."""
        one = self._class(resource_class)
        if chosen is None:
            return _free(one.capacity, one.used)
        return _free(one.capacity[chosen], one.used[chosen])

    def providers(self, resource_class: str) -> ProviderLevels:
        """Return the providers in the hosts' trees that have a class."""
        return providers_of(self._fleet, self._row_at, resource_class)

    def with_trait(self, trait: str, chosen: Chosen) -> Bools:
        """Return which hosts at some places have a provider with a trait in their tree: bool[n]."""
        rows = self._row_at if chosen is None else self._row_at[chosen]
        return with_trait(self._fleet, rows, trait)

    def assigned(self, node: str) -> Assigned:
        """Return the assignments on the node with a root provider."""
        return self._fleet.assigned.on(node)

    def provider_name(self, provider: str) -> str | None:
        """Return the name of a provider by its uuid."""
        return self._fleet.name(self._fleet.row(provider))

    def left(self, resource_class: str, minval: float) -> Float64:
        """Return the free amount of each host, ``minval`` at least: float64[places], a column that is kept
        current."""
        return self._class(resource_class).left_from(minval)

    def room(self, resource_class: str) -> Int32:
        """Return the free amount of each host: int32[places], -1 where it is negative.

        The column has a quarter of the bytes of capacity and use together, because all of it is compared at
        once.
        """
        one = self._class(resource_class)
        if one.room is None:
            one.room = _room(one.capacity, one.used)
        return one.room

    def any_takes(self, resource_class: str, amount: int) -> bool:
        """Return whether the units of each provider with the class allow an amount; False if that is not
        certain."""
        columns, one = self._fleet.inventory_columns(resource_class), self._class(resource_class)
        if not columns.n or columns.stepped:
            return False
        if not meets_units(amount, one.min_unit, one.max_unit, 1):
            one.min_unit = int(columns.min_unit[: columns.n].max())
            one.max_unit = int(columns.max_unit[: columns.n].min())
        return bool(meets_units(amount, one.min_unit, one.max_unit, 1))

    def level(self, provider: str, resource_class: str) -> tuple[int, int]:
        """Return capacity and use of one provider."""
        room = room_at(self._fleet, resource_class, self._fleet.row(provider))
        return (0, 0) if room is None else (room[1], room[0])

    def refresh_one(self, place: int) -> Rooms:
        """Sum up the tree at a place again. Returns the host's inventories if its tree is a root alone."""
        fleet, row = self._fleet, self._row_at.item(place)
        rooms: Rooms = {}
        if row < 0:
            for one in self._classes.values():
                one.put(place, _NOTHING)
            return rooms
        if fleet.children(row):
            totals = fleet.totals_of_tree([*self._classes], row)
            for one, (capacity, used) in zip(self._classes.values(), totals, strict=True):
                one.put(place, (used, capacity, 0, MAX_INT, 1))
            return rooms
        for name, one in self._classes.items():
            rooms[name] = room = room_at(fleet, name, row)
            one.put(place, _NOTHING if room is None else room)
        return rooms

    def refresh(self, places: Sequence[int]) -> None:
        """Sum up the trees at many places again."""
        rows = self._row_at[places]
        for name, one in self._classes.items():
            capacity, used = self._totals(name, rows)
            one.capacity[places], one.used[places] = capacity, used
            free = _free(capacity, used)
            for minval, column in one.left:
                column[places] = np.maximum(free, minval)
            if one.room is not None:
                one.room[places] = _room(capacity, used)
            one.forget_units()

    def _class(self, name: str) -> "_Class":
        one = self._classes.get(name)
        if one is None:
            one = self._classes[name] = _Class(*self._totals(name, self._row_at))
        return one

    def _totals(self, name: str, rows: Rows) -> tuple[Int64, Int64]:
        """Return capacity and use of the trees with these roots; 0 where the row is -1."""
        capacity, used = self._fleet.tree_totals(name, rows)
        homeless = rows < 0
        capacity[homeless] = used[homeless] = 0
        return capacity, used


class _Class:
    """One resource class, columns by place.

    ``left``: the free amounts as weighers see them, a column float64[places] for each minval. ``min_unit``
    and ``max_unit``: an amount between them is within the units of all providers; the interval may be empty.
    """

    __slots__ = ("capacity", "left", "max_unit", "min_unit", "room", "used")

    def __init__(self, capacity: Int64, used: Int64) -> None:
        self.capacity = capacity
        self.used = used
        self.left: list[tuple[float, Float64]] = []
        self.room: Int32 | None = None
        self.forget_units()

    def left_from(self, minval: float) -> Float64:
        """Return the column of free amounts, ``minval`` at least."""
        for floor, column in self.left:
            if floor == minval:
                return column
        column = _free(self.capacity, self.used)
        if minval > -math.inf:
            np.maximum(column, minval, out=column)
        self.left.append((minval, column))
        return column

    def put(self, place: int, room: Room) -> None:
        """Write the present inventory of one host."""
        used, capacity, min_unit, max_unit, _ = room
        self.capacity[place] = capacity
        self.used[place] = used
        # As in `_free`: very large numbers are rounded before they are subtracted.
        free = float(capacity) - float(used)
        for minval, column in self.left:
            column[place] = free if free > minval else minval
        if self.room is not None:
            left = capacity - used
            self.room[place] = -1 if left < 0 else left if left < MAX_INT else MAX_INT
        if min_unit > self.min_unit or max_unit < self.max_unit:
            self.forget_units()

    def forget_units(self) -> None:
        """Mark the units as not computed: with a million hosts computing them takes as long as the rest."""
        self.min_unit, self.max_unit = MAX_INT, 0


_NOTHING: Room = (0, 0, 0, MAX_INT, 1)


def room_at(fleet: Fleet, name: str, row: int) -> Room | None:
    """Return the inventory at a row; None if it lacks the class."""
    columns = fleet.inventory_columns(name)
    slot = columns.slot(row)
    if slot < 0:
        return None
    return (
        columns.used.item(slot),
        columns.capacity.item(slot),
        columns.min_unit.item(slot),
        columns.max_unit.item(slot),
        columns.step_size.item(slot),
    )


def rows_at(fleet: Fleet, index: Indexes, host_at_row: Rows) -> Rows:
    """Return the row of each host in ``index``, given the host at each row; -1 where there is none."""
    row_of = np.full(int(index.max(initial=-1)) + 1, -1, dtype=np.intp)
    rows = np.flatnonzero(host_at_row >= 0)
    row_of[host_at_row[rows]] = rows
    return row_of[index]


def _free(capacity: Int64, used: Int64) -> Float64:
    return np.subtract(capacity, used, dtype=np.float64)


def _room(capacity: Int64, used: Int64) -> Int32:
    room: Int32 = np.clip(capacity - used, -1, MAX_INT).astype(np.int32)
    return room
