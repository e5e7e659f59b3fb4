"""Allocation candidates: the ways in which a whole query can be satisfied.

A query is broken into *terms*, each of which one provider must serve: a granular group is one term, and
so is every resource class of the unsuffixed group, which may be spread over a tree and the providers that
share with it. All terms of a candidate meet at one *anchor*, the root of a tree.

Why not build all combinations and filter them: six groups on eight devices are 262,144 combinations,
which took upstream 145 s to return ten. Here vector operations find the options of each term and the
anchors that every term can reach; combinations are then walked depth first, one anchor at a time, only
as far as somebody reads, and a branch ends where capacity, isolation or the common subtree forbid it.
Trees that are alike for the query are walked once (see `roost.fleet.tree_layout`).
"""

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import repeat
from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Bools, Rows
from roost.fleet.fleet import Fleet
from roost.fleet.match import in_any, match, match_resources, match_traits
from roost.fleet.query_terms import Term, match_terms, terms_of
from roost.fleet.search import Ways
from roost.fleet.tree_layout import LayoutKey, Surveyor
from roost.model.allocation import Allocations, Candidate, Resources
from roost.model.request import CandidateQuery

_FIRST_BLOCK = 2048
"""Providers looked at before the first candidate is given, where they can be looked at in turn."""

_FIRST_TREES, _MOST_TREES = 32, 1024
"""Trees laid out before the first is walked, and at most at once."""

_MOST_LAYOUTS = 256
"""Layouts whose choices are kept."""


class Need(NamedTuple):
    """What one provider of a candidate serves: the suffixes of groups, and amounts by class, maybe none."""

    suffixes: tuple[str, ...]
    resources: Resources


Choice = tuple[int, tuple[int, ...]]
"""One candidate: its anchor, and the row that serves each need."""


class CandidateSearch:
    """The candidates of one query on one state of the fleet. Lazy: read it before the fleet changes.

    ``needs``: what the providers of each candidate serve. If ``single``, there is only one, and each anchor
    has exactly one candidate, served by the root alone.
    """

    def __init__(self, fleet: Fleet, query: CandidateQuery) -> None:
        self._fleet = fleet
        self._query = query
        self._terms: list[Term] = []
        self._ways: dict[LayoutKey, Ways] = {}
        self._matched: Rows | None = None
        self.single_provider = is_flat(fleet, query)
        if not self.single_provider:
            matches = match_terms(fleet, query)
            rows_by_term = list({each.demand: each.rows for each in matches}.values())
            self.single_provider = _all_alone(fleet, rows_by_term)
            if self.single_provider:
                self._matched = _common(rows_by_term)
            else:
                self._terms = terms_of(fleet, matches)
        self.needs = [Need((term.group.suffix,), term.resources) for term in self._terms]
        if self.single_provider:
            self.needs = [Need(tuple(group.suffix for group in query.groups), query.resources)]

    @cached_property
    def anchors(self) -> Rows:
        """The roots, ascending, that may have candidates."""
        if self.single_provider:
            return self._alone(self._matched)
        options = {id(term.options): term.options for term in self._terms}
        return self._with_root_traits(_common([_distinct(each.anchors) for each in options.values()]))

    def __iter__(self) -> Iterator[Candidate]:
        """All candidates, no two equal, by anchor."""
        return map(self.candidate, self.choices())

    def at(self, anchor: int) -> Iterator[Candidate]:
        """The candidates of one tree. ``anchor`` must be one of ``anchors``."""
        return map(self.candidate, self.choices_at(anchor))

    def choices(self) -> Iterator[Choice]:
        """All candidates, no two equal, by anchor."""
        if self.single_provider:
            for block in self._in_blocks():
                roots = block.tolist()
                yield from zip(roots, zip(roots, strict=True), strict=True)
            return
        sharing = self._fleet.sharing()
        may_repeat = len(self.anchors) > 1 and bool(len(sharing))
        seen: set[tuple[int, ...]] = set()
        for anchor, choices in self._walked(self.anchors):
            if not may_repeat:
                yield from zip(repeat(anchor), choices)
                continue
            for rows in choices:
                # Made of sharing providers only, it is a candidate of every tree that they all serve.
                if all(row in sharing for row in rows):
                    if rows in seen:
                        continue
                    seen.add(rows)
                yield anchor, rows

    def choices_at(self, anchor: int) -> Iterator[Choice]:
        """The candidates of one tree. ``anchor`` must be one of ``anchors``."""
        return next(self.choices_by_tree(np.array((anchor,), dtype=np.intp)))

    def choices_by_tree(self, anchors: Rows) -> Iterator[Iterator[Choice]]:
        """The candidates of each of some trees. ``anchors`` must be among `anchors`."""
        if self.single_provider:
            return (iter([(anchor, (anchor,))]) for anchor in anchors.tolist())
        return (zip(repeat(anchor), choices) for anchor, choices in self._walked(anchors))

    def have_candidates(self, anchors: Rows) -> Bools:
        """For each of some trees whether it has a candidate: bool[len(anchors)]."""
        found = (next(choices, None) is not None for choices in self.choices_by_tree(anchors))
        return np.fromiter(found, dtype=np.bool_, count=len(anchors))

    def candidate(self, choice: Choice) -> Candidate:
        """A choice with names for rows."""
        fleet = self._fleet
        anchor, rows = choice
        allocations: Allocations = {}
        mappings: dict[str, list[str]] = {}
        for need, row in zip(self.needs, rows, strict=True):
            uuid = fleet.uuid(row)
            for suffix in need.suffixes:
                serving = mappings.setdefault(suffix, [])
                if uuid not in serving:
                    serving.append(uuid)
            if need.resources:
                held = allocations.setdefault(uuid, {})
                for name, amount in need.resources.items():
                    held[name] = held.get(name, 0) + amount
        return Candidate(fleet.uuid(anchor), allocations, mappings)

    def local_anchors(self) -> Rows:
        """Those of ``anchors``, ascending, that do have a candidate with something of their own tree.

        The other anchors have none after all, or only such as take everything from sharing providers.
        Each tree must be walked, save those where counting tells: see `surely_local`.
        """
        if self.single_provider or not len(self.anchors):
            return self.anchors
        found = self.surely_local()
        unsure = np.flatnonzero(~found)
        for place, (anchor, choices) in zip(unsure.tolist(), self._walked(self.anchors[unsure]), strict=True):
            found[place] = any(
                self._fleet.root.item(row) == anchor and bool(term.resources)
                for rows in choices
                for term, row in zip(self._terms, rows, strict=True)
            )
        return self.anchors[found]

    def surely_local(self) -> Bools:
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
            at, rows = term.options
            options = np.bincount(at, minlength=fleet.n_rows)
            own = np.bincount(at[fleet.roots(rows) == at], minlength=fleet.n_rows)
            home |= (own[anchors] == options[anchors]) & bool(term.resources)
            if rival:
                sure &= options[anchors] >= sum(rivals)
            elif not term.group.granular:
                first.append(rows[(np.cumsum(options) - options)[anchors]])
        for group in query.groups:
            for any_of in () if group.granular else group.required:
                sure &= np.logical_or.reduce(
                    [in_any(fleet.with_trait, any_of, rows) for rows in first]
                    or [np.zeros(len(anchors), dtype=np.bool_)]
                )
        return sure & home

    def _in_blocks(self) -> Iterator[Rows]:
        """The anchors where the root serves everything: first of few providers, then of ever more, so that
        whoever wants ten does not wait until a million have been looked at."""
        if self._matched is not None or "anchors" in self.__dict__:
            yield self.anchors
            return
        rarest = min(
            (self._fleet.inventory_columns(name) for name in self._query.resources), key=lambda stock: stock.n
        )
        if not rarest.ascending:
            yield self.anchors
            return
        start, size = 0, _FIRST_BLOCK
        while start < rarest.n:
            block = rarest.row[start : min(rarest.n, start + size)]
            yield self._alone(block.astype(np.intp))
            start, size = start + size, size * 2

    def _alone(self, among: Rows | None) -> Rows:
        """The roots that serve everything by themselves, of some rows or of all."""
        query, rows = self._query, among
        for group in query.groups:
            rows = match(self._fleet, group, rows)
        assert rows is not None
        if len(query.groups) > 1:
            if query.isolate and sum(group.granular for group in query.groups) > 1:
                rows = rows[:0]
            if sum(len(group.resources) for group in query.groups) > len(query.resources):
                rows = match_resources(self._fleet, query.resources, rows)
        return self._with_root_traits(rows)

    def _with_root_traits(self, anchors: Rows) -> Rows:
        required = [frozenset((trait,)) for trait in sorted(self._query.root_required)]
        return match_traits(self._fleet, anchors, required, self._query.root_forbidden)

    def _walked(self, anchors: Rows) -> Iterator[tuple[int, Iterator[tuple[int, ...]]]]:
        """Trees, and for each the rows chosen for each term, in the order of the terms."""
        start, size = 0, _FIRST_TREES
        while start < len(anchors):
            for anchor, rows, key in self._surveyor.survey(anchors[start : start + size]):
                yield anchor, self._ways_of(key).of(rows)
            start, size = start + size, min(2 * size, _MOST_TREES)

    @cached_property
    def _surveyor(self) -> Surveyor:
        return Surveyor(self._fleet, self._query, self._terms)

    def _ways_of(self, key: LayoutKey) -> Ways:
        ways = self._ways.get(key)
        if ways is None:
            if len(self._ways) >= _MOST_LAYOUTS:
                self._ways.clear()
            ways = self._ways[key] = Ways(self._query, self._terms, self._surveyor.layout(key))
        return ways


def is_flat(fleet: Fleet, query: CandidateQuery) -> bool:
    """Whether it is known at once that no candidate can take more than one provider."""
    if fleet.has_trees or not query.groups or not all(group.resources for group in query.groups):
        return False
    sharing = fleet.sharing()
    if not len(sharing):
        return True
    stocks = [fleet.inventory_columns(name) for name in query.resources]
    return all(stock.slot(row) < 0 for row in sharing.rows().tolist() for stock in stocks)


def _all_alone(fleet: Fleet, matched: list[Rows]) -> bool:
    """Whether no candidate can take more than one provider: only roots match, and none of them shares."""
    sharing = fleet.sharing()
    return all(
        (not fleet.has_trees or bool((fleet.parent[rows] < 0).all()))
        and not (len(sharing) and bool(sharing.among(rows).any()))
        for rows in matched
    )


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
