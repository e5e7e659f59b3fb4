"""What the walk over a tree hangs on, found for many trees at once.

Most trees of a fleet are alike: their providers have the same places under each other, and what they have
left differs, but not so that it matters for what is asked. So a tree is reduced to its *layout*, in which
providers are not rows but places, numbered within the tree. Trees with equal layouts have the same
combinations, place by place, in the same order: the walk is made over the layout, once for all of them.

Why room is cut off at what is asked: hosts have used a little more or less of everything. A device from which
at most three units can be asked is the same for the walk whether it has three left or thirty. What only one
term can take from a provider is not looked at at all: else it would not be an option.
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
from roost.model.request import CandidateQuery

LayoutKey = tuple[bytes, bytes, bytes]
"""A layout as it is compared: how many options, which places they are, and what is to be known of places."""


Tree = tuple[int, list[int], LayoutKey]
"""A tree by its anchor, the rows of the providers at its places, and its layout."""


class Layout(NamedTuple):
    """All that the walk over a tree hangs on.

    ``options``: for each term its places, ascending. By place: ``above``, the next place above it, -1 for
    none; ``meets``, the any-ofs of the unsuffixed group's required traits that its provider meets, as bits;
    ``room``, of each class that several terms can take from one provider, how much can still be taken.
    """

    options: list[list[int]]
    above: list[int]
    meets: list[int]
    room: dict[str, list[int]]


class Surveyor:
    """Finds the layouts of trees for one query."""

    def __init__(self, fleet: Fleet, query: CandidateQuery, terms: Sequence[Term]) -> None:
        self._fleet = fleet
        kinds: dict[int, int] = {}
        self._number = [kinds.setdefault(id(term.options), len(kinds)) for term in terms]
        self._options = list({id(term.options): term.options for term in terms}.values())
        self._spread = {n for n, term in zip(self._number, terms, strict=True) if not term.group.granular}
        self._required = tuple(
            any_of for group in query.groups if not group.granular for any_of in group.required
        )
        self._lineage = bool(query.same_subtree)
        self._asked = _asked_together(query, terms, self._number)

    def survey(self, anchors: Rows) -> list[Tree]:
        """The trees of some anchors, in the same order."""
        found = [_options_at(options, anchors) for options in self._options]
        tree = np.concatenate([numbers for numbers, _ in found])
        keys = tree * self._fleet.n_rows + np.concatenate([rows for _, rows in found])
        keys, place = np.unique(keys, return_inverse=True)
        trees, rows = np.divmod(keys, self._fleet.n_rows)
        first = trees.searchsorted(np.arange(len(anchors) + 1))
        # By tree, then by kind of options, then by row: they were by kind, tree and row.
        order = np.argsort(tree, kind="stable")
        counts = np.stack([np.bincount(numbers, minlength=len(anchors)) for numbers, _ in found], axis=1)
        places = place - first[tree]
        columns = self._columns(keys, trees, rows, first, np.split(place, np.cumsum(counts.sum(axis=0))[:-1]))
        keys_of_trees = zip(
            _cut(counts, np.arange(len(anchors) + 1)),
            _cut(places[order], np.append(0, np.cumsum(counts.sum(axis=1)))),
            _cut(columns, first),
            strict=True,
        )
        listed, ends = rows.tolist(), first.tolist()
        rows_of_trees = [listed[start:end] for start, end in pairwise(ends)]
        return list(zip(anchors.tolist(), rows_of_trees, keys_of_trees, strict=True))

    def layout(self, key: LayoutKey) -> Layout:
        """The layout that a key stands for."""
        counts = np.frombuffer(key[0], dtype=np.int64)
        places = np.frombuffer(key[1], dtype=np.int64)
        options = [part.tolist() for part in np.split(places, np.cumsum(counts)[:-1])]
        width = self._lineage + len(self._required) + len(self._asked)
        n_places = int(places.max(initial=-1)) + 1
        columns = iter(np.frombuffer(key[2], dtype=np.int64).reshape(n_places, width).T.tolist())
        above = next(columns) if self._lineage else [-1] * n_places
        meets = [0] * n_places
        for bit in range(len(self._required)):
            meets = [bits | met << bit for bits, met in zip(meets, next(columns), strict=True)]
        room = {name: next(columns) for name in self._asked}
        return Layout([options[number] for number in self._number], above, meets, room)

    def _columns(self, keys: Rows, trees: Rows, rows: Rows, first: Rows, kinds: Sequence[Rows]) -> Int64:
        """What is to be known of places, by provider and tree: int64[len(rows), n]. ``kinds``: the places of
        each kind of options, counted through all trees."""
        fleet = self._fleet
        columns: list[Int64 | Bools] = []
        if self._lineage:
            columns.append(_next_above(fleet, keys, trees, rows, first))
        if self._required:
            serving = np.zeros(len(rows), dtype=np.bool_)
            for number in self._spread:
                serving[kinds[number]] = True
            columns += [in_any(fleet.with_trait, any_of, rows) & serving for any_of in self._required]
        for name, asked_of in self._asked.items():
            asked = np.zeros(len(rows), dtype=np.int64)
            for number, amount in asked_of.of_one.items():
                asked[kinds[number]] = np.maximum(asked[kinds[number]], amount)
            for number, amount in asked_of.of_all.items():
                asked[kinds[number]] += amount
            stock = fleet.inventory_columns(name)
            columns.append(np.minimum(stock.largest_in(stock.slots(rows)), asked))
        if not columns:
            return np.zeros((len(rows), 0), dtype=np.int64)
        return np.stack(columns, axis=1, dtype=np.int64)


class _Asked(NamedTuple):
    """How much of a class can be asked of a provider, by the number of a kind of options that it is of: the
    most that one asks of the terms that must not share a provider, and what all others ask together."""

    of_one: dict[int, int]
    of_all: dict[int, int]


def _asked_together(
    query: CandidateQuery, terms: Sequence[Term], numbers: Sequence[int]
) -> dict[str, _Asked]:
    """The classes that several terms can take from one provider."""
    asked: dict[str, _Asked] = {}
    sharing: Counter[str] = Counter()
    for number, term in zip(numbers, terms, strict=True):
        for name, amount in term.resources.items():
            of_one, of_all = asked.setdefault(name, _Asked({}, {}))
            if query.isolate and term.group.granular:
                of_one[number] = max(of_one.get(number, 0), amount)
            else:
                of_all[number] = of_all.get(number, 0) + amount
                sharing[name] += 1
    return {name: each for name, each in asked.items() if sharing[name] + bool(each.of_one) > 1}


def _options_at(options: Options, anchors: Rows) -> tuple[Rows, Rows]:
    """The options for some anchors: the place of each one's anchor among ``anchors``, and its row."""
    starts = options.anchors.searchsorted(anchors)
    counts = options.anchors.searchsorted(anchors, "right") - starts
    before = np.cumsum(counts) - counts
    numbers = np.arange(len(anchors)).repeat(counts)
    taken = np.arange(len(numbers)) + (starts - before)[numbers]
    return numbers, options.rows[taken]


def _next_above(fleet: Fleet, keys: Rows, trees: Rows, rows: Rows, first: Rows) -> Int64:
    """The next place above each place, within its tree, -1 for none. ``keys``: tree and row as one number."""
    above = np.full(len(rows), -1, dtype=np.int64)
    ancestors = fleet.parent[rows].astype(np.intp)
    seeking = np.flatnonzero(ancestors >= 0)
    while len(seeking):
        wanted = trees[seeking] * fleet.n_rows + ancestors[seeking]
        at = np.minimum(keys.searchsorted(wanted), len(keys) - 1)
        there = keys[at] == wanted
        above[seeking[there]] = at[there] - first[trees[seeking[there]]]
        seeking = seeking[~there]
        ancestors[seeking] = fleet.parent[ancestors[seeking]]
        seeking = seeking[ancestors[seeking] >= 0]
    return above


def _cut(values: Int64, bounds: Rows) -> list[bytes]:
    """The bytes of the rows between bounds, one after the other."""
    size = values.itemsize * (values.shape[1] if values.ndim > 1 else 1)
    raw = values.tobytes()
    return [raw[start:end] for start, end in pairwise((bounds * size).tolist())]
