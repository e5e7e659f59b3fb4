"""The numbers of the weighers that have something to say on a request, by place."""

from typing import Protocol

import numpy as np

from roost.fleet.columns import Float64
from roost.scheduler.cache.block_scores import BlockScores
from roost.scheduler.cache.layout import Layout


class Columns(Protocol):
    """One column for each such weigher, in the order of the weighers.

    ``names``: of the weighers; ``raws``: numbers as they are normalised, float64[places]; ``multipliers``: a
    number, or one for each place; ``minvals``: the number that is normalised to 0, -inf where it is the
    least.
    ``joint``: weights by the first ``leading`` columns, which are the board's.
    """

    layout: Layout
    joint: BlockScores
    leading: int
    names: list[str]
    raws: list[Float64]
    multipliers: list[Float64 | float]
    minvals: list[float]

    def numbers(self, place: int) -> list[float]:
        """The numbers of one host."""


class MoreColumns:
    """The columns of a board with those that one request has beside them.

    ``origins``: for each column its number on the board, -1 for one that is not there.
    """

    def __init__(self, base: Columns, ranks: list[int], more: list["OwnColumn"]) -> None:
        """``ranks``: for each column of the board the number of its weigher among all weighers, ascending."""
        self.layout = base.layout
        self._base = base
        self.own = more
        found = [(rank, number, None) for number, rank in enumerate(ranks)]
        every = sorted([*found, *((one.rank, -1, one) for one in more)], key=lambda each: each[0])
        self.origins = [number for _, number, _ in every]
        self.joint = base.joint
        self.leading = self.origins.index(-1) if -1 in self.origins else len(self.origins)
        self.names = [base.names[n] if one is None else one.name for _, n, one in every]
        self.raws = [base.raws[n] if one is None else one.raw for _, n, one in every]
        self.multipliers = [base.multipliers[n] if one is None else one.multiplier for _, n, one in every]
        self.minvals = [base.minvals[n] if one is None else one.minval for _, n, one in every]

    def numbers(self, place: int) -> list[float]:
        known = self._base.numbers(place)
        return [
            known[origin] if origin >= 0 else raw.item(place)
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
