"""Nearest misses: the trees that would serve a query if exactly one constraint were relaxed, and by how much.

For each constraint the query is asked without it; for an amount of a resource class, as if whoever has some
of the class had plenty. Vector operations rank the trees that this lets in by
how near they are; then, from the nearest on, one whole combination of each is looked at, which says which
provider it is that misses the constraint. So only as many trees are walked as are shown, about.
"""

from bisect import insort
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import msgspec
import numpy as np

from roost.fleet.candidates import CandidateSearch
from roost.fleet.columns import Bools, Float64, Int64, Rows
from roost.fleet.constraint import (
    ANY_PROVIDER,
    IN_TREE,
    RESOURCES,
    TOGETHER,
    Constraint,
    replaced,
    without,
)
from roost.fleet.constraint_mask import constraint_mask
from roost.fleet.fits import has_room, violated_unit
from roost.fleet.fleet import Fleet
from roost.fleet.inventory_columns import CAPACITY_LIMIT, InventoryColumns
from roost.fleet.reach import Reach
from roost.fleet.removals import Judged, Removal
from roost.model.allocation import Candidate
from roost.model.request import CandidateQuery
from roost.model.vocabulary import MAX_INT

FARTHEST = 1.0
HALFWAY = 0.5
"""Distance of a miss that has no measure: a trait, an aggregate."""

PLENTY = "plenty"
"""Stands for the class of which there is plenty; no class of a client has small letters."""

MOST_COMBINATIONS = 20
"""Combinations of one tree that are looked at for the nearest."""

MOST_SEARCHED = 500
"""Groups searched at most, over all constraints that are relaxed: each is a search of its own."""

SPARE_TRIES = 100
"""Trees looked at in vain at most."""


class NearMiss(msgspec.Struct, frozen=True):
    """A tree (the uuid of its ``root``) that would do without ``constraint``, and the ``provider`` in it
    that misses it; no provider if no single one does.

    ``distance``: 0 is near, 1 is far: the part of the amount that is missing. ``free``: what one more
    allocation could take beside the rest of the query. ``unit``: the limit of the inventory that forbids the
    amount, if there would be room: ``min_unit``, ``max_unit`` or ``step_size``.
    """

    constraint: Constraint
    root: str
    provider: str | None
    distance: float
    free: int | None = None
    unit: str | None = None


def near_misses(
    fleet: Fleet, query: CandidateQuery, reach: Reach, steps: list[Removal], judged: Judged, most: int
) -> list[NearMiss]:
    """The nearest misses, at most ``most``, the nearest first. Sets ``trees_sole`` of the ``steps``: how many
    trees are kept out by one constraint alone, as far as each part of the query tells."""
    # A query may say the same twice.
    by_constraint = {step.constraint: step for step in steps}
    failing = np.zeros(fleet.n_rows, dtype=np.int32)
    for step in by_constraint.values():
        failing += step.failing
    relaxed: list[_Relaxed] = []
    out = ~judged.possible(fleet.n_rows)
    for step in by_constraint.values():
        # Of no use where another constraint already fails by itself.
        possible = (failing == step.failing) & out
        if step.constraint.kind in (ANY_PROVIDER, TOGETHER) or not possible[reach.anchors].any():
            continue
        relaxed.append(_Relaxed(fleet, query, step.constraint, reach, possible))
        step.trees_sole = len(relaxed[-1].anchors)
        if len(relaxed) * len(query.groups) >= MOST_SEARCHED:
            break
    if not relaxed or not most:
        return []
    distances = np.concatenate([each.distances for each in relaxed])
    anchors = np.concatenate([each.anchors for each in relaxed])
    which = np.concatenate([np.full(len(each.anchors), n) for n, each in enumerate(relaxed)])
    nearest = _smallest(distances, most + SPARE_TRIES)
    order = nearest[np.lexsort((which[nearest], anchors[nearest], distances[nearest]))]
    found: list[NearMiss] = []
    for place in order.tolist():
        # A whole combination leaves no more room than the columns say, so none that follows is nearer.
        if len(found) >= most and found[most - 1].distance <= distances[place]:
            break
        miss = relaxed[which.item(place)].miss_at(anchors.item(place))
        if miss is not None and not _is_told(fleet, miss, found):
            insort(found, miss, key=lambda each: each.distance)
    return found[:most]


def _is_told(fleet: Fleet, miss: NearMiss, found: list[NearMiss]) -> bool:
    """Whether it is of a sharing provider that was told of another tree: all that share it miss the same."""
    if miss.provider is None or fleet.uuid(fleet.root.item(fleet.row(miss.provider))) == miss.root:
        return False
    return any((each.constraint, each.provider) == (miss.constraint, miss.provider) for each in found)


class _Measure(NamedTuple):
    distance: float
    free: int
    unit: str | None


class _Relaxed:
    """A query without one constraint, and the trees that this lets in: ``anchors`` with ``distances``."""

    def __init__(
        self, fleet: Fleet, query: CandidateQuery, constraint: Constraint, reach: Reach, possible: Bools
    ) -> None:
        self.constraint = constraint
        self._fleet = fleet
        self._reach = reach
        if constraint.kind == RESOURCES:
            stock = _plenty(fleet.inventory_columns(constraint.names[0]))
            self._search = CandidateSearch(
                fleet.with_inventory_columns(PLENTY, stock), replaced(query, constraint, PLENTY)
            )
        else:
            self._search = CandidateSearch(fleet, without(query, constraint))
        anchors = self._search.anchors
        self.anchors: Rows = anchors[possible[anchors]]
        self.distances: Float64 = np.full(
            len(self.anchors), FARTHEST if constraint.kind == IN_TREE else HALFWAY
        )
        if constraint.kind == RESOURCES:
            self._measure()

    def miss_at(self, anchor: int) -> NearMiss | None:
        """What is missing in one tree; None if, looked at whole, it is more than this constraint."""
        candidates = islice(self._search.at(anchor), MOST_COMBINATIONS)
        if self.constraint.kind == RESOURCES:
            return self._resource_miss(anchor, candidates)
        candidate = next(candidates, None)
        if candidate is None:
            return None
        distance = FARTHEST if self.constraint.kind == IN_TREE else HALFWAY
        provider = self._blamed(anchor, candidate)
        return NearMiss(self.constraint, self._fleet.uuid(anchor), provider, distance)

    def _blamed(self, anchor: int, candidate: Candidate) -> str | None:
        """The first provider of a combination that does not meet the constraint."""
        if self.constraint.group is None:
            serving = [self._fleet.uuid(anchor)]
        else:
            serving = candidate.mappings[self.constraint.group]
        rows = np.array([self._fleet.row(provider) for provider in serving], dtype=np.intp)
        failing = np.flatnonzero(~constraint_mask(self._fleet, rows, self.constraint))
        return serving[failing.item(0)] if len(failing) else None

    def _resource_miss(self, anchor: int, candidates: Iterator[Candidate]) -> NearMiss | None:
        best: tuple[_Measure, str] | None = None
        for candidate in candidates:
            provider = next(each for each, held in candidate.allocations.items() if PLENTY in held)
            measure = self._measured(provider, candidate)
            if measure is not None and (best is None or measure.distance < best[0].distance):
                best = measure, provider
        if best is None:
            return None
        measure, provider = best
        root = self._fleet.uuid(anchor)
        return NearMiss(self.constraint, root, provider, measure.distance, measure.free, measure.unit)

    def _measured(self, provider: str, candidate: Candidate) -> _Measure | None:
        """How far a provider is from giving the amount beside what it gives already; None if it could."""
        name, wanted = self.constraint.names[0], self.constraint.amount
        stock = self._fleet.inventory_columns(name)
        slot = stock.slot(self._fleet.row(provider))
        taken = candidate.allocations.get(provider, {}).get(name, 0)
        free = max(0, stock.capacity.item(slot) - stock.used.item(slot) - taken)
        if not has_room(wanted, free):
            return _Measure((wanted - free) / wanted, free, None)
        together = wanted + taken
        min_unit, max_unit, step_size = (
            column.item(slot) for column in (stock.min_unit, stock.max_unit, stock.step_size)
        )
        unit = violated_unit(together, min_unit, max_unit, step_size)
        if unit == "max_unit":
            most = max(0, max_unit - taken)
            return _Measure((wanted - most) / wanted, most, unit)
        if unit == "min_unit":
            return _Measure(min(1.0, min_unit / together - 1), free, unit)
        if unit == "step_size":
            return _Measure(min(1.0, together % step_size / wanted), free, unit)
        return None

    def _measure(self) -> None:
        """Rank the trees by the least that a provider in their reach misses, whatever else it lacks."""
        reach, stock = self._reach, self._fleet.inventory_columns(self.constraint.names[0])
        slots = stock.slots(reach.rows)
        there = (slots >= 0) & (stock.total[slots] > 0) if stock.n else np.zeros(len(slots), dtype=np.bool_)
        nearest = np.full(self._fleet.n_rows, FARTHEST)
        missing = _missing(stock, slots[there], self.constraint.amount)
        np.minimum.at(nearest, reach.anchors[there], missing)
        self.distances = nearest[self.anchors]


def _plenty(stock: InventoryColumns) -> InventoryColumns:
    """A stock of which whoever has some has as much as anybody wants."""
    plenty = stock.copy()
    has_some = plenty.total > 0
    plenty.capacity[has_some], plenty.capacity[~has_some] = CAPACITY_LIMIT, 0
    plenty.used[:] = 0
    plenty.min_unit[:] = plenty.step_size[:] = 1
    plenty.max_unit[:] = MAX_INT
    plenty.stepped = 0
    return plenty


def _missing(stock: InventoryColumns, slots: Rows, wanted: int) -> Float64:
    """What part of an amount is missing at each slot, as far as room and max_unit tell: float64[n]."""
    missing: Float64 = np.clip(1.0 - stock.largest_in(slots) / float(wanted), 0.0, FARTHEST)
    return missing


def _smallest(values: Float64, most: int) -> Int64:
    """The places of the smallest values, in no order."""
    if len(values) <= most:
        return np.arange(len(values))
    return np.argpartition(values, most)[:most]
