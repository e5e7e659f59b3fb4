"""The numbers of the weighers that apply to a request, by place."""

from typing import Protocol

import numpy as np

from roost.fleet.columns import Float64
from roost.scheduler.cache.block_scores import BlockScores
from roost.scheduler.cache.layout import PlaceLayout


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


class MoreColumns:
    """The columns of a host index together with those of one request.

    ``origins``: for each column its number in the host index, -1 if it is not there.
    """

    def __init__(self, base: WeigherColumns, weigher_ranks: list[int], more: list["OwnColumn"]) -> None:
        """``weigher_ranks``: for each column of the host index the number of its weigher among all,
        ascending."""
        self.layout = base.layout
        self._base = base
        self.own = more
        found = [(rank, number, None) for number, rank in enumerate(weigher_ranks)]
        every = sorted([*found, *((one.rank, -1, one) for one in more)], key=lambda each: each[0])
        self.origins = [number for _, number, _ in every]
        self.block_scores = base.block_scores
        self.leading = self.origins.index(-1) if -1 in self.origins else len(self.origins)
        self.names = [base.names[n] if one is None else one.name for _, n, one in every]
        self.raws = [base.raws[n] if one is None else one.raw for _, n, one in every]
        self.multipliers = [base.multipliers[n] if one is None else one.multiplier for _, n, one in every]
        self.minvals = [base.minvals[n] if one is None else one.minval for _, n, one in every]

    def numbers(self, place: int) -> list[float]:
        shared = self._base.numbers(place)
        return [
            shared[origin] if origin >= 0 else raw.item(place)
            for origin, raw in zip(self.origins, self.raws, strict=True)
        ]


class OwnColumn:
    """The numbers of a weigher that is asked for one request. ``rank``: its number among all weighers."""

    __slots__ = ("minval", "multiplier", "name", "rank", "raw")

    def __init__(self, name: str, rank: int, places: int, multiplier: Float64 | float, minval: float) -> None:
        self.name = name
        self.rank = rank
        self.raw: Float64 = np.zeros(places)
        self.multiplier = multiplier
        self.minval = minval
