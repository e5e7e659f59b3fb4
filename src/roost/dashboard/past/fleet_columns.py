"""Amounts of all providers as of a version: the present ones, less the steps of all later commits.

Why no snapshots every few minutes: the steps of a day at 25 commits a second are six million additions, which
numpy makes in a tenth of a second. So each commit can be shown, and the index needs no state of the fleet.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from roost.dashboard.past.index_block import IndexBlock, Keys
from roost.dashboard.past.index_entries import NOBODY
from roost.dashboard.past.index_view import IndexView
from roost.fleet import Fleet
from roost.fleet.columns import Bools, Int64, Rows
from roost.fleet.fits import has_room

AMOUNTS = ("capacity", "used", "reserved", "total")


class ClassAmountColumns(NamedTuple):
    """Amounts of one resource class, int64[n] each, in units of the class."""

    capacity: Int64
    used: Int64
    reserved: Int64
    total: Int64


class PresentProviders(NamedTuple):
    """All providers of a fleet at a version, copied.

    ``keys``: uint64[n]. ``parents``: intp[n], places in ``keys``, -1 for roots. ``classes``: for each class
    the places of the providers that have it, and their amounts.
    """

    version: int
    keys: Keys
    parents: Rows
    classes: Mapping[str, tuple[Rows, ClassAmountColumns]]


class PastColumns:
    """All providers at a version, by ascending key.

    ``keys``: uint64[n]. ``existed``: bool[n], False for those that did not exist. ``roots``: intp[n], places
    in ``keys`` of the roots of their trees. ``classes``: amounts, of all providers.
    """

    def __init__(
        self, version: int, keys: Keys, existed: Bools, roots: Rows, classes: Mapping[str, ClassAmountColumns]
    ) -> None:
        self.version = version
        self.keys = keys
        self.existed = existed
        self.roots = roots
        self.classes = {name: each for name, each in classes.items() if any(column.any() for column in each)}
        self._trees: dict[str, ClassAmountColumns] = {}

    def places(self, keys: Keys) -> Rows:
        """Return the places of providers that existed: intp[len(keys)], -1 for others."""
        if not len(self.keys):
            return np.full(len(keys), -1, dtype=np.intp)
        found = np.searchsorted(self.keys, keys)
        found[found == len(self.keys)] = 0
        found[(self.keys[found] != keys) | ~self.existed[found]] = -1
        return found

    def trees(self, resource_class: str) -> ClassAmountColumns:
        """Return the amounts of a class in the tree of each root: int64[n], 0 for other providers.

        As in `TreeUses`, a tree has no capacity below 0.
        """
        found = self._trees.get(resource_class)
        if found is None:
            found = self._trees[resource_class] = self._summed(resource_class)
        return found

    def largest_free(self, resource_class: str) -> Int64:
        """Return the most units of a class that one provider of each root's tree has free: int64[n]."""
        amounts = self.classes.get(resource_class)
        found = np.zeros(len(self.keys), dtype=np.int64)
        if amounts is not None:
            free = amounts.capacity - amounts.used
            there = np.flatnonzero(has_room(1, free))
            np.maximum.at(found, self.roots[there], free[there])
        return found

    def _summed(self, resource_class: str) -> ClassAmountColumns:
        amounts = self.classes.get(resource_class)
        found = np.zeros((len(AMOUNTS), len(self.keys)), dtype=np.int64)
        if amounts is not None:
            for sums, column in zip(found, amounts, strict=True):
                there = np.flatnonzero(column)
                np.add.at(sums, self.roots[there], column[there])
        np.maximum(found[0], 0, out=found[0])
        return ClassAmountColumns(*found)


def present_providers(fleet: Fleet, key_by_row: Keys) -> PresentProviders:
    """Copy what a fleet has of all providers. ``key_by_row``: uint64[n_rows], the key of each row."""
    rows = fleet.rows()
    place = np.full(fleet.n_rows, -1, dtype=np.intp)
    place[rows] = np.arange(len(rows))
    above = fleet.parent[rows]
    parents = np.where(above >= 0, place[above], -1)
    classes = {}
    for name in fleet.inventoried_classes():
        columns = fleet.inventory_columns(name)
        n = columns.n
        fleet.meter.spend_rows(n)
        amounts = (columns.capacity, columns.used, columns.reserved, columns.total)
        classes[name] = (
            place[columns.row[:n]],
            ClassAmountColumns(*(each[:n].astype(np.int64) for each in amounts)),
        )
    return PresentProviders(fleet.version, key_by_row[rows], parents, classes)


def columns_at(present: PresentProviders, view: IndexView, version: int) -> PastColumns:
    """Return all providers at a version. The view must have the commits after it, to that of ``present``."""
    blocks = [block for block in view.after(version) if block.first <= present.version]
    parts = [(block, *_offsets(block, version, present.version)) for block in blocks]
    keys = _all_keys(present.keys, parts)
    place = np.searchsorted(keys, present.keys)
    existed, roots = _forest(present, keys, place, parts)
    names = list(dict.fromkeys((*present.classes, *(name for block in blocks for name in block.classes))))
    amounts = np.zeros((len(AMOUNTS), len(names), len(keys)), dtype=np.int64)
    for number, name in enumerate(names):
        if name in present.classes:
            places, now = present.classes[name]
            for column, each in zip(amounts[:, number], now, strict=True):
                column[place[places]] = each
    flat = amounts.reshape(len(AMOUNTS), -1)
    for block, first, end in parts:
        _undo(block, first, end, keys, names, flat)
    classes = {name: ClassAmountColumns(*amounts[:, number]) for number, name in enumerate(names)}
    return PastColumns(version, keys, existed, roots, classes)


_Part = tuple[IndexBlock, int, int]


def _offsets(block: IndexBlock, version: int, newest: int) -> tuple[int, int]:
    """Return the offsets of the commits of a block from the first one after a version to the newest."""
    return block.offset_after(version), min(block.last, newest) - block.first + 1


def _between(table: npt.NDArray[np.void], first: int, end: int) -> npt.NDArray[np.void]:
    """Return the entries of some commits. ``table``: in the order of commits."""
    bounds = np.searchsorted(table["offset"], np.array([first, end], dtype=np.uint32))
    return table[bounds[0] : bounds[1]]


def _all_keys(present: Keys, parts: Sequence[_Part]) -> Keys:
    """Return the keys of all providers that exist or are named by a step of the forest, ascending."""
    gone = [np.ascontiguousarray(_between(block.parents, first, end)["key"]) for block, first, end in parts]
    keys = np.sort(np.concatenate([present, *gone]))
    return keys[np.diff(keys, prepend=keys[:1] ^ np.uint64(1)) > 0] if len(keys) else keys


def _forest(present: PresentProviders, keys: Keys, place: Rows, parts: Sequence[_Part]) -> tuple[Bools, Rows]:
    """Return the providers that existed, and the root of each."""
    n = len(keys)
    existed = np.zeros(n, dtype=np.bool_)
    existed[place] = True
    above = np.arange(n)
    below = present.parents >= 0
    above[place[below]] = place[present.parents[below]]
    for block, first, end in reversed(parts):
        # Of several steps of a provider the first one counts: it is assigned last.
        steps = _between(block.parents, first, end)[::-1]
        if not len(steps):
            continue
        at = np.searchsorted(keys, steps["key"])
        existed[at] = steps["existed"]
        parent = np.searchsorted(keys, steps["parent"])
        above[at] = np.where(steps["parent"] == NOBODY, at, np.minimum(parent, n - 1))
    while not np.array_equal(further := above[above], above):
        above = further
    return existed, above


def _undo(
    block: IndexBlock, first: int, end: int, keys: Keys, names: Sequence[str], amounts: npt.NDArray[np.int64]
) -> None:
    """Take the steps of some commits of a block from the amounts: int64[4, classes of ``names`` * keys]."""
    place = np.searchsorted(keys, block.provider_keys)
    begin = np.array([names.index(name) * len(keys) for name in block.classes], dtype=np.intp)
    uses = _between(block.uses, first, end)
    if len(uses):
        at = begin[uses["resource_class"]] + place[uses["provider"]]
        # With steps of another type, or with gaps between them, this takes a hundred times as long.
        np.subtract.at(amounts[AMOUNTS.index("used")], at, uses["step"].astype(np.int64))
    inventories = _between(block.inventories, first, end)
    if len(inventories):
        at = begin[inventories["resource_class"]] + place[inventories["provider"]]
        for name in ("capacity", "reserved", "total"):
            np.subtract.at(amounts[AMOUNTS.index(name)], at, inventories[name].astype(np.int64))
