"""The weights of the hosts that one kind of request may go to, worked out only where the best may be.

The weights are those of `roost.scheduler.weighing`, to the last bit. Why not keep one for each host: each
hangs on the least and the greatest number of all hosts, and a claim on the emptiest host often changes the
greatest. So only a bound is kept for each block of hosts, which no weight in it exceeds: what a host would
weigh that had the block's best number for every weigher. As rounding keeps order, the same arithmetic on the
bounds of the numbers gives a bound of the weights. The block with the highest bound is *opened*, that is its
hosts are weighed, until the block with the highest bound is an open one: that has the best host.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Bools, Float64, Int64
from roost.scheduler.kept.columns import Columns
from roost.scheduler.kept.extremes import Extremes, extremes_of_few

Stages = npt.NDArray[np.uint8]

Touched = tuple[int, list[float] | None]
"""A host that was allowed or is: its place, and its numbers, one for each weigher; None if it is not now."""

AT_ONCE = 2_048
"""Hosts weighed at once when the first block that was opened does not have the best; then `MORE` times as
many. Mostly the best is in the first, or weights are new and it may be in any."""
MORE = 4
FEW = 16
"""Where fewer than one place in so many is allowed, bounds are worked out for their blocks alone."""


class Ranks:
    """Ranks the hosts whose ``stage`` (uint8[places]) is ``full``: these are *allowed*.

    The number of allowed hosts is told by the caller: a host that is alone is not weighed.
    """

    def __init__(
        self,
        columns: Columns,
        stage: Stages,
        full: int,
        allowed: int,
        extremes: Extremes,
        like: "Ranks | None" = None,
    ) -> None:
        """``extremes``: of these columns and stages. ``like``: ranks of more hosts, whose bounds hold for
        fewer if both are normalised alike."""
        layout = columns.layout
        self._columns = columns
        self._layout = layout
        self._full = full
        self._stage = stage.reshape(-1, layout.size)
        blocks = layout.blocks
        self._raws = [raw.reshape(-1, layout.size) for raw in columns.raws]
        self._shift, self._within = layout.shift, layout.size - 1
        self._at_once = max(1, AT_ONCE // layout.size)
        self._many_cells = len(layout.of_cell) > 1
        self._rank_at = layout.rank_at.reshape(-1, layout.size)
        self._first: Int64 = self._rank_at[:, 0]
        # Of an open block what is true, of others the most that may be: weight and tie rank of the best host.
        self._bound: Float64 = np.zeros(blocks)
        self._lead: Int64 = self._first.copy()
        self._best: list[int] = [0] * blocks
        # The weights in each open block. One column for all blocks would be touched here and there, and the
        # system would hand it out in pages of 2 MiB, each filled with zeros first: 5 ms for a million hosts.
        self._open: dict[int, Float64] = {}
        self._scales: list[_Scale] = []
        self._away: dict[int, float] = {}
        # The places left out until `let_in`, by block, and of those in open blocks the weight.
        self._without: dict[int, list[int]] = {}
        self._hidden: dict[int, float] = {}
        # Blocks that are open in the ranks of more hosts that these began with, until a host in them changes.
        self._opened: dict[int, Float64] = {}
        self._touched: set[int] = set()
        self._several = allowed > 1
        extremes.settle()
        self._extremes = extremes
        if like is None or not like._weighs_like(self):
            self._renormalise()
        else:
            self._scales, self._bound, self._lead = like._scales, like._bound.copy(), like._lead.copy()
            self._opened = like._open

    def narrowed(self, columns: Columns, origins: Sequence[int], stage: Stages, allowed: int) -> "Ranks":
        """The ranks where fewer hosts are allowed, and perhaps with more columns; these stay as they are.

        ``origins``: the number here of each of ``columns``, -1 for those that are not here.
        """
        grid = stage.reshape(-1, self._layout.size)
        if allowed * FEW < len(stage):
            extremes = extremes_of_few(columns, grid, self._full)
        else:
            extremes = self._extremes.narrowed(columns, origins, grid)
        return Ranks(columns, stage, self._full, allowed, extremes, self)

    def _weighs_like(self, other: "Ranks") -> bool:
        """Whether a host weighs the same in both."""
        return (
            self._several == other._several
            and len(self._raws) == len(other._raws)
            and self._extremes.spans() == other._extremes.spans()
        )

    # What is asked

    def best(self) -> int | None:
        """The place of the best host; of equal ones that with the lowest tie rank."""
        return self._seek(0, self._layout.blocks)

    def best_of(self, cell: int) -> int | None:
        """The place of the best host of a cell; of equal ones that with the lowest tie rank."""
        return self._seek(*self._layout.of_cell[cell])

    def weight(self, place: int) -> float:
        """The weight of an allowed host, whether or not it is left out."""
        weight = self._away.get(place)
        if weight is not None:
            return weight
        block = place >> self._shift
        if block in self._open and self._best[block] == place & self._within:
            return self._bound.item(block)
        return self._weigh_one(place, self._columns.numbers(place))

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
        """Let all hosts back in that were taken."""
        self._restore(self._away)

    def leave_out(self, places: Sequence[int], allowed: int) -> bool:
        """Leave hosts out until `let_in`; False if that would change weights, and then they are not.

        It costs more only for those whose block is opened. ``allowed``: how many hosts are left.
        """
        if (allowed > 1) != self._several or not self._extremes.stay_without(places):
            return False
        for place in places:
            self._without.setdefault(place >> self._shift, []).append(place)
        for block in self._without.keys() & self._open.keys():
            self._hide(block)
        return True

    def let_in(self) -> None:
        """Let all hosts back in, those taken and those left out."""
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
        """Leave those hosts of an open block out that are to be left out."""
        weights = self._open[block]
        for place in self._without[block]:
            at = place & self._within
            self._hidden[place] = weights.item(at)
            weights[at] = -math.inf
        self._note_best(block, weights)

    # What has changed

    def settle(self, touched: Sequence[Touched], allowed: int) -> None:
        """Take in what has changed of some hosts; ``allowed`` hosts are allowed now."""
        extremes = self._extremes
        for place, numbers in touched:
            extremes.change(place, numbers)
        if self._spans_changed(allowed):
            self._renormalise()
            return
        for place, numbers in touched:
            block, at = place >> self._shift, place & self._within
            self._touched.add(block)
            weight = -math.inf if numbers is None else self._weigh_one(place, numbers)
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
        """Take in that much has changed in some blocks; ``allowed`` hosts are allowed now."""
        self._extremes.change_blocks(blocks)
        if self._spans_changed(allowed):
            self._renormalise()
            return
        for block in blocks.tolist():
            self._open.pop(block, None)
        self._lead[blocks] = self._first[blocks]
        self._bound[blocks] = self._bounds()[blocks]

    def _spans_changed(self, allowed: int) -> bool:
        """Whether numbers are normalised between other ends than before, or only now or no longer."""
        several = allowed > 1
        changed = self._extremes.settle() or several != self._several
        self._several = several
        return changed

    def _raise(self, block: int, at: int, weight: float) -> None:
        """A host of an open block weighs ``weight`` now; all others as before."""
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

    def _renormalise(self) -> None:
        """Least and greatest have changed, and so all weights."""
        columns, extremes = self._columns, self._extremes
        self._scales = [
            _Scale(number, least, greatest - least, columns.multipliers[number])
            for number, (least, greatest) in enumerate(extremes.spans())
            if self._several and least < greatest
        ]
        self._open.clear()
        self._opened = {}
        self._lead[:] = self._first
        self._bound = self._bounds()

    def _bounds(self) -> Float64:
        """What no weight in a block exceeds: float64[blocks]."""
        size = self._layout.size
        bound: Float64 = np.zeros(self._layout.blocks)
        for scale in self._scales:
            multiplier = scale.multiplier
            if isinstance(multiplier, float):
                if multiplier == 0.0:
                    continue
                best = self._extremes.greatest if multiplier > 0.0 else self._extremes.least
                bound += (best[scale.number] - scale.least) / scale.span * multiplier
                continue
            greatest = (self._extremes.greatest[scale.number] - scale.least) / scale.span
            least = (self._extremes.least[scale.number] - scale.least) / scale.span
            most = multiplier.reshape(-1, size).max(axis=1)
            part = np.where(most < 0, least, greatest)
            bound += np.where(most == 0, 0.0, part * np.where(most == 0, 1.0, most))
        bound[self._extremes.empty] = -math.inf
        return bound

    # Opening

    def _seek(self, first: int, end: int) -> int | None:
        bound = self._bound[first:end]
        for tried in range(end - first + 1):
            if not len(bound):
                return None
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
            if not tried or (block in self._opened and block not in self._touched):
                self._open_one(block)
            else:
                self._open_many(first, end, self._at_once * MORE ** (tried - 1))
        raise AssertionError("all blocks are open, and yet none is the best")

    def _open_one(self, block: int) -> Float64:
        if block in self._opened and block not in self._touched:
            weights: Float64 = self._opened[block].copy()
        else:
            weights = np.empty(self._layout.size)
            self._weigh(block, weights)
        weights[self._stage[block] != self._full] = -math.inf
        self._open[block] = weights
        if self._note_best(block, weights) == -math.inf:
            self._extremes.empty[block] = True
        if block in self._without:
            self._hide(block)
        return weights

    def _open_many(self, first: int, end: int, count: int) -> None:
        """Open the first blocks by bound and tie rank, ``count`` at most."""
        closed: Bools = np.ones(self._layout.blocks, dtype=np.bool_)
        closed[[*self._open]] = False
        blocks = np.flatnonzero(closed[first:end]) + first
        floor = self._bound[first:end].max(where=~closed[first:end], initial=-math.inf)
        blocks = blocks[self._bound[blocks] >= floor]
        if len(blocks) > count:
            # Of equal ones those with the lowest tie ranks, which alone may matter: on a fleet of equal hosts
            # all blocks have the same bound.
            blocks = np.sort(blocks[np.lexsort((self._lead[blocks], -self._bound[blocks]))[:count]])
        for start in range(0, len(blocks), self._at_once):
            self._open_these(blocks[start : start + self._at_once])

    def _open_these(self, blocks: Int64) -> None:
        weights = np.empty((len(blocks), self._layout.size))
        self._weigh(blocks, weights)
        weights[self._stage[blocks] != self._full] = -math.inf
        at = weights.argmax(axis=1)
        highest = weights[np.arange(len(blocks)), at]
        self._bound[blocks] = highest
        self._lead[blocks] = self._layout.rank_at[blocks * self._layout.size + at]
        self._extremes.empty[blocks] = highest == -math.inf
        for block, best, of_block in zip(blocks.tolist(), at.tolist(), weights, strict=True):
            self._best[block] = best
            self._open[block] = of_block
            if block in self._without:
                self._hide(block)

    def _weigh_one(self, place: int, numbers: list[float]) -> float:
        total: float | None = None
        for scale in self._scales:
            part = (numbers[scale.number] - scale.least) / scale.span
            if not scale.plain:
                multiplier = scale.multiplier
                part *= multiplier if isinstance(multiplier, float) else multiplier.item(place)
            total = part if total is None else total + part
        return 0.0 if total is None else total

    def _weigh(self, blocks: int | Int64, out: Float64) -> None:
        """The weights in one block or in some, whoever is allowed."""
        if not self._scales:
            out[:] = 0.0
            return
        size = self._layout.size
        for number, scale in enumerate(self._scales):
            part = self._raws[scale.number][blocks] - scale.least
            part /= scale.span
            if not scale.plain:
                multiplier = scale.multiplier
                part *= multiplier if isinstance(multiplier, float) else multiplier.reshape(-1, size)[blocks]
            if number:
                out += part
            else:
                out[:] = part


class _Scale:
    """How one weigher's numbers count: (number - least) / span × multiplier.

    ``number``: which weigher's. ``plain``: all are multiplied with 1.
    """

    __slots__ = ("least", "multiplier", "number", "plain", "span")

    def __init__(self, number: int, least: float, span: float, multiplier: Float64 | float) -> None:
        self.number = number
        self.least = least
        self.span = span
        self.multiplier = multiplier
        self.plain = isinstance(multiplier, float) and multiplier == 1.0
