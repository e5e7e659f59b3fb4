"""Splitting: amounts that several providers of one tree give together, where a query allows it.

The rule is deterministic. A query that some provider of a tree, or several for different classes, can serve
unsplit is served unsplit. Otherwise each class that can be split is taken whole from the provider with the
most free units that it fits on. If it fits on none, it is taken from one provider after the other, most free
units first: from each as much as its room, ``max_unit`` and ``step_size`` allow, and nothing if that is less
than ``min_unit``. Ties are broken by uuid. So a tree has one split, or none.

Why no enumeration: there are too many ways to spread 64 processors over 8 providers, and all are equally good
for a request that does not care where they are.

Only the tree's own providers give parts, each of which meets the conditions of the unsuffixed group. A class
that a granular group requests as well is never split: the result would depend on which takes first.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Bools, Int64, Rows
from roost.fleet.fits import fits, largest_amount, largest_part
from roost.fleet.fleet import Fleet
from roost.fleet.inventory_columns import InventoryColumns
from roost.fleet.match import in_any, match_location, match_traits
from roost.fleet.term_kind import TermKind, has_trait, is_conditional
from roost.fleet.work import EVALUATION
from roost.model.allocation import Candidate
from roost.model.request import CandidateQuery, RequestGroup
from roost.model.vocabulary import MAX_INT


class Part(NamedTuple):
    """An amount of one class that one provider gives."""

    row: int
    resource_class: str
    amount: int


def with_parts(fleet: Fleet, candidate: Candidate, parts: Iterable[Part]) -> Candidate:
    """Return a candidate of the unsplit terms with parts added, which serve the unsuffixed group."""
    allocations = {provider: {**held} for provider, held in candidate.allocations.items()}
    serving = dict.fromkeys(candidate.mappings.get("", ()))
    for part in parts:
        uuid = fleet.uuid(part.row)
        allocations.setdefault(uuid, {})[part.resource_class] = part.amount
        serving[uuid] = None
    return Candidate(candidate.root, allocations, {**candidate.mappings, "": [*serving]})


def parts_by_tree(fleet: Fleet, name: str, amount: int) -> tuple[Rows, Int64, Int64]:
    """Return the part of an amount that each provider could give, whatever else the query requests.

    The result: the rows of all providers with the class, the units that each could give (int64[n]), and by
    row of a root the sum over its tree (int64[rows of the fleet]), at most ``amount``.
    """
    columns = fleet.inventory_columns(name)
    rows: Rows = columns.row[: columns.n].astype(np.intp)
    slots = np.arange(columns.n)
    free = columns.capacity[slots] - columns.used[slots]
    gives: Int64 = largest_part(amount, free, *_units(columns, slots))
    together = np.zeros(fleet.n_rows, dtype=np.int64)
    np.add.at(together, fleet.roots(rows), gives)
    return rows, gives, np.minimum(together, amount)


class Splitting:
    """The splits of the trees of a fleet for one query.

    ``width``: the number of bits that describe the split of a tree; 0 if the query allows none. The lowest
    bit says that there is a split, the others which required traits of the unsuffixed group the providers of
    its parts have.
    """

    def __init__(self, fleet: Fleet, query: CandidateQuery) -> None:
        self._fleet = fleet
        self._split = query.split
        group = next((group for group in query.groups if not group.granular), RequestGroup())
        self._group = group
        self._kind = TermKind(0, group, (), is_conditional(group))
        self._required = group.required
        self.classes = frozenset(self._split)
        self.width = 1 + len(self._required) if self._split else 0

    def eligible(self) -> Bools | None:
        """Return by row whether a provider meets the unsuffixed group's conditions; None without any."""
        if not self._split or not self._kind.conditional:
            return None
        rows = match_traits(self._fleet, self._fleet.rows(), (), self._group.forbidden)
        rows = match_location(self._fleet, rows, self._group, roots_span_trees=True)
        found: Bools = np.zeros(self._fleet.n_rows, dtype=np.bool_)
        found[rows] = True
        return found

    def parts(self, rows: Sequence[int]) -> list[Part] | None:
        """Return the present split of a tree: its parts by class, most free first; None if there is none.

        ``rows``: of the tree's providers. Raises `TooMuchWork`.
        """
        self._fleet.meter.spend_once(EVALUATION * len(rows) * (1 + len(self._split)))
        found: list[Part] = []
        eligible = [row for row in rows if not self._kind.conditional or self._kind.meets(self._fleet, row)]
        for name, amount in self._split.items():
            parts = self._parts_of(name, amount, eligible)
            if parts is None:
                return None
            found += parts
        return found

    def of(self, rows: Sequence[int]) -> int:
        """Return the bits of a tree with these providers."""
        parts = self.parts(rows)
        if parts is None:
            return 0
        bits = 1
        for number, any_of in enumerate(self._required, 1):
            bits |= any(has_trait(self._fleet, any_of, part.row) for part in parts) << number
        return bits

    def of_all(
        self, rows: Rows, classes: Sequence[frozenset[str]], eligible: Bools | None
    ) -> list[tuple[Int64, int]]:
        """Return the bits of all trees of one form, as columns with the width of each.

        ``rows``: intp[positions, trees]. ``classes``: the classes that the providers at each position may
        have. ``eligible``: the result of `eligible`.
        """
        trees = rows.shape[1]
        split: Bools = np.ones(trees, dtype=np.bool_)
        unsure: Bools = np.zeros(trees, dtype=np.bool_)
        met = [np.zeros(trees, dtype=np.bool_) for _ in self._required]
        for name, amount in self._split.items():
            places = [place for place, its in enumerate(classes) if name in its]
            spread = self._spread(name, amount, rows[places], eligible)
            split &= spread.split
            unsure |= spread.unsure
            for number, any_of in enumerate(self._required):
                has = in_any(self._fleet.with_trait, any_of, rows[places].ravel()).reshape(spread.gives.shape)
                met[number] |= (has & spread.gives).any(axis=0)
        parts: list[tuple[Int64, int]] = [(split.astype(np.int64), 1)]
        parts += [((each & split).astype(np.int64), 1) for each in met]
        for tree in np.flatnonzero(unsure).tolist():
            bits = self.of(rows[:, tree].tolist())
            for number, (column, _) in enumerate(parts):
                column[tree] = bits >> number & 1
        return parts

    def _parts_of(self, name: str, amount: int, rows: Sequence[int]) -> list[Part] | None:
        columns = self._fleet.inventory_columns(name)
        able = []
        for row in rows:
            slot = columns.slot(row)
            if slot >= 0 and (free := columns.capacity.item(slot) - columns.used.item(slot)) > 0:
                able.append((-free, self._fleet.uuid(row), row, slot))
        able.sort()
        for _, _, row, slot in able:
            if columns.fits_at(slot, amount):
                return [Part(row, name, amount)]
        found, left = [], amount
        for less, _, row, slot in able:
            units = (columns.min_unit.item(slot), columns.max_unit.item(slot), columns.step_size.item(slot))
            part = int(largest_part(left, -less, *units))
            if part:
                found.append(Part(row, name, part))
                left -= part
                if not left:
                    return found
        return None

    def _spread(self, name: str, amount: int, rows: Rows, among: Bools | None) -> "_Spread":
        """Split a class in many trees. ``rows``: of the positions with the class, intp[positions, trees]."""
        columns = self._fleet.inventory_columns(name)
        trees = rows.shape[1]
        if not len(rows) or not columns.n or amount > len(rows) * MAX_INT:
            none = np.zeros(trees, dtype=np.bool_)
            return _Spread(none, np.zeros(rows.shape, dtype=np.bool_), none)
        slots = columns.slots(rows.ravel()).reshape(rows.shape)
        free = columns.capacity[slots] - columns.used[slots]
        able = slots >= 0
        if among is not None:
            able &= among[rows]
        free[~able] = 0
        np.maximum(free, 0, out=free)
        units = _units(columns, slots)
        if not self._required and not columns.stepped and int(units[0].max()) <= 1:
            # No min_unit or step_size forbids a part, so the order of the providers does not matter.
            most = largest_amount(free, units[1])
            return _Spread(most.sum(axis=0) >= amount, most > 0, np.zeros(trees, dtype=np.bool_))
        return self._in_order(amount, rows, free, units)

    def _in_order(self, amount: int, rows: Rows, free: Int64, units: Sequence[Int64]) -> "_Spread":
        trees = rows.shape[1]
        whole: Bools = fits(amount, 0, free, *units)
        order = np.argsort(-free, axis=0, kind="stable")
        sorted_free, min_unit, max_unit, step_size, fits_whole = (
            np.take_along_axis(column, order, axis=0) for column in (free, *units, whole)
        )
        gives: Bools = np.zeros(rows.shape, dtype=np.bool_)
        left: Int64 = np.full(trees, amount, dtype=np.int64)
        anywhere = fits_whole.any(axis=0)
        first = fits_whole.argmax(axis=0)
        for place in range(len(rows)):
            units = min_unit[place], max_unit[place], step_size[place]
            part: Int64 = largest_part(left, sorted_free[place], *units)
            part[anywhere] = 0
            gives[place] = np.greater(part, 0)
            left -= part
        gives[first[anywhere], np.flatnonzero(anywhere)] = True
        left[anywhere] = 0
        # Providers with equal free units are taken by uuid. That matters only if they differ in units or
        # traits.
        alike = np.ones((max(len(rows) - 1, 0), trees), dtype=np.bool_)
        for column in (min_unit, max_unit, step_size):
            alike &= column[1:] == column[:-1]
        for any_of in self._required:
            has = in_any(self._fleet.with_trait, any_of, rows.ravel()).reshape(rows.shape)
            has = np.take_along_axis(has, order, axis=0)
            alike &= has[1:] == has[:-1]
        tied: Bools = (sorted_free[1:] == sorted_free[:-1]) & np.greater(sorted_free[1:], 0)
        placed: Bools = np.zeros(rows.shape, dtype=np.bool_)
        np.put_along_axis(placed, order, gives, axis=0)
        unsure: Bools = np.logical_or.reduce(tied & ~alike, axis=0)
        return _Spread(left == 0, placed, unsure)


class _Spread(NamedTuple):
    """The split of one class in many trees.

    ``split``: the tree can split it, bool[trees]. ``gives``: the position gives a part,
    bool[positions, trees]. ``unsure``: the tree must be evaluated by itself, bool[trees].
    """

    split: Bools
    gives: Bools
    unsure: Bools


def _units(columns: InventoryColumns, slots: Rows) -> tuple[Int64, Int64, Int64]:
    """Return ``min_unit``, ``max_unit`` and ``step_size`` at some slots, 1 for slot -1."""
    columns_of = (columns.min_unit, columns.max_unit, columns.step_size)
    found = [column[slots].astype(np.int64) for column in columns_of]
    there = slots >= 0
    for column in found:
        column[~there] = 1
    return found[0], found[1], found[2]
