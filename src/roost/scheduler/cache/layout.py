"""The place of each host in cached columns."""

import numpy as np

from roost.fleet.columns import Bools, Int32, Rows

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
