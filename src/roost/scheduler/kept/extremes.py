"""The least and the greatest of each weigher's numbers over the hosts that are allowed."""

import math

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Bools, Float64, Int64
from roost.scheduler.kept.board import Board

_ONE_BY_ONE = 6
_IN_CACHE = 8_192


class Extremes:
    """Found by bounds, as in `roost.scheduler.kept.ranks`.

    ``greatest`` and ``least``, float64[weighers, blocks]: no allowed host of a block has more, or less.
    ``empty``: the blocks that are known to have no allowed host.
    """

    def __init__(self, board: Board, stage: npt.NDArray[np.uint8], full: int) -> None:
        greatest, least = board.bounds()
        self.greatest: Float64 = greatest.copy()
        self.least: Float64 = least.copy()
        self.empty: Bools = np.zeros(board.layout.blocks, dtype=np.bool_)
        self._stage = stage
        self._full = full
        self._size, self._shift = board.layout.size, board.layout.shift
        self._columns = board.raws
        self._raws = [raw.reshape(stage.shape) for raw in board.raws]
        count = len(self._raws)
        # For each weigher a host that has the greatest and one that has the least number.
        self._top = [(-math.inf, -1)] * count
        self._bottom = [(math.inf, -1)] * count
        self._lost_top = set(range(count))
        self._lost_bottom = set(range(count))
        self.settle()

    def spans(self) -> list[tuple[float, float]]:
        """Least and greatest of each weigher; of no hosts inf and -inf."""
        return [(low, high) for (low, _), (high, _) in zip(self._bottom, self._top, strict=True)]

    def change(self, place: int, was: bool, allowed: bool) -> bool:
        """A host's numbers, or whether it is allowed, may have changed; returns whether that matters."""
        if not (was or allowed):
            return False
        block = place >> self._shift
        if allowed:
            self.empty[block] = False
        for number, column in enumerate(self._columns):
            top, bottom = self._top[number], self._bottom[number]
            if not allowed:
                if place == top[1]:
                    self._lost_top.add(number)
                if place == bottom[1]:
                    self._lost_bottom.add(number)
                continue
            raw = column.item(place)
            if raw > self.greatest.item(number, block):
                self.greatest[number, block] = raw
            if raw < self.least.item(number, block):
                self.least[number, block] = raw
            if raw > top[0] or (place == top[1] and raw < top[0]):
                self._lost_top.add(number)
            if raw < bottom[0] or (place == bottom[1] and raw > bottom[0]):
                self._lost_bottom.add(number)
        return True

    def change_blocks(self, blocks: Int64) -> None:
        """Much may have changed in some blocks."""
        allowed = self._stage[blocks] == self._full
        self.empty[blocks] = ~allowed.any(axis=1)
        for number, raws in enumerate(self._raws):
            some = raws[blocks]
            self.greatest[number, blocks] = np.where(allowed, some, -math.inf).max(axis=1)
            self.least[number, blocks] = np.where(allowed, some, math.inf).min(axis=1)
        self._lost_top.update(range(len(self._raws)))
        self._lost_bottom.update(range(len(self._raws)))

    def settle(self) -> bool:
        """Find what was lost; returns whether any least or greatest number is another than before."""
        if not (self._lost_top or self._lost_bottom):
            return False
        before = self.spans()
        for number in self._lost_top:
            self._top[number] = self._find(number, self.greatest[number], 1.0)
        for number in self._lost_bottom:
            self._bottom[number] = self._find(number, self.least[number], -1.0)
        self._lost_top.clear()
        self._lost_bottom.clear()
        return before != self.spans()

    def _find(self, number: int, bounds: Float64, sign: float) -> tuple[float, int]:
        """The greatest number (or the least, with a sign of -1) and the place of a host that has it."""
        raws = self._raws[number]
        nothing = -math.inf * sign
        for tried in range(len(bounds) + 1):
            block = int(bounds.argmax() if sign > 0 else bounds.argmin())
            bound = bounds.item(block)
            if bound == nothing:
                break
            of_block = np.where(self._stage[block] == self._full, raws[block], nothing)
            at = int(of_block.argmax() if sign > 0 else of_block.argmin())
            found = of_block.item(at)
            if found == bound:
                return found, (block << self._shift) + at
            bounds[block] = found
            if tried == _ONE_BY_ONE:
                self._tighten(bounds, raws, sign)
        return nothing, -1

    def _tighten(self, bounds: Float64, raws: Float64, sign: float) -> None:
        """Most bounds are loose, because the best hosts are none of ours: tighten all of them.

        Some blocks in a row at a time, which fit into the processor's cache: a new column of a million
        numbers costs more than what is done with it.
        """
        at_once = max(1, _IN_CACHE // self._size)
        barred = np.empty((at_once, self._size))
        for start in range(0, len(bounds), at_once):
            some = slice(start, start + at_once)
            numbers = barred[: len(bounds[some])]
            # Comparing with an infinite number is three times as quick as choosing by a mask: the worst of
            # all for hosts that are not allowed, the best for those that are.
            np.subtract(0.5, self._stage[some] == self._full, out=numbers)
            numbers *= -math.inf * sign
            if sign > 0:
                bounds[some] = np.minimum(raws[some], numbers, out=numbers).max(axis=1)
            else:
                bounds[some] = np.maximum(raws[some], numbers, out=numbers).min(axis=1)
