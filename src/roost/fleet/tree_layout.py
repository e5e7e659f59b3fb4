"""The layout of a tree: all inputs of the search in this tree, computed for many trees at once.

Most trees of a fleet are alike for a query: their providers have the same parents, and their free amounts
differ only where it does not matter. So a tree is reduced to its *layout*, in which providers are
*positions*, numbers within the tree, instead of rows. Trees with equal layouts have the same assignments,
position by position and in the same order, so one search serves them all.

Available amounts are limited to the demand: for the search, a device from which at most three units can be
demanded is the same whether it has three units free or thirty. Without the limit hardly two hosts would be
alike. A class of which only one term can take from a provider is left out: a provider without enough of it
would not be an option.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Bools, Int64, Rows
from roost.fleet.fleet import Fleet
from roost.fleet.match import in_any
from roost.fleet.query_terms import Options, Term
from roost.fleet.work import KIND, LAYOUTS
from roost.model.request import CandidateQuery

_LAID_OUT = 5
"""Options, or attributes of positions, that are laid out for one unit of work."""

LayoutKey = tuple[bytes, bytes, bytes]
"""A layout in comparable form: number of options, positions of the options, attributes of the positions."""

Tree = tuple[int, list[int], LayoutKey]
"""A tree: its anchor, the row of the provider at each position, and its layout."""


class TreeLayout(NamedTuple):
    """All inputs of the search in a tree.

    ``options``: for each term its positions, ascending. By position: ``ancestor``, the next position above
    it, -1 for none; ``trait_bits``, which of the unsuffixed group's required traits its provider has, as
    bits. ``available``: for each class that several terms can take from one provider, by position, the
    units that they can take together.
    """

    options: list[list[int]]
    ancestor: list[int]
    trait_bits: list[int]
    available: dict[str, list[int]]


class TreeLayouts:
    """The layouts of trees for one query.

    Terms with the same options are of one *kind*. Kinds are numbered, and options are listed once for each
    kind.
    """

    def __init__(self, fleet: Fleet, query: CandidateQuery, terms: Sequence[Term]) -> None:
        self._fleet = fleet
        kinds: dict[int, int] = {}
        self._kinds = [kinds.setdefault(id(term.options), len(kinds)) for term in terms]
        self._options = list({id(term.options): term.options for term in terms}.values())
        self._unsuffixed = {n for n, term in zip(self._kinds, terms, strict=True) if not term.group.granular}
        self._required = tuple(
            any_of for group in query.groups if not group.granular for any_of in group.required
        )
        self._has_subtrees = bool(query.same_subtree)
        self._demands = _shared_demands(query, terms, self._kinds)
        self._width = self._has_subtrees + len(self._required) + len(self._demands)

    def trees(self, anchors: Rows) -> list[Tree]:
        """Return the trees of some anchors, in the same order. Raises `TooMuchWork`."""
        self._fleet.meter.spend(LAYOUTS + KIND * len(self._options))
        found = [_options_at(options, anchors) for options in self._options]
        tree = np.concatenate([numbers for numbers, _ in found])
        keys = tree * self._fleet.n_rows + np.concatenate([rows for _, rows in found])
        self._fleet.meter.spend(len(keys) // _LAID_OUT)
        keys, inverse = np.unique(keys, return_inverse=True)
        trees, rows = np.divmod(keys, self._fleet.n_rows)
        first = trees.searchsorted(np.arange(len(anchors) + 1))
        # Options are sorted by kind, tree and row; this sorts them by tree, kind and row.
        order = np.argsort(tree, kind="stable")
        counts = np.stack([np.bincount(numbers, minlength=len(anchors)) for numbers, _ in found], axis=1)
        positions = inverse - first[tree]
        of_kinds = np.split(inverse, np.cumsum(counts.sum(axis=0))[:-1])
        self._fleet.meter.spend(len(rows) * self._width // _LAID_OUT)
        attributes = self._attributes(keys, trees, rows, first, of_kinds)
        keys_of_trees = zip(
            _cut(counts, np.arange(len(anchors) + 1)),
            _cut(positions[order], np.append(0, np.cumsum(counts.sum(axis=1)))),
            _cut(attributes, first),
            strict=True,
        )
        listed, ends = rows.tolist(), first.tolist()
        rows_of_trees = [listed[start:end] for start, end in pairwise(ends)]
        return list(zip(anchors.tolist(), rows_of_trees, keys_of_trees, strict=True))

    def layout(self, key: LayoutKey) -> TreeLayout:
        """Return the layout that a key stands for. Raises `TooMuchWork`."""
        counts = np.frombuffer(key[0], dtype=np.int64)
        positions = np.frombuffer(key[1], dtype=np.int64)
        options = [part.tolist() for part in np.split(positions, np.cumsum(counts)[:-1])]
        width = self._width
        n_positions = int(positions.max(initial=-1)) + 1
        self._fleet.meter.spend(len(positions) + n_positions * width // _LAID_OUT)
        columns = iter(np.frombuffer(key[2], dtype=np.int64).reshape(n_positions, width).T.tolist())
        ancestor = next(columns) if self._has_subtrees else [-1] * n_positions
        trait_bits = [0] * n_positions
        for bit in range(len(self._required)):
            trait_bits = [bits | has << bit for bits, has in zip(trait_bits, next(columns), strict=True)]
        available = {name: next(columns) for name in self._demands}
        return TreeLayout([options[kind] for kind in self._kinds], ancestor, trait_bits, available)

    def _attributes(
        self, keys: Rows, trees: Rows, rows: Rows, first: Rows, of_kinds: Sequence[Rows]
    ) -> Int64:
        """Return the attributes of all positions of all trees: int64[len(rows), n].

        ``of_kinds``: the options of each kind, as indexes into ``rows``.
        """
        fleet = self._fleet
        columns: list[Int64 | Bools] = []
        if self._has_subtrees:
            columns.append(_next_ancestors(fleet, keys, trees, rows, first))
        if self._required:
            unsuffixed = np.zeros(len(rows), dtype=np.bool_)
            for kind in self._unsuffixed:
                unsuffixed[of_kinds[kind]] = True
            columns += [in_any(fleet.with_trait, any_of, rows) & unsuffixed for any_of in self._required]
        for name, demand in self._demands.items():
            limit = np.zeros(len(rows), dtype=np.int64)
            for kind, amount in demand.largest.items():
                limit[of_kinds[kind]] = np.maximum(limit[of_kinds[kind]], amount)
            for kind, amount in demand.total.items():
                limit[of_kinds[kind]] += amount
            inventories = fleet.inventory_columns(name)
            columns.append(np.minimum(inventories.largest_in(inventories.slots(rows)), limit))
        if not columns:
            return np.zeros((len(rows), 0), dtype=np.int64)
        return np.stack(columns, axis=1, dtype=np.int64)


class _Demand(NamedTuple):
    """The amount of a class that the terms of each kind can take from one provider.

    ``largest``: of isolated terms, which share no provider, the largest amount. ``total``: of all others,
    the sum.
    """

    largest: dict[int, int]
    total: dict[int, int]


def _shared_demands(query: CandidateQuery, terms: Sequence[Term], kinds: Sequence[int]) -> dict[str, _Demand]:
    """Return the demand for each class that several terms can take from one provider."""
    demands: dict[str, _Demand] = {}
    sharing: Counter[str] = Counter()
    for kind, term in zip(kinds, terms, strict=True):
        for name, amount in term.resources.items():
            largest, total = demands.setdefault(name, _Demand({}, {}))
            if query.isolates(term.group):
                largest[kind] = max(largest.get(kind, 0), amount)
            else:
                total[kind] = total.get(kind, 0) + amount
                sharing[name] += 1
    return {name: each for name, each in demands.items() if sharing[name] + bool(each.largest) > 1}


def _options_at(options: Options, anchors: Rows) -> tuple[Rows, Rows]:
    """Return the options for some anchors: the index of each option's anchor in ``anchors``, and its row."""
    starts = options.anchors.searchsorted(anchors)
    counts = options.anchors.searchsorted(anchors, "right") - starts
    before = np.cumsum(counts) - counts
    numbers = np.arange(len(anchors)).repeat(counts)
    taken = np.arange(len(numbers)) + (starts - before)[numbers]
    return numbers, options.rows[taken]


def _next_ancestors(fleet: Fleet, keys: Rows, trees: Rows, rows: Rows, first: Rows) -> Int64:
    """Return the next position above each one in its tree, -1 for none. ``keys``: tree and row as one."""
    found = np.full(len(rows), -1, dtype=np.int64)
    ancestors = fleet.parent[rows].astype(np.intp)
    seeking = np.flatnonzero(ancestors >= 0)
    while len(seeking):
        wanted = trees[seeking] * fleet.n_rows + ancestors[seeking]
        at = np.minimum(keys.searchsorted(wanted), len(keys) - 1)
        there = keys[at] == wanted
        found[seeking[there]] = at[there] - first[trees[seeking[there]]]
        seeking = seeking[~there]
        ancestors[seeking] = fleet.parent[ancestors[seeking]]
        seeking = seeking[ancestors[seeking] >= 0]
    return found


def _cut(values: Int64, bounds: Rows) -> list[bytes]:
    """Return the bytes of ``values`` between each two consecutive bounds."""
    size = values.itemsize * (values.shape[1] if values.ndim > 1 else 1)
    raw = values.tobytes()
    return [raw[start:end] for start, end in pairwise((bounds * size).tolist())]
