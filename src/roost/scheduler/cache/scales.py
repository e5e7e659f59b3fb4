"""The weights of hosts from their numbers, each normalised and multiplied."""

from collections.abc import Sequence

import numpy as np

from roost.fleet.columns import Float64, Int64
from roost.model.reasons import WeigherNumber


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
