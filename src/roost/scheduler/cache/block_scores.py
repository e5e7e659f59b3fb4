"""What all hosts weigh, whichever of them a request may use, and what the best of each block does.

`roost.scheduler.cache.score_index` bounds a block by its best number for each weigher, as if one host had
them all. Claims make such bounds loose: the host with the most memory is the one that has just been claimed,
and pays for that with an I/O operation. After thousands of claims each of the first blocks is opened in
vain. The bounds here take all weighers together. They cost as much as to weigh all hosts, and hold for all
requests that normalise alike; a claim then changes one block.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Float64, Int64
from roost.fleet.invalidation_log import InvalidationLog
from roost.scheduler.cache.layout import Layout
from roost.scheduler.cache.scales import Scale, weigh_blocks

MOST = 4
"""Ways to normalise of which weights are kept: requests that may use other hosts mostly share a few."""
_IN_CACHE = 32_768
"""Hosts weighed at once: such columns stay in the processor's cache."""

_Key = tuple[tuple[int, float, float], ...]


class Weighed(NamedTuple):
    """``weights``: of all hosts, float64[blocks, size]; ``most``: of the best of each block, float64[blocks].
    Neither is to be changed, nor used after the next change of a host."""

    weights: Float64
    most: Float64


class BlockScores:
    """The weights over the columns of one board, for the ways of normalising that were asked for last.

    ``raws``: the numbers for each weigher, float64[places]. ``changed``: the places where one has changed, or
    a multiplier.
    """

    def __init__(self, layout: Layout, raws: Sequence[Float64], changed: InvalidationLog) -> None:
        self._layout = layout
        self._raws = [raw.reshape(-1, layout.size) for raw in raws]
        self._changed = changed
        self._kept: dict[_Key, tuple[int, Weighed]] = {}

    def of(self, scales: Sequence[Scale], *, known: bool = False) -> Weighed | None:
        """What hosts weigh by these scales. ``known``: None rather than to weigh all of them."""
        key = tuple((each.number, each.least, each.span) for each in scales)
        kept = self._kept.pop(key, None)
        changed = None if kept is None else self._changed.since(kept[0])
        if kept is not None and changed is not None:
            weighed = kept[1]
            if changed:
                blocks = np.array([*{place >> self._layout.shift for place in changed}], dtype=np.int64)
                self._weigh(scales, blocks, weighed)
        elif known:
            return None
        else:
            layout = self._layout
            weighed = Weighed(np.empty((layout.blocks, layout.size)), np.empty(layout.blocks))
            self._weigh(scales, np.arange(layout.blocks), weighed)
        self._kept[key] = self._changed.end, weighed
        if len(self._kept) > MOST:
            del self._kept[next(iter(self._kept))]
        return weighed

    def _weigh(self, scales: Sequence[Scale], blocks: Int64, weighed: Weighed) -> None:
        at_once = max(1, _IN_CACHE // self._layout.size)
        for start in range(0, len(blocks), at_once):
            some = blocks[start : start + at_once]
            weights = np.empty((len(some), self._layout.size))
            weigh_blocks(scales, self._raws, some, weights)
            weighed.weights[some] = weights
            weighed.most[some] = weights.max(axis=1)
