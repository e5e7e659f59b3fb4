"""Allocation candidates: the ways in which a whole query can be satisfied.

A query is broken into *terms*, each of which one provider must serve: a granular group is one term, and
so is every resource class of the unsuffixed group, which may be spread over a tree and the providers that
share with it. All terms of a candidate meet at one *anchor*, the root of a tree.

Why not build all combinations and filter them: six groups on eight devices are 262,144 combinations,
which took upstream 145 s to return ten. Here vector operations find the options of each term and the
anchors that every term can reach; combinations are then walked depth first, one anchor at a time, only
as far as somebody reads, and a branch ends where capacity, isolation or the common subtree forbid it.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from roost.fleet.columns import Bools, Rows
from roost.fleet.fleet import Fleet
from roost.fleet.match import (
    in_any,
    match,
    match_places,
    match_resources,
    match_traits,
)
from roost.fleet.walk import Term, Walk
from roost.model.allocation import Allocations, Candidate, Resources
from roost.model.request import CandidateQuery, RequestGroup


class CandidateSearch:
    """The candidates of one query on one state of the fleet. Lazy: read it before the fleet changes.

    ``anchors``: ascending, the roots that may have candidates. If ``single``, each has exactly one,
    served by the root alone.
    """

    def __init__(self, fleet: Fleet, query: CandidateQuery) -> None:
        self._fleet = fleet
        self._query = query
        rows_by_term = list(_matches(fleet, query))
        self.single = _all_alone(fleet, [rows for _, _, rows in rows_by_term])
        self._terms: list[Term] = []
        if self.single:
            self.anchors = self._alone([rows for _, _, rows in rows_by_term])
        else:
            self._terms = [_term(fleet, *parts) for parts in rows_by_term]
            self.anchors = _common([_distinct(term.anchors) for term in self._terms])
        self.anchors = match_traits(
            fleet,
            self.anchors,
            [frozenset((trait,)) for trait in sorted(query.root_required)],
            query.root_forbidden,
        )

    def __iter__(self) -> Iterator[Candidate]:
        """All candidates, no two equal, by anchor."""
        if self.single:
            for anchor in self.anchors.tolist():
                yield self._of_one(anchor)
            return
        sharing = self._fleet.sharing()
        seen: set[tuple[int, ...]] = set()
        for anchor in self.anchors.tolist():
            for rows in self._combinations(anchor):
                # Made of sharing providers only, it is a candidate of every tree that they all serve.
                if len(self.anchors) > 1 and all(row in sharing for row in rows):
                    if rows in seen:
                        continue
                    seen.add(rows)
                yield self._candidate(anchor, rows)

    def at(self, anchor: int) -> Iterator[Candidate]:
        """The candidates of one tree. ``anchor`` must be one of ``anchors``."""
        if self.single:
            yield self._of_one(anchor)
            return
        for rows in self._combinations(anchor):
            yield self._candidate(anchor, rows)

    def at_home(self) -> Rows:
        """Those of ``anchors``, ascending, that do have a candidate with something of their own tree.

        The other anchors have none after all, or only such as take everything from sharing providers.
        Each tree must be walked, save those where counting tells: see `surely_at_home`.
        """
        if self.single or not len(self.anchors):
            return self.anchors
        found = self.surely_at_home()
        for place in np.flatnonzero(~found).tolist():
            anchor = self.anchors.item(place)
            found[place] = any(
                self._fleet.root.item(row) == anchor and bool(term.resources)
                for rows in self._combinations(anchor)
                for term, row in zip(self._terms, rows, strict=True)
            )
        return self.anchors[found]

    def surely_at_home(self) -> Bools:
        """For each anchor whether a candidate with something of its own must be there: bool[len(anchors)].

        Terms that ask for a class together, or that must not share a provider, are rivals. Where each
        rival has as many options as there are rivals, they can have a provider each; all other terms can
        have any of theirs, so the first. It remains to see that these have the traits required together.
        """
        fleet, query, anchors = self._fleet, self._query, self.anchors
        if query.same_subtree:
            return np.zeros(len(anchors), dtype=np.bool_)
        granular = sum(term.group.granular for term in self._terms)
        asked = Counter(name for term in self._terms for name in term.resources)
        rivals = [
            (query.isolate and granular > 1 and term.group.granular)
            or any(asked[name] > 1 for name in term.resources)
            for term in self._terms
        ]
        sure = np.ones(len(anchors), dtype=np.bool_)
        home = np.zeros(len(anchors), dtype=np.bool_)
        first: list[Rows] = []
        for term, rival in zip(self._terms, rivals, strict=True):
            options = np.bincount(term.anchors, minlength=fleet.n_rows)
            own = np.bincount(term.anchors[fleet.roots(term.rows) == term.anchors], minlength=fleet.n_rows)
            home |= (own[anchors] == options[anchors]) & bool(term.resources)
            if rival:
                sure &= options[anchors] >= sum(rivals)
            elif not term.group.granular:
                first.append(term.rows[(np.cumsum(options) - options)[anchors]])
        for group in query.groups:
            for any_of in () if group.granular else group.required:
                sure &= np.logical_or.reduce(
                    [in_any(fleet.with_trait, any_of, rows) for rows in first]
                    or [np.zeros(len(anchors), dtype=np.bool_)]
                )
        return sure & home

    def _alone(self, matched: list[Rows]) -> Rows:
        """The anchors where the root serves every term by itself."""
        query = self._query
        rows = _common(matched)
        if len(query.groups) > 1:
            if query.isolate and sum(group.granular for group in query.groups) > 1:
                rows = rows[:0]
            resources = query.resources
            if len(rows) and sum(len(group.resources) for group in query.groups) > len(resources):
                rows = np.intersect1d(rows, match_resources(self._fleet, resources), assume_unique=True)
        for group in query.groups:
            if not group.granular:
                rows = match_traits(self._fleet, rows, group.required, ())
        return rows

    def _of_one(self, anchor: int) -> Candidate:
        uuid = self._fleet.uuid(anchor)
        return Candidate(
            uuid, {uuid: self._query.resources}, {group.suffix: [uuid] for group in self._query.groups}
        )

    def _combinations(self, anchor: int) -> Iterator[tuple[int, ...]]:
        """The rows chosen for each term, in the order of the terms."""
        options = [term.options(anchor) for term in self._terms]
        if not all(options):
            return
        # Fewest options first: a branch that cannot end well is left early.
        order = sorted(range(len(options)), key=lambda i: len(options[i]))
        walk = Walk(self._fleet, self._query, [self._terms[i] for i in order], [options[i] for i in order])
        where = {index: place for place, index in enumerate(order)}
        places = [where[i] for i in range(len(order))]
        for chosen in walk.choices():
            yield tuple(chosen[place] for place in places)

    def _candidate(self, anchor: int, rows: tuple[int, ...]) -> Candidate:
        fleet = self._fleet
        allocations: Allocations = {}
        mappings: dict[str, list[str]] = {}
        for term, row in zip(self._terms, rows, strict=True):
            uuid = fleet.uuid(row)
            serving = mappings.setdefault(term.group.suffix, [])
            if uuid not in serving:
                serving.append(uuid)
            if term.resources:
                held = allocations.setdefault(uuid, {})
                for name, amount in term.resources.items():
                    held[name] = held.get(name, 0) + amount
        return Candidate(fleet.uuid(anchor), allocations, mappings)


def _matches(fleet: Fleet, query: CandidateQuery) -> Iterator[tuple[RequestGroup, Resources, Rows]]:
    """Each term's group and resources, and the rows that can serve it wherever they are."""
    for group in query.groups:
        if group.granular:
            yield group, group.resources, match(fleet, group)
            continue
        # The unsuffixed group: one term for each class. Required traits are met by the providers
        # together, so they are judged on whole combinations.
        for name, amount in group.resources.items():
            rows = match_resources(fleet, {name: amount})
            rows = match_traits(fleet, rows, (), group.forbidden)
            yield group, {name: amount}, match_places(fleet, rows, group, roots_span_trees=True)


def _all_alone(fleet: Fleet, matched: list[Rows]) -> bool:
    """Whether no candidate can take more than one provider: only roots match, and none of them shares."""
    sharing = fleet.sharing()
    return all(
        (not fleet.has_trees or bool((fleet.parent[rows] < 0).all()))
        and not (len(sharing) and bool(sharing.among(rows).any()))
        for rows in matched
    )


def _term(fleet: Fleet, group: RequestGroup, resources: Resources, rows: Rows) -> Term:
    """A term with its options by anchor.

    How a sharing provider serves other trees is upstream's rule: for a granular group always; for the
    unsuffixed group only without ``in_tree``, if it is in the aggregates asked for by itself, and not for
    a tree whose root is in a forbidden one.
    """
    anchors = fleet.roots(rows)
    sharing = fleet.sharing()
    if len(sharing) and (group.granular or group.in_tree is None):
        shared = rows[sharing.among(rows)]
        if not group.granular:
            for any_of in group.member_of:
                shared = shared[in_any(fleet.in_aggregate, any_of, shared)]
        served = [(row, _served(fleet, row)) for row in shared.tolist()]
        anchors = np.concatenate([anchors, *(roots for _, roots in served)])
        rows = np.concatenate([rows, *(np.full(len(roots), row, np.intp) for row, roots in served)])
        if not group.granular and group.forbidden_aggregates:
            allowed = ~in_any(fleet.in_aggregate, group.forbidden_aggregates, anchors)
            anchors, rows = anchors[allowed], rows[allowed]
    order = np.lexsort((rows, anchors))
    return Term(group, resources, anchors[order], rows[order])


def _served(fleet: Fleet, row: int) -> Rows:
    """The roots of the other trees that a sharing provider serves."""
    reached = [fleet.in_aggregate(name).rows() for name in fleet.aggregates_of(row)]
    if not reached:
        return np.zeros(0, dtype=np.intp)
    roots: Rows = np.unique(fleet.roots(np.concatenate(reached))).astype(np.intp)
    others: Rows = roots[roots != fleet.root.item(row)]
    return others


def _distinct(ascending: Rows) -> Rows:
    """Each row of an ascending column once; `np.unique` would hash what is sorted already."""
    first = np.ones(len(ascending), dtype=np.bool_)
    first[1:] = ascending[1:] != ascending[:-1]
    return ascending[first]


def _common(sets: list[Rows]) -> Rows:
    """The rows in all of the ascending sets."""
    if not sets:
        return np.zeros(0, dtype=np.intp)
    common = sets[0]
    for rows in sets[1:]:
        # Equal sets are the usual case (every host has CPU, memory and disk) and need no merge.
        if not np.array_equal(common, rows):
            common = np.intersect1d(common, rows, assume_unique=True)
    return common
