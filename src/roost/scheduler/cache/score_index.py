"""Score index: weights of the allowed hosts of an equivalence class, exact only where the best host may be.

The weights are those of `roost.scheduler.pool.weights`, to the last bit. Why not keep one for each host: each
depends on the least and the greatest number of all hosts, and a claim on the emptiest host often changes the
greatest. So each block of hosts has an upper bound only: the weight of a host with the block's best number
for every weigher. As rounding keeps order, the same arithmetic on the bounds of the numbers gives a bound of
the weights. The block with the highest bound is *opened*, that is its hosts are weighed, until the block with
the highest bound is an open one. That block has the best host.
"""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from roost.fleet.columns import Bools, Float64, Int64
from roost.scheduler.cache.value_range import Stages, Touched, ValueRange, WeigherColumns
from roost.scheduler.cache.weights import (
    Scale,
    Weighed,
    most_of_blocks,
    weigh_blocks,
    weigh_one,
    weigher_numbers,
)
from roost.scheduler.pool.host_pool import Numbers

AT_ONCE = 2_048
"""Hosts weighed at once if the first opened block does not have the best host; then `MORE` times as many.

Mostly the best host is in the first block, or the weights are new and it may be in any.
"""
MORE = 4


class ScoreIndex:
    """Finds the best of the hosts whose ``stage`` (uint8[places]) is ``full``: these are *allowed*.

    The caller counts the allowed hosts; a single host is not weighed.
    """

    def __init__(
        self, columns: WeigherColumns, stage: Stages, full: int, allowed: int, value_range: ValueRange
    ) -> None:
        """``value_range``: of these columns and stages."""
        layout = columns.layout
        self._columns, self._layout = columns, layout
        self._full = full
        self._stage = stage.reshape(-1, layout.size)
        self._raws = [raw.reshape(-1, layout.size) for raw in columns.raws]
        self._shift, self._within = layout.shift, layout.size - 1
        self._at_once = max(1, AT_ONCE // layout.size)
        self._many_cells = len(layout.of_cell) > 1
        self._rank_at = layout.rank_at.reshape(-1, layout.size)
        self._first: Int64 = self._rank_at[:, 0]
        # Weight and tie rank of the best host of each block: exact for opened blocks, bounds for the others.
        self._bound: Float64 = np.zeros(layout.blocks)
        self._lead: Int64 = self._first.copy()
        self._best: list[int] = [0] * layout.blocks
        # The weights in each open block. One column for all blocks would be written in few spots, and the
        # system would allocate it in pages of 2 MiB, each filled with zeros first: 5 ms for a million hosts.
        self._open: dict[int, Float64] = {}
        self._scales: list[Scale] = []
        # Whether a multiplier is not the same for all hosts.
        self._of_columns = not all(isinstance(one, float) for one in columns.multipliers)
        self._away: dict[int, float] = {}
        # The places left out until `let_in`, by block, and the weights of those in open blocks.
        self._without: dict[int, list[int]] = {}
        self._hidden: dict[int, float] = {}
        self._several = allowed > 1
        value_range.settle()
        self._value_range = value_range
        self._normalise()

    def narrowed(
        self, columns: WeigherColumns, origins: Sequence[int], stage: Stages, allowed: int
    ) -> "ScoreIndex":
        """Return the index for fewer allowed hosts, perhaps with more columns; this one stays as it is.

        ``origins``: the number here of each of ``columns``, -1 for those that are not here.
        """
        value_range = self._value_range.narrowed(columns, origins, stage.reshape(-1, self._layout.size))
        return ScoreIndex(columns, stage, self._full, allowed, value_range)

    # Queries

    def best(self, cell: int | None = None) -> int | None:
        """Return the place of the best host, of all or of one cell; of equal ones the lowest tie rank's."""
        blocks = (0, self._layout.blocks) if cell is None else self._layout.of_cell[cell]
        return self._seek(*blocks)

    def weight(self, place: int) -> float:
        """Return the weight of an allowed host, left out or not."""
        weight = self._away.get(place)
        if weight is not None:
            return weight
        block = place >> self._shift
        if block in self._open and self._best[block] == place & self._within:
            return self._bound.item(block)
        return weigh_one(self._scales, self._columns.numbers(place), place)

    def numbers(self, place: int) -> Numbers:
        """Return the numbers that make up the weight of an allowed host.

        Scales and lists of numbers are replaced, never changed; columns of multipliers are changed in place.
        """
        columns = self._columns
        raws = [raw.item(place) for raw in columns.raws]
        numbers = partial(weigher_numbers, self._scales, columns.names, raws, place)
        if self._of_columns:
            found = numbers()
            return lambda: found
        return numbers

    def take(self, place: int) -> None:
        """Leave a host out until `put_back`."""
        if place in self._away:
            return
        block, at = place >> self._shift, place & self._within
        weights = self._open.get(block)
        if weights is None:
            weights = self._open_one(block)
        self._away[place] = weights.item(at)
        weights[at] = -math.inf
        self._note_best(block, weights)

    def put_back(self) -> None:
        """Let in all hosts that were taken."""
        self._restore(self._away)

    def leave_out(self, places: Sequence[int], allowed: int) -> bool:
        """Leave hosts out until `let_in`. Returns False, and leaves none out, if that would change weights.

        Only hosts in opened blocks cost more than a note. ``allowed``: how many hosts are left.
        """
        if (allowed > 1) != self._several or not self._value_range.stay_without(places):
            return False
        for place in places:
            self._without.setdefault(place >> self._shift, []).append(place)
        for block in self._without.keys() & self._open.keys():
            self._hide(block)
        return True

    def let_in(self) -> None:
        """Let in all hosts that were taken or left out."""
        self._restore(self._away)
        self._restore(self._hidden)
        self._without.clear()

    def _restore(self, weights: dict[int, float]) -> None:
        for place, weight in weights.items():
            block, at = place >> self._shift, place & self._within
            self._open[block][at] = weight
            self._raise(block, at, weight)
        weights.clear()

    def _hide(self, block: int) -> None:
        """Apply `leave_out` to an open block."""
        weights = self._open[block]
        for place in self._without[block]:
            at = place & self._within
            self._hidden[place] = weights.item(at)
            weights[at] = -math.inf
        self._note_best(block, weights)

    # Changes

    def settle(self, touched: Sequence[Touched], allowed: int) -> None:
        """Apply the changes of some hosts; ``allowed`` hosts are allowed now."""
        value_range = self._value_range
        for place, numbers in touched:
            value_range.change(place, numbers)
        if self._renormalised(allowed):
            return
        for place, numbers in touched:
            block, at = place >> self._shift, place & self._within
            weight = -math.inf if numbers is None else weigh_one(self._scales, numbers, place)
            weights = self._open.get(block)
            if weights is None:
                if weight > self._bound.item(block):
                    self._bound[block] = weight
                continue
            weights[at] = weight
            if self._best[block] == at:
                self._note_best(block, weights)
            else:
                self._raise(block, at, weight)

    def settle_blocks(self, blocks: Int64, allowed: int) -> None:
        """Apply changes of many hosts in some blocks; ``allowed`` hosts are allowed now."""
        self._value_range.change_blocks(blocks)
        if self._renormalised(allowed):
            return
        for block in blocks.tolist():
            self._open.pop(block, None)
        self._lead[blocks] = self._first[blocks]
        self._bound[blocks] = self._bounds()[blocks]

    def _renormalised(self, allowed: int) -> bool:
        """Compute all weights anew if the normalisation has changed: its ends, or whether there is one."""
        several = allowed > 1
        changed = self._value_range.settle() or several != self._several
        self._several = several
        if changed:
            self._normalise()
        return changed

    def _raise(self, block: int, at: int, weight: float) -> None:
        """Apply the weight of one host of an open block; the others are as before."""
        bound = self._bound.item(block)
        if weight > bound or (weight == bound and at < self._best[block]):
            self._bound[block] = weight
            self._best[block] = at
            self._lead[block] = self._rank_at[block, at]

    def _note_best(self, block: int, weights: Float64) -> float:
        at = int(weights.argmax())
        highest = weights.item(at)
        self._best[block] = at
        self._bound[block] = highest
        self._lead[block] = self._rank_at[block, at]
        return highest

    def _normalise(self) -> None:
        """Compute the scales and the bounds of all blocks."""
        columns, value_range = self._columns, self._value_range
        self._scales = [
            Scale(number, least, greatest - least, columns.multipliers[number])
            for number, (least, greatest) in enumerate(value_range.spans())
            if self._several and least < greatest
        ]
        self._open.clear()
        self._lead[:] = self._first
        self._bound = self._bounds()

    def _bounds(self, leading_weights: Weighed | None = None) -> Float64:
        """Return an upper bound of the weights in each block: float64[blocks].

        ``leading_weights``: the weights by the leading columns; None: each weigher is bounded alone.
        """
        value_range = self._value_range
        bound: Float64 = (
            np.zeros(self._layout.blocks) if leading_weights is None else leading_weights.most.copy()
        )
        for scale in self._scales if leading_weights is None else self._trailing():
            greatest, least = value_range.greatest[scale.number], value_range.least[scale.number]
            bound += most_of_blocks(scale, greatest, least, self._layout.size)
        bound[value_range.empty] = -math.inf
        return bound

    def _trailing(self) -> list[Scale]:
        """Return the scales of the columns after the leading ones."""
        return [scale for scale in self._scales if scale.number >= self._columns.leading]

    def _lower(self, *, cached_only: bool) -> Weighed | None:
        """Lower the bounds of closed blocks by the weights of the leading columns together, and return these.

        ``cached_only``: only if these weights are cached.
        """
        leading = [scale for scale in self._scales if scale.number < self._columns.leading]
        if len(leading) < 2:
            return None
        leading_weights = self._columns.block_scores.of(leading, cached_only=cached_only)
        if leading_weights is not None:
            opened = [*self._open]
            true = self._bound[opened]
            np.minimum(self._bound, self._bounds(leading_weights), out=self._bound)
            self._bound[opened] = true
        return leading_weights

    # Opening

    def _seek(self, first: int, end: int) -> int | None:
        bound = self._bound[first:end]
        tried, lowered = 0, 0
        leading_weights: Weighed | None = None
        while len(bound):
            block = int(bound.argmax())
            highest = bound.item(block)
            if highest == -math.inf:
                return None
            # In a cell the first of equal blocks has the lower tie ranks; another cell may have lower ones.
            if self._many_cells and len(bound) == len(self._bound):
                (tied,) = (bound == highest).nonzero()
                if len(tied) > 1:
                    block = tied.item(self._lead[tied].argmin())
            block += first
            if block in self._open:
                return (block << self._shift) + self._best[block]
            tried += 1
            if tried == 1:
                self._open_one(block)
                continue
            count = self._at_once * MORE ** (tried - 2)
            # Lowering the bounds costs as much as opening all blocks, unless the weights are cached.
            lower = 2 if count * MORE >= end - first else 1
            if lowered < lower:
                lowered = lower
                leading_weights = self._lower(cached_only=lower == 1)
                if self._bound.item(block) < highest:
                    tried -= 1
                    continue
            self._open_many(first, end, count, leading_weights)
        return None

    def _open_one(self, block: int) -> Float64:
        weights = np.empty(self._layout.size)
        weigh_blocks(self._scales, self._raws, block, weights)
        weights[self._stage[block] != self._full] = -math.inf
        self._open[block] = weights
        if self._note_best(block, weights) == -math.inf:
            self._value_range.empty[block] = True
        if block in self._without:
            self._hide(block)
        return weights

    def _open_many(self, first: int, end: int, count: int, leading_weights: Weighed | None) -> None:
        """Open the first blocks by bound and tie rank, ``count`` at most."""
        closed: Bools = np.ones(self._layout.blocks, dtype=np.bool_)
        closed[[*self._open]] = False
        blocks = np.flatnonzero(closed[first:end]) + first
        floor = self._bound[first:end].max(where=~closed[first:end], initial=-math.inf)
        blocks = blocks[self._bound[blocks] >= floor]
        if len(blocks) > count:
            # Of equal bounds the lowest tie ranks matter alone: on a fleet of equal hosts all are equal.
            blocks = np.sort(blocks[np.lexsort((self._lead[blocks], -self._bound[blocks]))[:count]])
        # With the leading weights there is less to keep in the processor's cache.
        at_once = self._at_once * (MORE * MORE if leading_weights else 1)
        for start in range(0, len(blocks), at_once):
            self._open_these(blocks[start : start + at_once], leading_weights)

    def _open_these(self, blocks: Int64, leading_weights: Weighed | None) -> None:
        weights = np.empty((len(blocks), self._layout.size))
        if leading_weights is None:
            weigh_blocks(self._scales, self._raws, blocks, weights)
        else:
            weigh_blocks(self._trailing(), self._raws, blocks, weights, leading_weights.weights)
        weights[self._stage[blocks] != self._full] = -math.inf
        at = weights.argmax(axis=1)
        highest = weights[np.arange(len(blocks)), at]
        self._bound[blocks] = highest
        self._lead[blocks] = self._layout.rank_at[blocks * self._layout.size + at]
        self._value_range.empty[blocks] = highest == -math.inf
        for block, best, of_block in zip(blocks.tolist(), at.tolist(), weights, strict=True):
            self._best[block] = best
            self._open[block] = of_block
            if block in self._without:
                self._hide(block)
