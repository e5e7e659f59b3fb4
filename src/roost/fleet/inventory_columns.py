"""The stock of one resource class: every provider's inventory and use of it, as compact columns.

Only providers that have the class take a slot, so that a class of rare devices costs what the devices
cost, not what the fleet costs. ``slot_of`` leads from a provider's row to its slot.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Bools, Int32, Int64, Rows, grown
from roost.fleet.errors import Inconsistent
from roost.fleet.fits import fits, largest_amount
from roost.model.inventory import Inventory
from roost.model.vocabulary import MAX_INT

CAPACITY_LIMIT = 2**62
"""Capacities beyond this (an allocation ratio may be 3.4e38) are kept as this: nothing can fill either."""

_INT32 = ("row", "total", "reserved", "min_unit", "max_unit", "step_size")


class InventoryColumns:
    """Inventories and use of one resource class.

    Columns, one slot for each provider that has the class (``n`` slots in use):
    ``row`` int32, the provider; ``capacity``, ``used`` int64; ``total``, ``reserved``, ``min_unit``,
    ``max_unit``, ``step_size`` int32; ``ratio`` float64. ``ascending`` says that ``row`` is sorted.
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
    def of(cls, columns: Mapping[str, npt.NDArray[Any]]) -> "InventoryColumns":
        """The stock with these inventories: ``rows``, ascending, and the columns by name but for what
        follows from them."""
        made = cls()
        rows = columns["rows"]
        made.n = len(rows)
        made.row = rows.astype(np.int32)
        for name in _INT32[1:]:
            setattr(made, name, columns[name].astype(np.int32))
        made.ratio = columns["ratio"].astype(np.float64)
        room = (columns["total"].astype(np.int64) - columns["reserved"]) * made.ratio
        made.capacity = np.clip(room, -CAPACITY_LIMIT, CAPACITY_LIMIT).astype(np.int64)
        made.used = np.zeros(made.n, dtype=np.int64)
        made.slot_of = grown(made.slot_of, int(rows[-1]) + 1 if made.n else 0, -1)
        made.slot_of[rows] = np.arange(made.n)
        made.stepped = int((made.step_size != 1).sum())
        return made

    def use_all(self, rows: Rows, amounts: Int64) -> None:
        """Add amounts, each more than 0, to the use of providers, each there once."""
        slots = self.slots(rows)
        known = slots >= 0
        self.used[slots[known]] += amounts[known]
        for row, amount in zip(rows[~known].tolist(), amounts[~known].tolist(), strict=True):
            self.use(row, amount)

    def slot(self, row: int) -> int:
        """The slot of a provider, -1 if it has nothing of this class."""
        return self.slot_of.item(row) if row < len(self.slot_of) else -1

    def slots(self, rows: Rows) -> Rows:
        """The slots of providers: intp[len(rows)], -1 where one has nothing of this class."""
        if len(rows) == 0 or int(rows.max()) < len(self.slot_of):
            return self.slot_of[rows].astype(np.intp)
        found = np.full(len(rows), -1, dtype=np.intp)
        inside = rows < len(self.slot_of)
        found[inside] = self.slot_of[rows[inside]]
        return found

    def put(self, row: int, inventory: Inventory) -> None:
        """Set a provider's inventory; its use stays."""
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
        """Forget a provider's inventory. Its slot stays, without capacity, while something is allocated
        from it (a reshape takes inventory away first and moves the allocations after)."""
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
        """Add ``amount`` (negative to free) to a provider's use. Raises `Inconsistent` below zero."""
        slot = self.slot(row)
        before = self.used.item(slot) if slot >= 0 else 0
        after = before + amount
        if after < 0:
            raise Inconsistent(f"row {row} has {before} in use, of which {-amount} shall be freed")
        if slot < 0:
            slot = self._append(row)
        self.used[slot] = after
        if not after and not self.total[slot]:
            self._drop(slot)

    def used_by(self, row: int) -> int:
        """How much of the class is allocated from a provider."""
        slot = self.slot(row)
        return self.used.item(slot) if slot >= 0 else 0

    def inventory(self, row: int) -> Inventory | None:
        """A provider's inventory, None if it has none."""
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
        """Whether ``amount`` more fits at one slot."""
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
        """The slots where ``amount`` more fits."""
        if amount > MAX_INT:
            return np.zeros(0, dtype=np.intp)
        n = self.n
        step = self.step_size[:n] if self.stepped else 1
        mask = fits(amount, self.used[:n], self.capacity[:n], self.min_unit[:n], self.max_unit[:n], step)
        return np.flatnonzero(mask)

    def fits_in(self, slots: Rows, amount: int) -> Bools:
        """For each of ``slots`` whether ``amount`` more fits: bool[len(slots)]; a slot of -1 never."""
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

    def largest_in(self, slots: Rows) -> Int64:
        """The most that one more allocation can take at each of ``slots``, as far as capacity and max_unit
        say: int64[len(slots)], 0 at a slot of -1."""
        if self.n == 0:
            return np.zeros(len(slots), dtype=np.int64)
        largest: Int64 = largest_amount(self.capacity[slots] - self.used[slots], self.max_unit[slots])
        largest[slots < 0] = 0
        return largest

    def copy(self) -> "InventoryColumns":
        """An independent copy."""
        other = InventoryColumns()
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(other, name, value.copy() if isinstance(value, np.ndarray) else value)
        return other

    def _append(self, row: int) -> int:
        slot = self.n
        self.n += 1
        for name in _INT32:
            # Not 0: `fits_in` divides by the step of the last place, in use or not, for slots of -1.
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
        """Free a slot by moving the last one into it."""
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
