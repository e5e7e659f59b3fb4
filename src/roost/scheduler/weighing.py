"""From the weighers' raw numbers to one weight for each host, and to the best of them."""

import math
from collections.abc import Sequence
from copy import copy

import numpy as np

from roost.fleet.columns import Bools, Float64
from roost.scheduler.hosts import HostTable
from roost.scheduler.offers import HostView, Offers, Positions
from roost.scheduler.plugins import Weigher
from roost.scheduler.question import Question


class Weighing:
    """The weights of the hosts that a claim may go to.

    The weight is the sum of multiplier × normalised number: each weigher's numbers are stretched to 0..1
    between the least and the greatest of these hosts; where all are equal they count nothing (Nova's rule).

    Why it is kept from one instance to the next: a claim changes the numbers of one host, and mostly
    neither the least nor the greatest of all, so that nothing else changes; so does a host that falls out.
    `narrowed` and `claimed` do what weighing again would do, to the last bit, for a fraction of the cost.
    """

    def __init__(
        self,
        table: HostTable,
        offers: Offers,
        allowed: Bools,
        weighers: Sequence[Weigher],
        question: Question,
    ) -> None:
        self.allowed = allowed
        self._table = table
        self._offers = offers
        self._question = question
        self._positions = np.flatnonzero(allowed)
        self._scales: list[_Scale] = []
        hosts = HostView(table, offers, None if len(self._positions) == len(allowed) else self._positions)
        for weigher in weighers if len(hosts) else ():
            raw = weigher.raw(hosts, question)
            if raw is not None:
                self._scales.append(_Scale(weigher, raw, multiplier_of(hosts, weigher, question)))
        self._weights = self._sums(slice(None))

    def weight(self, position: int) -> float:
        """The weight of an allowed host."""
        return self._weights.item(self._positions.searchsorted(position))

    def best(self, among: int, within: Bools | None = None) -> Positions:
        """The best ``among`` hosts of those allowed, best first; of equal ones that with the lower index.
        ``within`` leaves out others, by position."""
        positions, weights = self._positions, self._weights
        if within is not None:
            places = np.flatnonzero(within[positions])
            positions, weights = positions[places], weights[places]
        if among == 1 and len(weights):
            return positions[[weights.argmax()]]
        if among < len(weights):
            # Only what is at least as good as the last of them need be sorted.
            least = np.partition(weights, len(weights) - among)[len(weights) - among]
            good = np.flatnonzero(weights >= least)
            positions, weights = positions[good], weights[good]
        return positions[np.argsort(-weights, kind="stable")[:among]]

    def narrowed(self, allowed: Bools) -> "Weighing":
        """The weights where fewer hosts are allowed; this one stays as it is."""
        kept = allowed[self._positions]
        if kept.all():
            return self
        other = copy(self)
        other.allowed = allowed
        other._positions = self._positions[kept]
        other._scales = [scale.narrowed(kept) for scale in self._scales] if kept.any() else []
        same = all(scale.spans(old) for scale, old in zip(other._scales, self._scales, strict=False))
        other._weights = self._weights[kept] if same else other._sums(slice(None))
        return other

    def claimed(self, positions: Sequence[int]) -> None:
        """Weigh anew what a claim changed, which took something from the hosts at ``positions``."""
        ours = [position for position in positions if self.allowed[position]]
        if not ours:
            return
        places = self._positions.searchsorted(ours)
        hosts = HostView(self._table, self._offers, self._positions[places])
        changes = [scale.ask_again(places, hosts, self._question) for scale in self._scales]
        everywhere = slice(None) if any(changes) else places
        self._weights[everywhere] = self._sums(everywhere)

    def _sums(self, places: slice | Positions) -> Float64:
        parts = [scale.part(places) for scale in self._scales if scale.least != scale.greatest]
        if not parts:
            return np.zeros(len(self._positions))[places]
        total, *others = parts
        for part in others:
            total += part
        return total


class _Scale:
    """One weigher's numbers, ``raw``, of the hosts that are weighed: float64[n].

    What is no number counts as 0: a host without one must not spoil the others' weights.
    """

    def __init__(self, weigher: Weigher, raw: Float64, multiplier: Float64 | float) -> None:
        self._weigher = weigher
        self._multiplier = multiplier
        self._raw = np.array(raw, dtype=np.float64)
        self._measure()

    def part(self, places: slice | Positions) -> Float64:
        """What this weigher adds to the weights."""
        part: Float64 = self._raw[places] - self.least
        part /= self.greatest - self.least
        if not isinstance(self._multiplier, float):
            part *= self._multiplier[places]
        elif self._multiplier != 1.0:
            part *= self._multiplier
        return part

    def ask_again(self, places: Positions, hosts: HostView, question: Question) -> bool:
        """Ask for the numbers of some hosts again; returns whether that changes the weights of all."""
        raw = self._weigher.raw(hosts, question)
        if raw is None:
            raise TypeError(f"weigher {self._weigher.name} had numbers for this request, and now has none")
        self._raw[places] = raw
        before = self.least, self.greatest
        self._measure()
        return before != (self.least, self.greatest)

    def narrowed(self, kept: Bools) -> "_Scale":
        """Of fewer hosts."""
        multiplier = self._multiplier if isinstance(self._multiplier, float) else self._multiplier[kept]
        return _Scale(self._weigher, self._raw[kept], multiplier)

    def spans(self, other: "_Scale") -> bool:
        """Whether least and greatest are those of another."""
        return (self.least, self.greatest) == (other.least, other.greatest)

    def _measure(self) -> None:
        self.least, self.greatest = self._raw.min().item(), self._raw.max().item()
        if not (math.isfinite(self.least) and math.isfinite(self.greatest)):
            np.nan_to_num(self._raw, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
            self.least, self.greatest = self._raw.min().item(), self._raw.max().item()


def multiplier_of(hosts: HostView, weigher: Weigher, question: Question) -> Float64 | float:
    """What a weigher's numbers are multiplied with: one number, or one for each host."""
    multiplier = float(question.options.multipliers.get(weigher.name, weigher.default_multiplier))
    overrides = hosts.table.metadata(weigher.multiplier_key)
    if overrides is None:
        return multiplier
    return overrides.judged(lambda values: _least(values, multiplier), hosts.index)


def _least(values: Sequence[str], otherwise: float) -> float:
    """The least of the aggregates' numbers; what is no number is passed over, as in Nova."""
    numbers = []
    for value in values:
        try:
            numbers.append(float(value))
        except ValueError:
            continue
    return min(filter(math.isfinite, numbers), default=otherwise)
