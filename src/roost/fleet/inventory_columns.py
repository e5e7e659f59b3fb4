"""Inventories and use of one resource class, as columns.

A provider takes a slot only if it has the class, so a class of rare devices costs as much memory as there
are devices. ``slot_of`` maps a provider's row to its slot.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Bools, Int32, Int64, Rows, grown
from roost.fleet.errors import Inconsistent
from roost.fleet.fits import fits, largest_amount
from roost.model.inventory import Inventory
from roost.model.vocabulary import MAX_INT

CAPACITY_LIMIT = 2**62
"""Largest capacity that is stored, in units. An allocation ratio may be 3.4e38; no use reaches the limit."""

_INT32 = ("row", "total", "reserved", "min_unit", "max_unit", "step_size")


class InventoryRecords(NamedTuple):
    """Inventories of one resource class to load, as parallel columns of numbers by ascending row."""

    rows: Rows
    total: npt.NDArray[Any]
    reserved: npt.NDArray[Any]
    min_unit: npt.NDArray[Any]
    max_unit: npt.NDArray[Any]
    step_size: npt.NDArray[Any]
    ratio: npt.NDArray[Any]


class InventoryColumns:
    """Inventories and use of one resource class, in units of the class.

    Columns by slot, the first ``n`` of which are in use: ``row`` int32, the provider; ``capacity`` and
    ``used`` int64; ``total``, ``reserved``, ``min_unit``, ``max_unit`` and ``step_size`` int32; ``ratio``
    float64, the allocation ratio. ``slot_of``: int32 by row, -1 for none. ``ascending`` tells whether
    ``row`` is sorted. ``stepped`` counts the slots whose ``step_size`` is not 1.
    """

    __slots__ = (
        "ascending",
        "capacity",
        "max_unit",
        "min_unit",
        "n",
        "ratio",
        "reserved",
        "row",
        "slot_of",
        "step_size",
        "stepped",
        "total",
        "used",
    )

    row: Int32
    total: Int32
    reserved: Int32
    min_unit: Int32
    max_unit: Int32
    step_size: Int32

    def __init__(self) -> None:
        self.n = 0
        for name in _INT32:
            setattr(self, name, np.zeros(0, dtype=np.int32))
        self.capacity: Int64 = np.zeros(0, dtype=np.int64)
        self.used: Int64 = np.zeros(0, dtype=np.int64)
        self.ratio = np.zeros(0, dtype=np.float64)
        self.slot_of: Int32 = np.zeros(0, dtype=np.int32)
        self.ascending = True
        self.stepped = 0

    @classmethod
    def load(cls, records: InventoryRecords) -> "InventoryColumns":
        """Make columns with these inventories and no use."""
        made = cls()
        rows = records.rows
        made.n = len(rows)
        made.row = rows.astype(np.int32)
        for name in _INT32[1:]:
            setattr(made, name, getattr(records, name).astype(np.int32))
        made.ratio = records.ratio.astype(np.float64)
        capacity = (records.total.astype(np.int64) - records.reserved) * made.ratio
        made.capacity = np.clip(capacity, -CAPACITY_LIMIT, CAPACITY_LIMIT).astype(np.int64)
        made.used = np.zeros(made.n, dtype=np.int64)
        made.slot_of = grown(made.slot_of, int(rows[-1]) + 1 if made.n else 0, -1)
        made.slot_of[rows] = np.arange(made.n)
        made.stepped = int((made.step_size != 1).sum())
        return made

    def use_all(self, rows: Rows, amounts: Int64) -> None:
        """Add amounts to the use of providers.

        ``rows`` are distinct; ``amounts``: int64[len(rows)], each more than 0.
        """
        slots = self.slots(rows)
        known = slots >= 0
        self.used[slots[known]] += amounts[known]
        for row, amount in zip(rows[~known].tolist(), amounts[~known].tolist(), strict=True):
            self.use(row, amount)

    def slot(self, row: int) -> int:
        """Return the slot of a provider, -1 if it has none."""
        return self.slot_of.item(row) if row < len(self.slot_of) else -1

    def slots(self, rows: Rows) -> Rows:
        """Return the slots of providers: intp[len(rows)], -1 for a provider without one."""
        if len(rows) == 0 or int(rows.max()) < len(self.slot_of):
            return self.slot_of[rows].astype(np.intp)
        found = np.full(len(rows), -1, dtype=np.intp)
        inside = rows < len(self.slot_of)
        found[inside] = self.slot_of[rows[inside]]
        return found

    def put(self, row: int, inventory: Inventory) -> None:
        """Set a provider's inventory. Its use is kept."""
        slot = self.slot(row)
        if slot < 0:
            slot = self._append(row)
        self.stepped += (inventory.step_size != 1) - (int(self.step_size[slot]) != 1)
        self.total[slot] = inventory.total
        self.reserved[slot] = inventory.reserved
        self.min_unit[slot] = inventory.min_unit
        self.max_unit[slot] = inventory.max_unit
        self.step_size[slot] = inventory.step_size
        self.ratio[slot] = inventory.allocation_ratio
        self.capacity[slot] = max(min(inventory.capacity, CAPACITY_LIMIT), -CAPACITY_LIMIT)

    def remove(self, row: int) -> None:
        """Remove a provider's inventory.

        A slot in use is kept with capacity 0: a reshape removes inventories before it moves allocations.
        """
        slot = self.slot(row)
        if slot < 0:
            return
        if self.used[slot]:
            self.stepped -= int(self.step_size[slot]) != 1
            self.total[slot] = self.reserved[slot] = self.capacity[slot] = self.max_unit[slot] = 0
            self.min_unit[slot] = self.step_size[slot] = 1
            return
        self._drop(slot)

    def use(self, row: int, amount: int) -> None:
        """Add ``amount``, negative to free, to a provider's use.

        Raises:
            Inconsistent: the use would be less than 0.
        """
        slot = self.slot(row)
        before = self.used.item(slot) if slot >= 0 else 0
        after = before + amount
        if after < 0:
            raise Inconsistent(f"row {row} has {before} in use: {-amount} cannot be freed")
        if slot < 0:
            slot = self._append(row)
        self.used[slot] = after
        if not after and not self.total[slot]:
            self._drop(slot)

    def used_by(self, row: int) -> int:
        """Return the use of a provider."""
        slot = self.slot(row)
        return self.used.item(slot) if slot >= 0 else 0

    def inventory(self, row: int) -> Inventory | None:
        """Return a provider's inventory, None if it has none."""
        slot = self.slot(row)
        if slot < 0 or not self.total[slot]:
            return None
        return Inventory(
            int(self.total[slot]),
            int(self.reserved[slot]),
            int(self.min_unit[slot]),
            int(self.max_unit[slot]),
            int(self.step_size[slot]),
            float(self.ratio[slot]),
        )

    def fits_at(self, slot: int, amount: int) -> bool:
        """Return whether ``amount`` more fits at a slot."""
        return bool(
            fits(
                amount,
                self.used.item(slot),
                self.capacity.item(slot),
                self.min_unit.item(slot),
                self.max_unit.item(slot),
                self.step_size.item(slot),
            )
        )

    def fitting(self, amount: int) -> Rows:
        """Return the slots at which ``amount`` more fits, ascending: intp[n]."""
        if amount > MAX_INT:
            # numpy cannot compute with an int32 column and a larger integer. No max_unit is larger.
            return np.zeros(0, dtype=np.intp)
        n = self.n
        step = self.step_size[:n] if self.stepped else 1
        mask = fits(amount, self.used[:n], self.capacity[:n], self.min_unit[:n], self.max_unit[:n], step)
        return np.flatnonzero(mask)

    def fits_in(self, slots: Rows, amount: int) -> Bools:
        """Return for each slot whether ``amount`` more fits: bool[len(slots)], False for slot -1."""
        if amount > MAX_INT or self.n == 0:
            return np.zeros(len(slots), dtype=np.bool_)
        step = self.step_size[slots] if self.stepped else 1
        mask: Bools = fits(
            amount,
            self.used[slots],
            self.capacity[slots],
            self.min_unit[slots],
            self.max_unit[slots],
            step,
        )
        mask &= slots >= 0
        return mask

    def fits_of(self, rows: Rows, amount: int) -> Bools:
        """Return for each provider whether ``amount`` more fits: bool[len(rows)], False without inventory."""
        if len(rows) < self.n:
            return self.fits_in(self.slots(rows), amount)
        # With more providers than slots, each slot is evaluated once and in the order of memory.
        fitting = np.zeros(max(len(self.slot_of), int(rows.max(initial=0)) + 1), dtype=np.bool_)
        fitting[self.row[self.fitting(amount)]] = True
        return fitting[rows]

    def largest_in(self, slots: Rows) -> Int64:
        """Return the most that room and ``max_unit`` allow at each slot: int64[len(slots)], 0 for -1."""
        if self.n == 0:
            return np.zeros(len(slots), dtype=np.int64)
        largest: Int64 = largest_amount(self.capacity[slots] - self.used[slots], self.max_unit[slots])
        largest[slots < 0] = 0
        return largest

    def copy(self) -> "InventoryColumns":
        """Return an independent copy."""
        other = InventoryColumns()
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(other, name, value.copy() if isinstance(value, np.ndarray) else value)
        return other

    def _append(self, row: int) -> int:
        slot = self.n
        self.n += 1
        for name in _INT32:
            # Not 0: for slot -1 `fits_in` divides by the last step_size, which may belong to no slot in use.
            setattr(self, name, grown(getattr(self, name), self.n, 1))
        self.capacity = grown(self.capacity, self.n, 0)
        self.used = grown(self.used, self.n, 0)
        self.ratio = grown(self.ratio, self.n, 1.0)
        self.slot_of = grown(self.slot_of, row + 1, -1)
        self.ascending = slot == 0 or (self.ascending and int(self.row[slot - 1]) < row)
        self.row[slot] = row
        self.slot_of[row] = slot
        self.total[slot] = self.reserved[slot] = self.max_unit[slot] = 0
        self.min_unit[slot] = self.step_size[slot] = 1
        self.capacity[slot] = self.used[slot] = 0
        self.ratio[slot] = 1.0
        return slot

    def _drop(self, slot: int) -> None:
        """Free a slot by moving the last slot into it."""
        self.stepped -= int(self.step_size[slot]) != 1
        last = self.n - 1
        self.slot_of[self.row[slot]] = -1
        if slot != last:
            for name in (*_INT32, "capacity", "used", "ratio"):
                column = getattr(self, name)
                column[slot] = column[last]
            self.slot_of[self.row[slot]] = slot
            self.ascending = False
        self.n = last
