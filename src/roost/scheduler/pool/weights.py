"""Weights of hosts from the raw numbers of weighers, and the best hosts by weight."""

import math
from collections.abc import Sequence
from copy import copy

import numpy as np

from roost.fleet.columns import Bools, Float64
from roost.model.reasons import WeigherNumber
from roost.scheduler.candidates.candidate_source import CandidateSource, HostView, Positions
from roost.scheduler.errors import SchedulerFault
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.plugins.plugin_calls import ask_key, ask_multipliers, ask_weigher
from roost.scheduler.plugins.plugins import Weigher
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest


class HostWeights:
    """The weights of the hosts that a claim may go to.

    The weight is the sum of multiplier × normalised number. Each weigher's numbers are normalised to 0..1
    between the least and the greatest number of these hosts. The numbers of a weigher with a ``minval`` are
    raised to it and normalised from it. Where least and greatest are equal, and where there is only one host,
    the numbers add nothing. Source: Nova's weight handler (`nova.weights`).

    Why the weights are kept from one instance to the next: a claim changes the numbers of one host, and
    mostly neither the least nor the greatest of all, so that no other weight changes. The same holds for a
    host that is removed. `narrowed` and `claimed` give the same weights as weighing again, to the last bit,
    for a fraction of the cost.
    """

    def __init__(
        self,
        table: NodeTable,
        source: CandidateSource,
        allowed: Bools,
        weighers: Sequence[Weigher],
        request: SchedulingRequest,
        progress: GroupPlacement,
    ) -> None:
        self.allowed = allowed
        self._table = table
        self._source = source
        self._request = request
        self._progress = progress
        self._positions = np.flatnonzero(allowed)
        self._scales: list[_Scale] = []
        hosts = HostView(table, source, None if len(self._positions) == len(allowed) else self._positions)
        for weigher in weighers if len(hosts) > 1 else ():
            if ask_key(weigher, request) is None:
                continue
            raw = ask_weigher(weigher, hosts, request, progress)
            if raw is not None:
                self._scales.append(_Scale(weigher, raw, multiplier_of(hosts, weigher, request)))
        self._weights = self._sums(slice(None))

    def weight(self, position: int) -> float:
        """Return the weight of an allowed host."""
        return self._weights.item(self._positions.searchsorted(position))

    def numbers(self, position: int) -> tuple[WeigherNumber, ...]:
        """Return the numbers of all weighers for an allowed host, without weighers whose numbers are all
        equal."""
        place = int(self._positions.searchsorted(position))
        return tuple(scale.number(place) for scale in self._scales if scale.least != scale.greatest)

    def of_all(self) -> Float64:
        """Return the weights of the allowed hosts, in the order of their positions: float64[n]."""
        return self._weights.copy()

    def parts(self) -> dict[str, Float64]:
        """Return the part of each weigher in the weights of the allowed hosts: float64[n].

        Weighers whose numbers are all equal are left out.
        """
        scales = [scale for scale in self._scales if scale.least != scale.greatest]
        return {scale.weigher.name: scale.part(slice(None)) for scale in scales}

    def best(self, among: int, within: Bools | None = None) -> Positions:
        """Return the best ``among`` allowed hosts, best first; of equal ones the first of the source.

        ``within``: a mask of the hosts to choose from, by position.
        """
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

    def narrowed(self, allowed: Bools) -> "HostWeights":
        """Return the weights for fewer allowed hosts; this object stays as it is."""
        kept = allowed[self._positions]
        if kept.all():
            return self
        other = copy(self)
        other.allowed = allowed
        other._positions = self._positions[kept]
        several = len(other._positions) > 1
        other._scales = [scale.narrowed(kept) for scale in self._scales] if several else []
        same = several and all(
            scale.spans(old) for scale, old in zip(other._scales, self._scales, strict=True)
        )
        other._weights = self._weights[kept] if same else other._sums(slice(None))
        return other

    def claimed(self, positions: Sequence[int]) -> None:
        """Weigh again after a claim, which took something from the hosts at ``positions``."""
        ours = [position for position in positions if self.allowed[position]]
        # A host that its own claim removes changes the numbers that other hosts have by it all the same.
        asked = [scale for scale in self._scales if ours or scale.reads_other_hosts]
        if not asked:
            return
        places = self._positions.searchsorted(np.array(ours, dtype=np.intp))
        changes = [self._ask_again(scale, places) for scale in asked]
        everywhere = slice(None) if any(changes) else places
        self._weights[everywhere] = self._sums(everywhere)

    def _ask_again(self, scale: "_Scale", places: Positions) -> bool:
        """Ask a weigher again about some hosts; returns whether that changes the weights of all."""
        if scale.reads_other_hosts:
            # The numbers of other hosts may depend on these.
            places = np.arange(len(self._positions))
        hosts = HostView(self._table, self._source, self._positions[places])
        raw = ask_weigher(scale.weigher, hosts, self._request, self._progress)
        return scale.put(places, raw) or scale.reads_other_hosts

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

    A number that is not finite counts as 0: one such host must not spoil the weights of the others.
    ``least`` and ``greatest`` are the ends of the normalisation.
    """

    def __init__(self, weigher: Weigher, raw: Float64, multiplier: Float64 | float) -> None:
        self.weigher = weigher
        self.reads_other_hosts = weigher.reads_other_hosts
        self._multiplier = multiplier
        self._raw = np.array(raw, dtype=np.float64)
        self._minval = weigher.minval
        self._measure()

    def part(self, places: slice | Positions) -> Float64:
        """Return the part of this weigher in the weights."""
        part: Float64 = self._raw[places] - self.least
        part /= self.greatest - self.least
        if not isinstance(self._multiplier, float):
            part *= self._multiplier[places]
        elif self._multiplier != 1.0:
            part *= self._multiplier
        return part

    def number(self, place: int) -> WeigherNumber:
        """Return the number of this weigher for one host."""
        raw, multiplier = self._raw.item(place), self._multiplier
        normalised = (raw - self.least) / (self.greatest - self.least)
        one = multiplier if isinstance(multiplier, float) else multiplier.item(place)
        return WeigherNumber(self.weigher.name, raw, normalised, one)

    def put(self, places: Positions, raw: Float64 | None) -> bool:
        """Store new numbers of some hosts; returns whether that changes the weights of all.

        Raises: `SchedulerFault` if there are none.
        """
        if raw is None:
            raise SchedulerFault(
                f"weigher {self.weigher.name} failed: it had numbers for this request, and now has none"
            )
        self._raw[places] = raw
        before = self.least, self.greatest
        self._measure()
        return before != (self.least, self.greatest)

    def narrowed(self, kept: Bools) -> "_Scale":
        """Return the scale for fewer hosts."""
        multiplier = self._multiplier if isinstance(self._multiplier, float) else self._multiplier[kept]
        return _Scale(self.weigher, self._raw[kept], multiplier)

    def spans(self, other: "_Scale") -> bool:
        """Return whether least and greatest equal those of another scale."""
        return (self.least, self.greatest) == (other.least, other.greatest)

    def _measure(self) -> None:
        self.least, self.greatest = self._raw.min().item(), self._raw.max().item()
        if not (math.isfinite(self.least) and math.isfinite(self.greatest)):
            np.nan_to_num(self._raw, copy=False, nan=0.0, posinf=0.0, neginf=0.0)
            self.least, self.greatest = self._raw.min().item(), self._raw.max().item()
        if self._minval > -math.inf:
            if self.least < self._minval:
                np.maximum(self._raw, self._minval, out=self._raw)
                self.greatest = max(self.greatest, self._minval)
            self.least = self._minval


def clean_numbers(raw: Float64, minval: float) -> Float64:
    """Return a weigher's numbers before normalisation: 0 where not finite, ``minval`` at least."""
    if not np.isfinite(raw).all():
        raw = np.nan_to_num(raw, nan=0.0, posinf=0.0, neginf=0.0)
    return raw if minval == -math.inf else np.maximum(raw, minval)


def multiplier_of(hosts: HostView, weigher: Weigher, request: SchedulingRequest) -> Float64 | float:
    """Return the multiplier of a weigher's numbers: one number, or float64[len(hosts)].

    Aggregate metadata overrides the configured number; a negated weigher has the opposite sign in both. A
    weigher with ``multipliers`` returns them itself.

    Raises: `SchedulerFault`.
    """
    if weigher.multipliers is not None:
        return ask_multipliers(weigher, hosts)
    sign = -1.0 if weigher.negated else 1.0
    configured = float(request.options.multipliers.get(weigher.name, weigher.default_multiplier))
    overrides = hosts.table.metadata(weigher.multiplier_key)
    if overrides is None:
        return sign * configured
    return overrides.judged(lambda values: sign * _overridden(values, configured), hosts.index)


def _overridden(values: Sequence[str], configured: float) -> float:
    """Return the least of the aggregates' numbers; ``configured`` if there is none or one is not finite.

    Source: ``get_weight_multiplier`` in Nova's ``scheduler/utils.py``.
    """
    try:
        least = min(map(float, values), default=configured)
        finite = all(math.isfinite(float(value)) for value in values)
    except ValueError:
        return configured
    return least if finite else configured
