"""Weights of all hosts, allowed or not, and the highest weight of each block.

`roost.scheduler.cache.score_index` bounds a block by its best number for each weigher, as if one host had all
of them. Claims make such bounds loose: the host with the most memory is the one claimed last, and has one
more I/O operation for it. After thousands of claims each of the first blocks is opened in vain. The bounds
here take all weighers together. They cost as much as weighing all hosts, and hold for all requests with the
same normalisation; a claim then changes one block.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Float64, Int64
from roost.fleet.invalidation_log import InvalidationLog
from roost.scheduler.cache.layout import PlaceLayout
from roost.scheduler.cache.scales import Scale, weigh_blocks

MOST = 4
"""Normalisations whose weights are cached. Requests that may use different hosts mostly share a few."""
_IN_CACHE = 32_768
"""Hosts weighed at once. Columns of this length stay in the processor's cache."""

_Key = tuple[tuple[int, float, float], ...]


class Weighed(NamedTuple):
    """``weights``: of all hosts, float64[blocks, size]; ``most``: of the best host of each block,
    float64[blocks].

    Both are read-only, and valid until the next change of a host.
    """

    weights: Float64
    most: Float64


class BlockScores:
    """The weights by the columns of one host index, for the normalisations used last.

    ``raws``: the numbers of each weigher, float64[places]. ``changed``: the places where a number or a
    multiplier has changed.
    """

    def __init__(self, layout: PlaceLayout, raws: Sequence[Float64], changed: InvalidationLog) -> None:
        self._layout = layout
        self._raws = [raw.reshape(-1, layout.size) for raw in raws]
        self._changed = changed
        self._cached: dict[_Key, tuple[int, Weighed]] = {}

    def of(self, scales: Sequence[Scale], *, cached_only: bool = False) -> Weighed | None:
        """Return the weights of all hosts by some scales. ``cached_only``: None unless they are cached."""
        key = tuple((each.number, each.least, each.span) for each in scales)
        cached = self._cached.pop(key, None)
        changed = None if cached is None else self._changed.since(cached[0])
        if cached is not None and changed is not None:
            weighed = cached[1]
            if changed:
                blocks = np.array([*{place >> self._layout.shift for place in changed}], dtype=np.int64)
                self._weigh(scales, blocks, weighed)
        elif cached_only:
            return None
        else:
            layout = self._layout
            weighed = Weighed(np.empty((layout.blocks, layout.size)), np.empty(layout.blocks))
            self._weigh(scales, np.arange(layout.blocks), weighed)
        self._cached[key] = self._changed.end, weighed
        if len(self._cached) > MOST:
            del self._cached[next(iter(self._cached))]
        return weighed

    def _weigh(self, scales: Sequence[Scale], blocks: Int64, weighed: Weighed) -> None:
        at_once = max(1, _IN_CACHE // self._layout.size)
        for start in range(0, len(blocks), at_once):
            some = blocks[start : start + at_once]
            weights = np.empty((len(some), self._layout.size))
            weigh_blocks(scales, self._raws, some, weights)
            weighed.weights[some] = weights
            weighed.most[some] = weights.max(axis=1)
