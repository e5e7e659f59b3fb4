"""Explanations of a query, and its near misses: the trees that would serve it if one constraint were relaxed.

An explanation builds the query up again, one constraint at a time, and searches each time. Counts taken
during a normal search would not follow the order of the query, because the search matches the rarest class
first and each group by itself; and every decision would pay for counts that only refusals need.

Each constraint is left out once, and the query is searched again. A constraint on an amount is relaxed as if
every provider with the class had plenty of it. Vector operations rank the trees that are then admitted by a
lower bound of their distance. From the nearest tree on, a candidate of each tree then shows which provider
violates the constraint. So hardly more trees are searched than are returned.
"""

from bisect import insort
from collections.abc import Iterator, Sequence
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
    SPLIT_RESOURCES,
    TOGETHER,
    Constraint,
    constraint_mask,
    replaced,
    without,
)
from roost.fleet.fits import Unit, has_room, violated_unit
from roost.fleet.fleet import Fleet
from roost.fleet.inventory_columns import CAPACITY_LIMIT, InventoryColumns
from roost.fleet.reach import Reach, reach_of
from roost.fleet.removals import Removal, ServedTrees, removals
from roost.fleet.splitting import parts_by_tree
from roost.model.allocation import Candidate
from roost.model.request import CandidateQuery
from roost.model.vocabulary import MAX_INT

MAX_DISTANCE = 1.0
"""Distance of a tree that has nothing of the demanded class, or that is not the tree of ``in_tree``."""
UNMEASURED_DISTANCE = 0.5
"""Distance of a tree that violates a constraint without an amount, such as a trait or an aggregate."""

PLENTY = "plenty"
"""Resource class that stands for the relaxed one, with plenty of units. Real names are in capitals."""

MAX_CANDIDATES_PER_TREE = 20
"""Most candidates of one tree that are measured to find its smallest distance."""

MAX_GROUPS = 500
"""Most groups searched, summed over the searches. Further constraints are not relaxed."""

MAX_FAILED_TREES = 100
"""Most trees considered beyond the requested number, because some turn out to be no near miss."""


_CONSTRAINT = 100
"""Units of work of a relaxed query, however small the fleet is."""

_PASSES = 8
"""Vector operations on all pairs of a tree and a provider, and on all providers, for each relaxed query."""


class NearMiss(msgspec.Struct, frozen=True):
    """A tree that would have a candidate without ``constraint``.

    ``root`` is the uuid of the tree's root. ``provider`` is the uuid of the provider that violates the
    constraint, None if no single one does. ``distance`` is from 0 (near) to 1 (far): for an amount, the
    missing part of it. ``free``: the units that one more allocation could take beside the rest of the
    query. ``unit``: the limit of the inventory that forbids the amount although there is room.
    """

    constraint: Constraint
    root: str
    provider: str | None
    distance: float
    free: int | None = None
    unit: Unit | None = None


class Explanation(NamedTuple):
    """The removals of each constraint of a query, and its near misses.

    ``providers``, ``trees``: numbers in the whole fleet. ``served``: the number of trees with a candidate.
    ``unknown``: the number of trees that were not searched because there are too many.
    """

    providers: int
    trees: int
    served: int
    unknown: int
    steps: list[Removal]
    near_misses: list[NearMiss]


def explain_fully(fleet: Fleet, query: CandidateQuery, max_misses: int) -> Explanation:
    """Return the removals of each constraint, and at most ``max_misses`` near misses.

    It takes a few searches for each constraint. Raises `TooMuchWork`.
    """
    reach = reach_of(fleet)
    steps, served = removals(fleet, query, reach)
    nearest = near_misses(fleet, query, reach, steps, served, max_misses)
    return Explanation(
        providers=len(fleet),
        trees=int((fleet.parent[fleet.rows()] < 0).sum()),
        served=len(served.served),
        unknown=len(served.unknown),
        steps=steps,
        near_misses=nearest,
    )


def near_misses(
    fleet: Fleet, query: CandidateQuery, reach: Reach, steps: list[Removal], served: ServedTrees, limit: int
) -> list[NearMiss]:
    """Return the nearest misses, at most ``limit``, nearest first.

    Also sets ``trees_sole`` of the ``steps``. ``served``: the trees that do have a candidate. Raises
    `TooMuchWork`.
    """
    relaxed = relaxed_queries(fleet, query, reach, steps, ~served.possible(fleet.n_rows))
    for each in relaxed:
        each.step.trees_sole = len(each.anchors)
    return nearest_of(fleet, relaxed, limit)


def relaxed_queries(
    fleet: Fleet, query: CandidateQuery, reach: Reach, steps: list[Removal], among: Bools
) -> "list[RelaxedQuery]":
    """Return the query without each constraint that might have near misses in the trees ``among``.

    ``among``: bool[n_rows], by row of the root.
    """
    # A query may have the same constraint twice.
    by_constraint = {step.constraint: step for step in steps}
    failing = np.zeros(fleet.n_rows, dtype=np.int32)
    for step in by_constraint.values():
        failing += step.failing
    relaxed: list[RelaxedQuery] = []
    for step in by_constraint.values():
        # A tree that fails another constraint too is no near miss.
        possible = (failing == step.failing) & among
        if step.constraint.kind in (ANY_PROVIDER, TOGETHER) or not possible[reach.anchors].any():
            continue
        relaxed.append(RelaxedQuery(fleet, query, step, reach, possible))
        if len(relaxed) * len(query.groups) >= MAX_GROUPS:
            break
    return relaxed


def nearest_of(fleet: Fleet, relaxed: "Sequence[RelaxedQuery]", limit: int) -> list[NearMiss]:
    """Return the nearest misses of some relaxed queries, at most ``limit``, nearest first."""
    if not relaxed or not limit:
        return []
    distances = np.concatenate([each.distances for each in relaxed])
    anchors = np.concatenate([each.anchors for each in relaxed])
    which = np.concatenate([np.full(len(each.anchors), n) for n, each in enumerate(relaxed)])
    nearest = _smallest(distances, limit + MAX_FAILED_TREES)
    order = nearest[np.lexsort((which[nearest], anchors[nearest], distances[nearest]))]
    found: list[NearMiss] = []
    for index in order.tolist():
        # Columns give a lower bound of the distance, so no tree after this one is nearer.
        if len(found) >= limit and found[limit - 1].distance <= distances[index]:
            break
        miss = relaxed[which.item(index)].miss_at(anchors.item(index))
        if miss is not None and not _is_reported(fleet, miss, found):
            insort(found, miss, key=lambda each: each.distance)
    return found[:limit]


def _is_reported(fleet: Fleet, miss: NearMiss, found: list[NearMiss]) -> bool:
    """Return whether the same sharing provider is already reported for another tree that it serves."""
    if miss.provider is None or fleet.uuid(fleet.root.item(fleet.row(miss.provider))) == miss.root:
        return False
    fleet.meter.spend(1 + len(found))
    return any((each.constraint, each.provider) == (miss.constraint, miss.provider) for each in found)


class _Measure(NamedTuple):
    """The measure of one near miss of an amount; the fields are those of `NearMiss`."""

    distance: float
    free: int
    unit: Unit | None


class RelaxedQuery:
    """A query without the constraint of one ``step``.

    ``anchors``: the roots of the trees that it admits. ``distances``: float64[len(anchors)], lower bounds of
    their distances.
    """

    def __init__(
        self, fleet: Fleet, query: CandidateQuery, step: Removal, reach: Reach, possible: Bools
    ) -> None:
        fleet.meter.spend(_CONSTRAINT)
        fleet.meter.spend_rows(_PASSES * (len(reach.rows) + fleet.n_rows))
        self.step = step
        self.constraint = constraint = step.constraint
        self._fleet = fleet
        self._reach = reach
        if constraint.kind in (RESOURCES, SPLIT_RESOURCES):
            columns = _with_plenty(fleet.inventory_columns(constraint.names[0]))
            self._search = CandidateSearch(
                fleet.with_inventory_columns(PLENTY, columns), replaced(query, constraint, PLENTY)
            )
        else:
            self._search = CandidateSearch(fleet, without(query, constraint))
        anchors = self._search.anchors
        self.anchors: Rows = anchors[possible[anchors]]
        self.distances: Float64 = np.full(
            len(self.anchors), MAX_DISTANCE if constraint.kind == IN_TREE else UNMEASURED_DISTANCE
        )
        if constraint.kind == RESOURCES:
            self._set_distances()
        elif constraint.kind == SPLIT_RESOURCES:
            _, _, self._together = parts_by_tree(fleet, constraint.names[0], constraint.amount)
            self.distances = 1.0 - self._together[self.anchors] / float(constraint.amount)

    def miss_at(self, anchor: int) -> NearMiss | None:
        """Return the near miss of one tree; None if a whole candidate violates more than this constraint."""
        candidates = islice(self._search.at(anchor), MAX_CANDIDATES_PER_TREE)
        if self.constraint.kind == RESOURCES:
            return self._resource_miss(anchor, candidates)
        if self.constraint.kind == SPLIT_RESOURCES:
            return self._split_miss(anchor, candidates)
        candidate = next(candidates, None)
        if candidate is None:
            return None
        distance = MAX_DISTANCE if self.constraint.kind == IN_TREE else UNMEASURED_DISTANCE
        provider = self._violator(anchor, candidate)
        return NearMiss(self.constraint, self._fleet.uuid(anchor), provider, distance)

    def _violator(self, anchor: int, candidate: Candidate) -> str | None:
        """Return the first provider of a candidate that violates the constraint, None if none alone does."""
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
            measure = self._lack(provider, candidate)
            if measure is not None and (best is None or measure.distance < best[0].distance):
                best = measure, provider
        if best is None:
            return None
        measure, provider = best
        root = self._fleet.uuid(anchor)
        return NearMiss(self.constraint, root, provider, measure.distance, measure.free, measure.unit)

    def _split_miss(self, anchor: int, candidates: Iterator[Candidate]) -> NearMiss | None:
        wanted, together = self.constraint.amount, self._together.item(anchor)
        if next(candidates, None) is None or together >= wanted:
            return None
        distance = (wanted - together) / wanted
        return NearMiss(self.constraint, self._fleet.uuid(anchor), None, distance, together)

    def _lack(self, provider: str, candidate: Candidate) -> _Measure | None:
        """Return the measure of a provider that cannot serve the amount beside the rest of a candidate."""
        name, wanted = self.constraint.names[0], self.constraint.amount
        columns = self._fleet.inventory_columns(name)
        slot = columns.slot(self._fleet.row(provider))
        taken = candidate.allocations.get(provider, {}).get(name, 0)
        free = max(0, columns.capacity.item(slot) - columns.used.item(slot) - taken)
        if not has_room(wanted, free):
            return _Measure((wanted - free) / wanted, free, None)
        together = wanted + taken
        min_unit, max_unit, step_size = (
            column.item(slot) for column in (columns.min_unit, columns.max_unit, columns.step_size)
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

    def _set_distances(self) -> None:
        """Set each tree's distance to the smallest one of the providers that may serve it."""
        reach, columns = self._reach, self._fleet.inventory_columns(self.constraint.names[0])
        slots = columns.slots(reach.rows)
        there = (
            (slots >= 0) & (columns.total[slots] > 0) if columns.n else np.zeros(len(slots), dtype=np.bool_)
        )
        nearest = np.full(self._fleet.n_rows, MAX_DISTANCE)
        missing = _missing(columns, slots[there], self.constraint.amount)
        np.minimum.at(nearest, reach.anchors[there], missing)
        self.distances = nearest[self.anchors]


def _with_plenty(columns: InventoryColumns) -> InventoryColumns:
    """Return inventory columns in which every provider with some of the class has plenty of it."""
    plenty = columns.copy()
    has_some = plenty.total > 0
    plenty.capacity[has_some], plenty.capacity[~has_some] = CAPACITY_LIMIT, 0
    plenty.used[:] = 0
    plenty.min_unit[:] = plenty.step_size[:] = 1
    plenty.max_unit[:] = MAX_INT
    plenty.stepped = 0
    return plenty


def _missing(columns: InventoryColumns, slots: Rows, wanted: int) -> Float64:
    """Return the missing part of an amount at each slot, by room and ``max_unit``: float64[len(slots)]."""
    missing: Float64 = np.clip(1.0 - columns.largest_in(slots) / float(wanted), 0.0, MAX_DISTANCE)
    return missing


def _smallest(values: Float64, most: int) -> Int64:
    """Return the indexes of the ``most`` smallest values, in no order: int64[n]."""
    if len(values) <= most:
        return np.arange(len(values))
    return np.argpartition(values, most)[:most]
