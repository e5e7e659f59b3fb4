"""The available amounts of a class that make a difference to a search."""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from roost.fleet.columns import Int64

_MOST_SUMS = 256
"""Most sums that amounts are rounded down to. Beyond this, amounts are only limited to the demand."""


class DemandedAmounts:
    """Available amounts of one class, rounded down to a sum of demanded amounts, and numbered.

    ``width``: bits of a number.
    """

    def __init__(self, demanded: Sequence[int]) -> None:
        self._most = sum(demanded)
        sums = {0}
        for amount in demanded:
            sums |= {each + amount for each in sums}
            if len(sums) > _MOST_SUMS:
                break
        self._sums = sorted(sums) if len(sums) <= _MOST_SUMS else None
        self.width = (len(self._sums) - 1 if self._sums is not None else self._most).bit_length()
        self._column = np.array(self._sums or (), dtype=np.int64)

    def number(self, available: int) -> int:
        """Return the number of an available amount."""
        if self._sums is None:
            return min(available, self._most)
        return bisect_right(self._sums, available) - 1

    def numbers(self, available: Int64) -> Int64:
        """Return the numbers of available amounts."""
        if self._sums is None:
            return np.minimum(available, self._most)
        found: Int64 = self._column.searchsorted(available, side="right") - 1
        return found

    def amount(self, number: int) -> int:
        """Return the rounded amount that a number stands for."""
        return number if self._sums is None else self._sums[number]
