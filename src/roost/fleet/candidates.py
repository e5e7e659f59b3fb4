"""Allocation candidates: the ways to satisfy a whole query.

A query consists of *terms*, each of which one provider must serve: a granular group is one term, and so is
every resource class of the unsuffixed group, which a tree and its sharing providers may serve together. All
terms of a candidate meet at one *anchor*, the root of a tree.

Why not build all combinations and filter them: six groups on eight devices are 262,144 combinations, which
took upstream 145 s to return ten. Here vector operations find the options of each term and the anchors that
every term can reach. A depth-first search then finds combinations, one anchor at a time and only as far as
the caller reads; a branch ends where capacity, isolation or a common subtree rules it out. Trees that are
alike for the query are searched once (see `roost.fleet.tree_layout`).
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain, islice, repeat
from typing import NamedTuple

import numpy as np

from roost.fleet.assignments import Assignment, Assignments
from roost.fleet.choices import (
    CandidateRepeats,
    Choice,
    FoundChoices,
    Need,
    candidate_of,
    served_alone,
    takes_from_tree,
)
from roost.fleet.columns import NO_ROWS, Bools, Rows
from roost.fleet.feasibility import feasibilities
from roost.fleet.fleet import Fleet
from roost.fleet.match import match, match_resources, match_traits
from roost.fleet.query_terms import Term, match_terms, surely_local, terms_of
from roost.fleet.reach import is_flat, only_roots_match
from roost.fleet.tree_feasibility import Feasibility
from roost.fleet.tree_layout import LayoutKey, TreeLayouts
from roost.fleet.work import LAYOUT
from roost.model.allocation import Candidate
from roost.model.request import CandidateQuery


class SearchLimits(NamedTuple):
    """Limits of a search's work ahead of its reader and of its caches. The results do not depend on them."""

    first_providers: int = 256
    """Providers matched before the first candidate, where that can be done in blocks, which grow fourfold."""
    first_trees: int = 32
    """Trees laid out before the first is searched; blocks double."""
    max_trees: int = 1024
    """Most trees laid out at once."""
    max_layouts: int = 256
    """Layouts whose assignments are kept. Before one more is searched, all are dropped."""
    max_positions: int = 2**13
    """Positions kept in the assignments of one layout."""


DEFAULT_LIMITS = SearchLimits()


class CandidateSearch:
    """The candidates of one query in one state of the fleet. Lazy: read it before the fleet changes.

    ``needs``: the parts of the query that one provider of a candidate each serves. ``single_provider``: there
    is one need, and each anchor has exactly one candidate, which the root alone serves. ``splits``: the query
    allows an amount to be split, and some trees may split it. ``feasibility``: the cached feasibility of the
    query on this fleet, if any; then trees are not matched again. All methods spend from the fleet's meter
    and may raise `TooMuchWork`.
    """

    def __init__(
        self,
        fleet: Fleet,
        query: CandidateQuery,
        limits: SearchLimits = DEFAULT_LIMITS,
        feasibility: Feasibility | None = None,
    ) -> None:
        self._meter = fleet.meter
        self._feasibility = feasibility
        self._fleet = fleet
        self._query = query
        self._limits = limits
        self._terms: list[Term] = []
        self._assignments: dict[LayoutKey, Assignments] = {}
        self._matched: Rows | None = None
        self.single_provider = False
        if feasibility is None and fleet.has_trees and query.split:
            feasibility = self._feasibility = feasibilities(fleet).once(query)
        self.splits = feasibility is not None and feasibility.splits
        if feasibility is not None:
            feasibility.catch_up()
            self.needs = feasibility.needs
            return
        self.single_provider = is_flat(fleet, query)
        if not self.single_provider:
            matches = match_terms(fleet, query)
            rows_by_term = list({each.demand: each.rows for each in matches}.values())
            self.single_provider = only_roots_match(fleet, rows_by_term)
            if self.single_provider:
                self._matched = _common(rows_by_term)
            else:
                self._terms = terms_of(fleet, matches)
        self.needs = [Need((term.group.suffix,), term.resources) for term in self._terms]
        if self.single_provider:
            self.needs = [Need(tuple(group.suffix for group in query.groups), query.resources)]

    @classmethod
    def cached(cls, fleet: Fleet, query: CandidateQuery) -> "CandidateSearch":
        """Return a search with the cached feasibility of a query, which is computed now if it is not cached.

        Flat hosts are searched without one. As trees with one position they would take longer: 7.6 ms and not
        1.2 for the first decision on a query and 100,000 hosts, a third longer for the next ones.
        """
        feasibility = None if is_flat(fleet, query) else feasibilities(fleet).of(query)
        return cls(fleet, query, feasibility=feasibility)

    @cached_property
    def anchors(self) -> Rows:
        """The roots of the trees that may have candidates, ascending. Some of these trees may have none."""
        if self._feasibility is not None:
            return self._feasibility.roots()
        if self.single_provider:
            return self._roots_that_match(self._matched)
        options = {id(term.options): term.options for term in self._terms}
        self._meter.spend_rows(4 * sum(len(each.anchors) for each in options.values()))
        return self._with_root_traits(_common([_distinct(each.anchors) for each in options.values()]))

    # Reading candidates

    def __iter__(self) -> Iterator[Candidate]:
        """Yield all candidates, each once, by anchor."""
        if self.splits and self._feasibility is not None:
            return self._with_splits(self._feasibility)
        return map(self.candidate, self.choices())

    def at(self, anchor: int) -> Iterator[Candidate]:
        """Return the candidates of one tree. ``anchor`` must be one of `anchors`."""
        if self.splits and self._feasibility is not None:
            return self._feasibility.at(anchor)
        return map(self.candidate, self.choices_at(anchor))

    def _with_splits(self, feasibility: Feasibility) -> Iterator[Candidate]:
        repeats, row = self._repeats(), self._fleet.row
        for anchor in self.anchors.tolist():
            for candidate in feasibility.at(anchor):
                serving = dict.fromkeys(each for found in candidate.mappings.values() for each in found)
                if repeats is None or not repeats.has(tuple(map(row, serving))):
                    yield candidate

    def choices(self) -> Iterator[Choice]:
        """Return all candidates as rows, each once, by anchor. No method for choices returns splits."""
        if self.single_provider:
            # No generator: a thousand candidates would pass through it one by one.
            return chain.from_iterable(map(served_alone, self._blocks()))
        return self._choices_of_trees()

    def first(self, most: int) -> FoundChoices:
        """Return the first ``most`` candidates, or all."""
        if not self.single_provider:
            return FoundChoices(list(islice(self.choices(), most)))
        blocks: list[Rows] = []
        for block in self._blocks():
            blocks.append(block[:most])
            most -= len(blocks[-1])
            if not most:
                break
        return FoundChoices(None, np.concatenate(blocks) if blocks else NO_ROWS)

    def _choices_of_trees(self) -> Iterator[Choice]:
        repeats = self._repeats()
        for anchor, found in self._search(self.anchors):
            if repeats is None:
                yield from zip(repeat(anchor), found)
                continue
            for rows in found:
                if not repeats.has(rows):
                    yield anchor, rows

    def choices_breadth_first(self) -> Iterator[Choice]:
        """Yield all candidates as rows, each once: the first of each tree, then the second of each, etc."""
        trees: Iterable[Iterator[Choice]] = self.choices_by_tree(self.anchors)
        repeats = self._repeats()
        while trees:
            unfinished = []
            for tree in trees:
                choice = next(tree, None)
                if choice is None:
                    continue
                unfinished.append(tree)
                if repeats is None or not repeats.has(choice[1]):
                    yield choice
            trees = unfinished

    def choices_at(self, anchor: int) -> Iterator[Choice]:
        """Return the candidates of one tree as rows. ``anchor`` must be one of `anchors`."""
        return next(self.choices_by_tree(np.array((anchor,), dtype=np.intp)))

    def choices_by_tree(self, anchors: Rows) -> Iterator[Iterator[Choice]]:
        """Return the candidates of each of some trees, as rows. ``anchors`` must be among `anchors`."""
        if self.single_provider:
            return (iter([(anchor, (anchor,))]) for anchor in anchors.tolist())
        return (zip(repeat(anchor), found) for anchor, found in self._search(anchors))

    def have_candidates(self, anchors: Rows) -> Bools:
        """Return for each tree whether it has a candidate: bool[len(anchors)]."""
        if self.splits:
            found = (next(self.at(anchor), None) is not None for anchor in anchors.tolist())
        else:
            found = (next(choices, None) is not None for choices in self.choices_by_tree(anchors))
        return np.fromiter(found, dtype=np.bool_, count=len(anchors))

    def candidate(self, choice: Choice) -> Candidate:
        """Return a candidate with uuids for rows."""
        return candidate_of(self._fleet, self.needs, choice)

    # Trees with local candidates

    def local_anchors(self) -> Rows:
        """Return the roots of trees with a *local* candidate, which takes from the tree itself; ascending.

        The other `anchors` have no candidate at all, or take everything from sharing providers of other
        trees. Each tree has to be searched, except where counting decides it (`surely_local`).
        """
        if self._feasibility is not None:
            return self._feasibility.local_roots()
        if self.single_provider or not len(self.anchors):
            return self.anchors
        local = self.surely_local()
        unsure = np.flatnonzero(~local)
        for index, (anchor, found) in zip(unsure.tolist(), self._search(self.anchors[unsure]), strict=True):
            local[index] = any(self._is_local(anchor, rows) for rows in found)
        return self.anchors[local]

    def local_at(self, anchor: int) -> Iterator[Candidate]:
        """Return the local candidates of one tree. ``anchor`` must be one of `anchors`."""
        if self.splits and self._feasibility is not None:
            return self._feasibility.local_at(anchor)
        choices = self.choices_at(anchor)
        if not self.single_provider:
            choices = (choice for choice in choices if self._is_local(*choice))
        return map(self.candidate, choices)

    def splits_at(self, anchor: int) -> Iterator[Candidate]:
        """Return the present split of one tree, with each assignment of the rest of the query.

        See `Feasibility.splits_at`.
        """
        return iter(()) if self._feasibility is None else self._feasibility.splits_at(anchor)

    def _is_local(self, anchor: int, rows: Assignment) -> bool:
        """Return whether a candidate takes something from a provider of its own tree."""
        return takes_from_tree(self._fleet, self.needs, (anchor, rows))

    def surely_local(self) -> Bools:
        """Return for each anchor whether it surely has a local candidate: bool[len(anchors)]."""
        if self._feasibility is not None:
            return self._feasibility.are_local(self.anchors)
        return surely_local(self._fleet, self._query, self._terms, self.anchors)

    # Candidates of a single provider

    def _blocks(self) -> Iterator[Rows]:
        """Yield the anchors where the root serves everything, in blocks that start small and grow.

        A caller that reads ten candidates does not wait until a million providers are matched.
        """
        if self._matched is not None or "anchors" in self.__dict__:
            yield self.anchors
            return
        rarest = min(
            (self._fleet.inventory_columns(name) for name in self._query.resources),
            key=lambda columns: columns.n,
        )
        if not rarest.ascending:
            yield self.anchors
            return
        start, size = 0, self._limits.first_providers
        while start < rarest.n:
            block = rarest.row[start : min(rarest.n, start + size)]
            yield self._roots_that_match(block.astype(np.intp))
            start, size = start + size, size * 4

    def _roots_that_match(self, among: Rows | None) -> Rows:
        """Return the roots that serve the whole query alone, out of ``among`` or of all providers."""
        query, rows = self._query, among
        for group in query.groups:
            rows = match(self._fleet, group, rows)
        assert rows is not None
        if len(query.groups) > 1:
            if sum(map(query.isolates, query.groups)) > 1:
                rows = rows[:0]
            if sum(len(group.resources) for group in query.groups) > len(query.resources):
                rows = match_resources(self._fleet, query.resources, rows)
        return self._with_root_traits(rows)

    def _with_root_traits(self, anchors: Rows) -> Rows:
        required = [frozenset((trait,)) for trait in sorted(self._query.root_required)]
        return match_traits(self._fleet, anchors, required, self._query.root_forbidden)

    # Candidates of several providers

    def _search(self, anchors: Rows) -> Iterator[tuple[int, Iterator[Assignment]]]:
        """Yield each anchor with the assignments of its tree, as rows."""
        start, size = 0, self._limits.first_trees
        while start < len(anchors):
            if self._feasibility is not None:
                yield from self._feasibility.assignments(anchors[start : start + size])
                start, size = start + size, min(2 * size, self._limits.max_trees)
                continue
            for anchor, rows, key in self._layouts.trees(anchors[start : start + size]):
                self._meter.spend(LAYOUT + len(rows))
                yield anchor, self._assignments_of(key).of_tree(rows)
            start, size = start + size, min(2 * size, self._limits.max_trees)

    @cached_property
    def _layouts(self) -> TreeLayouts:
        return TreeLayouts(self._fleet, self._query, self._terms)

    def _assignments_of(self, key: LayoutKey) -> Assignments:
        found = self._assignments.get(key)
        if found is None:
            if len(self._assignments) >= self._limits.max_layouts:
                self._assignments.clear()
            layout = self._layouts.layout(key)
            found = Assignments(self._query, self._terms, layout, self._limits.max_positions, self._meter)
            self._assignments[key] = found
        return found

    def _repeats(self) -> CandidateRepeats | None:
        """Return a detector of repeated candidates; None if no candidate can be repeated."""
        sharing = self._fleet.sharing()
        if self.single_provider or len(self.anchors) < 2 or not len(sharing):
            return None
        return CandidateRepeats(sharing, self._meter)


def _distinct(ascending: Rows) -> Rows:
    """Return the distinct rows of an ascending column. `np.unique` would ignore that it is sorted."""
    first = np.ones(len(ascending), dtype=np.bool_)
    first[1:] = ascending[1:] != ascending[:-1]
    return ascending[first]


def _common(sets: list[Rows]) -> Rows:
    """Return the rows in all of the ascending sets, ascending."""
    if not sets:
        return np.zeros(0, dtype=np.intp)
    common = sets[0]
    for rows in sets[1:]:
        # Equal sets are common (every host has CPU, memory and disk) and need no merge.
        if not np.array_equal(common, rows):
            common = np.intersect1d(common, rows, assume_unique=True)
    return common
