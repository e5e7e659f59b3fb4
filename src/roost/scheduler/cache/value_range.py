"""The least and the greatest number of each weigher over the allowed hosts."""

import math
from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Bools, Float64, Int64
from roost.scheduler.cache.host_columns import PlaceLayout
from roost.scheduler.cache.weights import BlockScores

Stages = npt.NDArray[np.uint8]
"""The stage of each host, uint8[places], see `roost.scheduler.cache.equivalence_class.EquivalenceClass`."""
Touched = tuple[int, list[float] | None]
"""A host that was or is allowed: its place, and its number for each weigher; None: it is not allowed now."""

ONE_BY_ONE = 6
"""Blocks that are searched before all bounds are tightened. Mostly the first or second has the number."""
_IN_CACHE = 32_768
"""Numbers processed at once. Two such columns stay in the processor's cache (512 KiB), and there are few
enough steps that starting one costs nothing."""


class WeigherColumns(Protocol):
    """One column for each weigher that returns numbers, in the order of the weighers.

    ``names``: of the weighers; ``raws``: numbers before normalisation, float64[places]; ``multipliers``: a
    number, or float64[places]; ``minvals``: the number that is normalised to 0, -inf where it is the least.
    ``block_scores``: weights by the first ``leading`` columns, which are those of the host index.
    """

    layout: PlaceLayout
    block_scores: BlockScores
    leading: int
    names: list[str]
    raws: list[Float64]
    multipliers: list[Float64 | float]
    minvals: list[float]

    def numbers(self, place: int) -> list[float]:
        """Return the numbers of one host."""


class ValueRange:
    """Finds least and greatest numbers by bounds, as `roost.scheduler.cache.score_index` finds weights.

    ``greatest`` and ``least``, float64[weighers, blocks]: no allowed host of a block has more, or less.
    ``empty``: the blocks that are known to have no allowed host.

    Numbers with a minval are normalised from it. Their least is sought only where it bounds weights, which is
    under a multiplier that may be negative.
    """

    def __init__(
        self,
        columns: WeigherColumns,
        stage: Stages,
        full: int,
        greatest: Float64,
        least: Float64,
    ) -> None:
        """``greatest`` and ``least`` belong to this object from now on, and need not be tight."""
        self.greatest = greatest
        self.least = least
        self.empty: Bools = np.zeros(columns.layout.blocks, dtype=np.bool_)
        self._stage = stage
        self._full = full
        self._size, self._shift = columns.layout.size, columns.layout.shift
        self._raws = [raw.reshape(stage.shape) for raw in columns.raws]
        count = len(self._raws)
        # For each weigher a host that has the greatest and one that has the least number.
        self._top = [(-math.inf, -1)] * count
        self._minvals = columns.minvals
        self._seeks_least = [
            number
            for number, (minval, multiplier) in enumerate(
                zip(columns.minvals, columns.multipliers, strict=True)
            )
            if minval == -math.inf or not (isinstance(multiplier, float) and multiplier > 0.0)
        ]
        self._bottom = [(minval, -1) for minval in columns.minvals]
        for number in self._seeks_least:
            self._bottom[number] = (math.inf, -1)
        self._lost_top = set(range(count))
        self._lost_bottom = set(self._seeks_least)

    def narrowed(self, columns: WeigherColumns, origins: Sequence[int], stage: Stages) -> "ValueRange":
        """Return the range for fewer allowed hosts, perhaps with more columns; this one stays as it is.

        ``origins``: the number here of each of ``columns``, -1 for those that are not here.
        """
        if len(origins) == len(self._raws):
            greatest, least = self.greatest.copy(), self.least.copy()
        else:
            greatest, least = np.empty((2, len(origins), len(stage)))
            allowed = stage == self._full
            for number, origin in enumerate(origins):
                if origin >= 0:
                    greatest[number], least[number] = self.greatest[origin], self.least[origin]
                    continue
                raw = columns.raws[number].reshape(stage.shape)
                np.where(allowed, raw, -math.inf).max(axis=1, out=greatest[number])
                np.where(allowed, raw, math.inf).min(axis=1, out=least[number])
        other = ValueRange(columns, stage, self._full, greatest, least)
        other.empty |= self.empty
        for number, origin in enumerate(origins):
            if origin < 0:
                continue
            if self._holds(stage, self._top[origin]) and origin not in self._lost_top:
                other._top[number] = self._top[origin]
                other._lost_top.discard(number)
            if number in other._lost_bottom and self._holds(stage, self._bottom[origin]):
                other._bottom[number] = self._bottom[origin]
                other._lost_bottom.discard(number)
        return other

    def _holds(self, stage: Stages, found: tuple[float, int]) -> bool:
        """Return whether the host with a greatest or least number is allowed."""
        place = found[1]
        return place >= 0 and bool(stage.item(place >> self._shift, place & (self._size - 1)) == self._full)

    def stay_without(self, places: Collection[int]) -> bool:
        """Return whether hosts with the least and greatest numbers are left without some of the allowed
        hosts."""
        holders = {place for _, place in (*self._top, *self._bottom)}
        return holders.isdisjoint(places)

    def spans(self) -> list[tuple[float, float]]:
        """Return the ends of each weigher's normalisation: its minval or least number, and its greatest.

        Without hosts the greatest is -inf.
        """
        return [
            (low if minval == -math.inf else minval, high)
            for minval, (low, _), (high, _) in zip(self._minvals, self._bottom, self._top, strict=True)
        ]

    def change(self, place: int, numbers: list[float] | None) -> None:
        """Apply the present numbers of a host that was or is allowed; None if it is not allowed any more."""
        if numbers is None:
            self._lost_top.update(i for i, (_, holder) in enumerate(self._top) if holder == place)
            self._lost_bottom.update(i for i, (_, holder) in enumerate(self._bottom) if holder == place)
            return
        block = place >> self._shift
        self.empty[block] = False
        greatest, least = self.greatest, self.least
        found = zip(numbers, self._top, self._bottom, strict=True)
        for number, (raw, (high, highest), (low, lowest)) in enumerate(found):
            if raw > greatest.item(number, block):
                greatest[number, block] = raw
            if raw < least.item(number, block):
                least[number, block] = raw
            if raw > high or (place == highest and raw < high):
                self._lost_top.add(number)
            if raw < low or (place == lowest and raw > low):
                self._lost_bottom.add(number)

    def change_blocks(self, blocks: Int64) -> None:
        """Compute the bounds of some blocks anew, where many hosts may have changed."""
        allowed = self._stage[blocks] == self._full
        self.empty[blocks] = ~allowed.any(axis=1)
        for number, raws in enumerate(self._raws):
            some = raws[blocks]
            self.greatest[number, blocks] = np.where(allowed, some, -math.inf).max(axis=1)
            self.least[number, blocks] = np.where(allowed, some, math.inf).min(axis=1)
        self._lost_top.update(range(len(self._raws)))
        self._lost_bottom.update(self._seeks_least)

    def settle(self) -> bool:
        """Find the least and greatest numbers that were lost. Returns whether any of them has changed."""
        if not (self._lost_top or self._lost_bottom):
            return False
        before = self.spans()
        self._find_all(self._lost_top, self.greatest, 1.0, self._top)
        self._find_all(self._lost_bottom, self.least, -1.0, self._bottom)
        self._lost_top.clear()
        self._lost_bottom.clear()
        return before != self.spans()

    def _find_all(
        self, lost: Collection[int], bounds: Float64, sign: float, found: list[tuple[float, int]]
    ) -> None:
        """Find the greatest numbers of some weighers (with a sign of -1 the least) and a host with each."""
        tight = False
        for number in lost:
            one = self._find(number, bounds[number], sign, math.inf if tight else ONE_BY_ONE)
            if one is None:
                self._tighten([*lost], bounds, sign)
                tight = True
                one = self._find(number, bounds[number], sign, math.inf)
            assert one is not None
            found[number] = one

    def _find(self, number: int, bounds: Float64, sign: float, at_most: float) -> tuple[float, int] | None:
        """Return the best number and the place of a host with it; None if more than ``at_most`` blocks must
        be searched."""
        raws = self._raws[number]
        nothing = -math.inf * sign
        for tried in range(len(bounds) + 1):
            block = int(bounds.argmax() if sign > 0 else bounds.argmin())
            bound = bounds.item(block)
            if bound == nothing:
                break
            if tried > at_most:
                return None
            of_block = raws[block]
            at = int(of_block.argmax() if sign > 0 else of_block.argmin())
            if self._stage[block, at] != self._full:
                of_block = np.where(self._stage[block] == self._full, of_block, nothing)
                at = int(of_block.argmax() if sign > 0 else of_block.argmin())
            found = of_block.item(at)
            if found == bound:
                return found, (block << self._shift) + at
            bounds[block] = found
        return nothing, -1

    def _tighten(self, numbers: list[int], bounds: Float64, sign: float) -> None:
        """Tighten all bounds, of which most are loose because the best hosts are not allowed.

        The arrays are processed some blocks at a time, which fit into the processor's cache: a new column of
        a million numbers costs more than the work on it. All weighers are processed together, because finding
        the allowed hosts costs as much as two of them.
        """
        at_once = min(max(1, _IN_CACHE // self._size), len(self._stage))
        barred, worse = np.empty((2, at_once, self._size))
        choose, best = (np.minimum, np.max) if sign > 0 else (np.maximum, np.min)
        for start in range(0, len(self._stage), at_once):
            some = slice(start, start + at_once)
            stage = self._stage[some]
            barred, worse = barred[: len(stage)], worse[: len(stage)]
            # Comparing with an infinite number is three times as fast as choosing by a mask: hosts that are
            # not allowed get the worst number of all, allowed ones keep their own.
            np.subtract(0.5, stage == self._full, out=barred)
            barred *= -math.inf * sign
            for number in numbers:
                choose(self._raws[number][some], barred, out=worse)
                best(worse, axis=1, out=bounds[number, some])
