"""How many providers and trees each constraint of a query removes, alone and in order."""

import numpy as np

from roost.fleet.candidates import CandidateSearch
from roost.fleet.columns import Bools, Rows
from roost.fleet.constraint import (
    ISOLATE,
    REQUIRED,
    RESOURCES,
    SAME_SUBTREE,
    TOGETHER,
    Constraint,
    constraints_of,
)
from roost.fleet.constraint_mask import constraint_mask
from roost.fleet.fleet import Fleet
from roost.fleet.reach import Reach
from roost.model.request import CandidateQuery

MOST_STEPS = 1000
"""Parts of a query, over all trees, that are walked at most to see whether a whole combination is there."""


class Removal:
    """What one constraint removes. All numbers are of the whole fleet.

    ``providers_alone``, ``trees_alone``: with it as the only wish. ``providers``, ``trees``: of those that
    all constraints before it have left. A provider is judged as one that serves the group by itself; a tree
    is left while each part of the query has a provider in its reach, until `TOGETHER` and those after it
    look at whole combinations. ``trees_sole``: trees that would do if only this were not asked.
    ``failing``: by row, whether ``trees_alone`` counts the tree with this root.
    """

    __slots__ = (
        "constraint",
        "failing",
        "providers",
        "providers_alone",
        "trees",
        "trees_alone",
        "trees_sole",
    )

    def __init__(self, constraint: Constraint, failing: Bools) -> None:
        self.constraint = constraint
        self.failing = failing
        self.providers_alone = self.providers = 0
        self.trees_alone = self.trees = self.trees_sole = 0


class Judged:
    """The trees that can serve a query: ``served`` can, ``unknown`` were too many to see; both ascending."""

    def __init__(self, fleet: Fleet, query: CandidateQuery, among: Bools | None = None) -> None:
        search = CandidateSearch(fleet, query)
        anchors = search.anchors
        sure = (
            np.ones(len(anchors), dtype=np.bool_) if search.single_provider else np.zeros(0, dtype=np.bool_)
        )
        if not search.single_provider:
            sure = search.surely_local()
        open_places = np.flatnonzero(~sure)
        if among is not None:
            # Trees that cannot, as a wider query told, need not be walked again.
            open_places = open_places[among[anchors[open_places]]]
        most = max(1, MOST_STEPS // sum(max(1, len(group.resources)) for group in query.groups))
        sure[open_places[:most]] = search.have_candidates(anchors[open_places[:most]])
        self.served: Rows = anchors[sure]
        self.unknown: Rows = anchors[open_places[most:]]

    def possible(self, n_rows: int) -> Bools:
        """By row, whether the tree with this root can or may: bool[n_rows]."""
        return _marked(n_rows, self.served) | _marked(n_rows, self.unknown)


def removals(fleet: Fleet, query: CandidateQuery, reach: Reach) -> tuple[list[Removal], Judged]:
    """What each constraint removes, in the order of `constraints_of` but for those of whole combinations,
    which come last, after `TOGETHER`; and the trees that can serve the query."""
    rows = fleet.rows()
    roots = _marked(fleet.n_rows, rows[fleet.parent[rows] < 0])
    parts = _Parts(fleet, reach)
    found: list[Removal] = []
    trees = roots
    providers = np.ones(0, dtype=np.bool_)
    group: str | None = None
    whole = [each for each in constraints_of(query) if each.kind in (SAME_SUBTREE, ISOLATE)]
    for constraint in constraints_of(query):
        if constraint in whole:
            continue
        meets = constraint_mask(fleet, rows, constraint)
        by_row = _marked(fleet.n_rows, rows[meets])
        removed = Removal(constraint, roots & ~parts.reaching(by_row))
        if constraint.group != group or not found:
            group, providers = constraint.group, np.ones(len(rows), dtype=np.bool_)
        removed.providers_alone = int((~meets).sum())
        removed.providers = int((providers & ~meets).sum())
        providers &= meets
        removed.trees_alone = int(removed.failing.sum())
        left = trees & parts.left_by(constraint, by_row)
        removed.trees = int(trees.sum() - left.sum())
        trees = left
        found.append(removed)
    bare = CandidateQuery(query.groups, False, (), query.root_required, query.root_forbidden)
    judged = Judged(fleet, bare, trees)
    for number, constraint in enumerate((Constraint(None, TOGETHER), *whole)):
        if number:
            wishes = whole[:number]
            bare = CandidateQuery(
                query.groups,
                any(each.kind == ISOLATE for each in wishes),
                tuple(frozenset(each.names) for each in wishes if each.kind == SAME_SUBTREE),
                query.root_required,
                query.root_forbidden,
            )
            judged = Judged(fleet, bare, trees)
        removed = Removal(constraint, np.zeros(fleet.n_rows, dtype=np.bool_))
        left = trees & judged.possible(fleet.n_rows)
        removed.trees = int(trees.sum() - left.sum())
        trees = left
        found.append(removed)
    return found, judged


class _Parts:
    """The trees in which each part of the query so far has a provider: a granular group, or a class of the
    unsuffixed one."""

    def __init__(self, fleet: Fleet, reach: Reach) -> None:
        self._n_rows = fleet.n_rows
        self._reach = reach
        self._group: str | None = None
        self._providers: Bools = np.zeros(0, dtype=np.bool_)
        self._serving: list[Bools] = []
        self._traits: list[Bools] = []

    def reaching(self, by_row: Bools) -> Bools:
        """By row, whether the tree with this root reaches one of these providers."""
        return _marked(self._n_rows, self._reach.anchors[by_row[self._reach.rows]])

    def left_by(self, constraint: Constraint, by_row: Bools) -> Bools:
        """By row, whether the tree has all parts of this constraint's group so far; ``by_row`` meet it."""
        if constraint.group is None:
            return by_row
        if constraint.group != self._group:
            self._group = constraint.group
            self._providers = np.ones(self._n_rows, dtype=np.bool_)
            self._serving, self._traits = [], []
        if constraint.group or constraint.kind not in (RESOURCES, REQUIRED):
            self._providers &= by_row
        elif constraint.kind == RESOURCES:
            self._serving.append(by_row)
        else:
            self._traits.append(by_row)
        if constraint.group:
            return self.reaching(self._providers)
        left = np.ones(self._n_rows, dtype=np.bool_)
        for serving in self._serving:
            left &= self.reaching(self._providers & serving)
        # Traits are met by the providers together: some one that serves a class has each.
        serving = self._providers & np.logical_or.reduce(self._serving)
        for having in self._traits:
            left &= self.reaching(serving & having)
        return left


def _marked(n_rows: int, rows: Rows) -> Bools:
    marks = np.zeros(n_rows, dtype=np.bool_)
    marks[rows] = True
    return marks
