"""Weights of hosts from their numbers, and the highest weight of each block of hosts.

`roost.scheduler.cache.score_index` bounds a block by its best number for each weigher, as if one host had all
of them. Claims make such bounds loose: the host with the most memory is the one claimed last, and has one
more I/O operation for it. After thousands of claims each of the first blocks is opened in vain. The bounds
of `BlockScores` take all weighers together. They cost as much as weighing all hosts, and hold for all
requests with the same normalisation; a claim then changes one block.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Float64, Int64
from roost.fleet.invalidation_log import InvalidationLog
from roost.model.reasons import WeigherNumber
from roost.scheduler.cache.host_columns import PlaceLayout


class Scale:
    """The normalisation of one weigher's numbers: (number - least) / span × multiplier.

    ``number``: of the weigher's column. ``multiplier``: a number, or float64[places]. ``plain``: it is 1.
    """

    __slots__ = ("least", "multiplier", "number", "plain", "span")

    def __init__(self, number: int, least: float, span: float, multiplier: Float64 | float) -> None:
        self.number = number
        self.least = least
        self.span = span
        self.multiplier = multiplier
        self.plain = isinstance(multiplier, float) and multiplier == 1.0

    def of_one(self, number: float, place: int) -> float:
        """Return the part that a number adds to the weight of the host at a place."""
        part = (number - self.least) / self.span
        if not self.plain:
            multiplier = self.multiplier
            part *= multiplier if isinstance(multiplier, float) else multiplier.item(place)
        return part

    def weigher_number(self, weigher: str, number: float, place: int) -> WeigherNumber:
        """Return the number of a weigher for the host at a place, as explanations show it."""
        multiplier = self.multiplier
        one = multiplier if isinstance(multiplier, float) else multiplier.item(place)
        return WeigherNumber(weigher, number, (number - self.least) / self.span, one)


def weigher_numbers(
    scales: Sequence[Scale], weighers: Sequence[str], numbers: Sequence[float], place: int
) -> tuple[WeigherNumber, ...]:
    """Return the numbers that make up the weight of one host, given its number for each weigher."""
    return tuple(
        scale.weigher_number(weighers[scale.number], numbers[scale.number], place) for scale in scales
    )


def weigh_one(scales: Sequence[Scale], numbers: Sequence[float], place: int) -> float:
    """Return the weight of one host, given its number for each weigher."""
    total: float | None = None
    for scale in scales:
        number = numbers[scale.number]
        part = (number - scale.least) / scale.span if scale.plain else scale.of_one(number, place)
        total = part if total is None else total + part
    return 0.0 if total is None else total


def weigh_blocks(
    scales: Sequence[Scale],
    raws: Sequence[Float64],
    blocks: int | Int64,
    out: Float64,
    leading: Float64 | None = None,
) -> None:
    """Write the weights of all hosts of some blocks, by the arithmetic of `weigh_one`, to the last bit.

    ``raws``: the numbers for each weigher, float64[blocks, size]; ``out``: as many blocks as are chosen, ×
    size. ``leading``: the sums of the weighers before ``scales``, float64[blocks, size].
    """
    if leading is not None:
        out[:] = leading[blocks]
    elif not scales:
        out[:] = 0.0
    for number, scale in enumerate(scales):
        raw = raws[scale.number]
        part = raw[blocks] - scale.least
        part /= scale.span
        if not scale.plain:
            multiplier = scale.multiplier
            part *= multiplier if isinstance(multiplier, float) else multiplier.reshape(raw.shape)[blocks]
        if number or leading is not None:
            out += part
        else:
            out[:] = part


def most_of_blocks(scale: Scale, greatest: Float64, least: Float64, size: int) -> Float64 | float:
    """Return an upper bound of a weigher's part in each block, given its greatest and least numbers."""
    multiplier = scale.multiplier
    if isinstance(multiplier, float):
        if multiplier == 0.0:
            return 0.0
        best: Float64 = ((greatest if multiplier > 0.0 else least) - scale.least) / scale.span * multiplier
        return best
    most = multiplier.reshape(-1, size).max(axis=1)
    part = (np.where(most < 0, least, greatest) - scale.least) / scale.span
    found: Float64 = np.where(most == 0, 0.0, part * np.where(most == 0, 1.0, most))
    return found


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
