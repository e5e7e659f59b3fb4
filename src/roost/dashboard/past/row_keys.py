"""The keys of a fleet's providers by row, kept while the fleet changes."""

import asyncio
from typing import Final

import numpy as np

from roost.dashboard.past.index_block import Keys
from roost.dashboard.past.index_entries import NOBODY, key_of
from roost.fleet import Fleet

_AT_ONCE: Final = 4_000
"""Keys that are made before other tasks may run."""


class RowKeys:
    """The keys of the rows of one fleet after another."""

    def __init__(self) -> None:
        self._fleet: Fleet | None = None
        self._position = 0
        self._keys: Keys = np.zeros(0, dtype=np.uint64)

    async def prepare(self, fleet: Fleet) -> None:
        """Make the keys of a fleet that `of` has not seen yet, a few at a time."""
        if fleet is self._fleet and fleet.reshaped.since(self._position) is not None:
            return
        position, rows = fleet.reshaped.end, fleet.rows().tolist()
        keys = np.zeros(fleet.n_rows, dtype=np.uint64)
        for first in range(0, len(rows), _AT_ONCE):
            for row in rows[first : first + _AT_ONCE]:
                keys[row] = key_of(fleet.uuid(row))
            await asyncio.sleep(0)
        self._fleet, self._position, self._keys = fleet, position, keys

    def of(self, fleet: Fleet) -> Keys | None:
        """Return the key of each row: uint64[n_rows]; None if the fleet is another one than was prepared."""
        changed = fleet.reshaped.since(self._position)
        if fleet is not self._fleet or changed is None:
            return None
        if fleet.n_rows > len(self._keys):
            self._keys = np.concatenate(
                [self._keys, np.zeros(fleet.n_rows - len(self._keys), dtype=np.uint64)]
            )
        for row in changed:
            self._keys[row] = key_of(fleet.uuid(row)) if fleet.alive[row] else NOBODY
        self._position = fleet.reshaped.end
        return self._keys
