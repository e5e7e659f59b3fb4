"""Removals: the numbers of providers and trees that each constraint removes, alone and in order."""

import msgspec
import numpy as np

from roost.fleet.candidates import CandidateSearch
from roost.fleet.columns import Bools, Rows
from roost.fleet.constraint import (
    ISOLATE,
    ISOLATED,
    REQUIRED,
    RESOURCES,
    SAME_SUBTREE,
    SPLIT_RESOURCES,
    TOGETHER,
    Constraint,
    constraint_mask,
    constraints_of,
)
from roost.fleet.fleet import Fleet
from roost.fleet.reach import Reach
from roost.model.request import CandidateQuery

MAX_SEARCHED_TERMS = 1000
"""Most terms searched, summed over the trees. Further trees remain unknown."""


_CONSTRAINT = 100
"""Units of work of a constraint, however small the fleet is."""

_PASSES = 6
"""Vector operations on all pairs of a tree and a provider, and on all providers, for each constraint."""


class Removal:
    """The numbers of providers and trees that one constraint removes, of the whole fleet.

    ``providers_alone``, ``trees_alone``: removed by it as the only constraint. ``providers``, ``trees``:
    removed by it after all constraints before it. ``trees_sole``: trees that only this constraint removes; an
    upper bound, because whole candidates are not searched for it.

    Each constraint is evaluated for each provider as if it served its group alone. A tree is removed as soon
    as some term has no provider left that may serve it. `TOGETHER` and the constraints after it are evaluated
    on whole candidates. ``failing``: bool[n_rows], whether ``trees_alone`` counts the tree with the root at
    each row. ``left``: bool[n_rows], the trees that this constraint and those before it leave.
    """

    __slots__ = (
        "constraint",
        "failing",
        "left",
        "providers",
        "providers_alone",
        "trees",
        "trees_alone",
        "trees_sole",
    )

    def __init__(self, constraint: Constraint, failing: Bools) -> None:
        self.constraint = constraint
        self.failing = failing
        self.left = failing
        self.providers_alone = self.providers = 0
        self.trees_alone = self.trees = self.trees_sole = 0


class ServedTrees:
    """The trees with a candidate of a query.

    ``served``: roots of trees with one. ``unknown``: roots of trees that were not searched, because
    there are too many. Both ascend. ``among``: bool[n_rows], the only trees to search; None for all.
    ``kept``: use the cached feasibility of the query; then no tree is unknown.
    """

    def __init__(
        self, fleet: Fleet, query: CandidateQuery, among: Bools | None = None, *, kept: bool = False
    ) -> None:
        if kept:
            self.served: Rows = CandidateSearch.cached(fleet, query).anchors
            self.unknown: Rows = self.served[:0]
            return
        search = CandidateSearch(fleet, query)
        anchors = search.anchors
        sure = (
            np.ones(len(anchors), dtype=np.bool_) if search.single_provider else np.zeros(0, dtype=np.bool_)
        )
        if not search.single_provider:
            sure = search.surely_local()
        unsure = np.flatnonzero(~sure)
        if among is not None:
            # The caller knows that the other trees have no candidate.
            unsure = unsure[among[anchors[unsure]]]
        most = max(1, MAX_SEARCHED_TERMS // sum(max(1, len(group.resources)) for group in query.groups))
        sure[unsure[:most]] = search.have_candidates(anchors[unsure[:most]])
        self.served = anchors[sure]
        self.unknown = anchors[unsure[most:]]

    def possible(self, n_rows: int) -> Bools:
        """Return by row of the root whether the tree has a candidate or is unknown: bool[n_rows]."""
        return _marked(n_rows, self.served) | _marked(n_rows, self.unknown)


def removals(
    fleet: Fleet, query: CandidateQuery, reach: Reach, *, kept: bool = False
) -> tuple[list[Removal], ServedTrees]:
    """Return the removals of each constraint, and the trees with a candidate of the query.

    The order is that of `constraints_of`, except that constraints on whole candidates come last, after
    `TOGETHER`. ``kept``: see `ServedTrees`. Raises `TooMuchWork`.
    """
    rows = fleet.rows()
    roots = _marked(fleet.n_rows, rows[fleet.parent[rows] < 0])
    terms = _TermCoverage(fleet, reach)
    found: list[Removal] = []
    trees = roots
    providers = np.ones(0, dtype=np.bool_)
    group: str | None = None
    whole = [each for each in constraints_of(query) if each.kind in (SAME_SUBTREE, ISOLATE, ISOLATED)]
    for constraint in constraints_of(query):
        if constraint in whole:
            continue
        fleet.meter.spend(_CONSTRAINT)
        fleet.meter.spend_rows(_PASSES * (len(reach.rows) + fleet.n_rows))
        mask = constraint_mask(fleet, rows, constraint)
        by_row = _marked(fleet.n_rows, rows[mask])
        removed = Removal(constraint, roots & ~terms.reaching(by_row))
        if constraint.group != group or not found:
            group, providers = constraint.group, np.ones(len(rows), dtype=np.bool_)
        removed.providers_alone = int((~mask).sum())
        removed.providers = int((providers & ~mask).sum())
        providers &= mask
        removed.trees_alone = int(removed.failing.sum())
        left = trees & terms.left_by(constraint, by_row)
        removed.trees = int(trees.sum() - left.sum())
        removed.left = trees = left
        found.append(removed)
    query_so_far = msgspec.structs.replace(query, isolate=False, same_subtree=(), isolated=frozenset())
    served = ServedTrees(fleet, query_so_far, trees, kept=kept)
    for number, constraint in enumerate((Constraint(None, TOGETHER), *whole)):
        if number:
            applied = whole[:number]
            query_so_far = msgspec.structs.replace(
                query,
                isolate=any(each.kind == ISOLATE for each in applied),
                same_subtree=tuple(frozenset(each.names) for each in applied if each.kind == SAME_SUBTREE),
                isolated=query.isolated if any(each.kind == ISOLATED for each in applied) else frozenset(),
            )
            served = ServedTrees(fleet, query_so_far, trees, kept=kept)
        removed = Removal(constraint, np.zeros(fleet.n_rows, dtype=np.bool_))
        left = trees & served.possible(fleet.n_rows)
        removed.trees = int(trees.sum() - left.sum())
        removed.left = trees = left
        found.append(removed)
    return found, served


class _TermCoverage:
    """Finds the trees in which every term so far of the current group has a provider that may serve it."""

    def __init__(self, fleet: Fleet, reach: Reach) -> None:
        self._n_rows = fleet.n_rows
        self._reach = reach
        self._group: str | None = None
        self._providers: Bools = np.zeros(0, dtype=np.bool_)
        self._serving: list[Bools] = []
        self._traits: list[Bools] = []
        # For the first few of `_serving`: the trees that each reaches with the present `_providers`.
        self._reached: list[Bools] = []

    def reaching(self, by_row: Bools) -> Bools:
        """Return by row of the root whether one of these providers may serve the tree: bool[n_rows].

        ``by_row``: bool[n_rows], the providers.
        """
        return _marked(self._n_rows, self._reach.anchors[by_row[self._reach.rows]])

    def left_by(self, constraint: Constraint, by_row: Bools) -> Bools:
        """Return by row of the root whether the tree has providers for all terms of the group so far.

        ``by_row``: bool[n_rows], the providers that meet the constraint.
        """
        if constraint.group is None:
            return by_row
        if constraint.group != self._group:
            self._group = constraint.group
            self._providers = np.ones(self._n_rows, dtype=np.bool_)
            self._serving, self._traits, self._reached = [], [], []
        if constraint.group or constraint.kind not in (RESOURCES, SPLIT_RESOURCES, REQUIRED):
            self._providers &= by_row
            self._reached = []
        elif constraint.kind != REQUIRED:
            self._serving.append(by_row)
        else:
            self._traits.append(by_row)
        if constraint.group:
            return self.reaching(self._providers)
        for serving in self._serving[len(self._reached) :]:
            self._reached.append(self.reaching(self._providers & serving))
        left = np.ones(self._n_rows, dtype=np.bool_)
        for reached in self._reached:
            left &= reached
        # The providers of the unsuffixed group need its traits jointly: one of them must have each trait.
        serving = self._providers & np.logical_or.reduce(self._serving)
        for having in self._traits:
            left &= self.reaching(serving & having)
        return left


def _marked(n_rows: int, rows: Rows) -> Bools:
    marks = np.zeros(n_rows, dtype=np.bool_)
    marks[rows] = True
    return marks
