"""Levels of hosts: the share of a resource class in use on each, as a small number for maps."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Int64, Rows
from roost.fleet.fits import has_room
from roost.fleet.fleet import Fleet
from roost.fleet.inventory_columns import CAPACITY_LIMIT

LEVELS: Final = 32
"""Levels of a map: they fit five bits of a byte, and a screen has no more shades that differ."""


NO_LEVEL: Final = LEVELS
"""The number in place of a level of a host without the resource class."""

Levels = npt.NDArray[np.uint8]


class TreeUses(NamedTuple):
    """Amounts of one resource class, summed over each tree of providers, in units of the class.

    ``roots``: intp[n], the rows of the trees' roots, ascending. All else: int64[n]. ``capacity`` is what may
    be allocated: total less reserved, times the allocation ratio; 0 for a tree without the class.
    """

    roots: Rows
    capacity: Int64
    used: Int64
    reserved: Int64
    total: Int64


class ClassAmounts(NamedTuple):
    """Amounts of one resource class in one tree, as `TreeUses` has them of all."""

    capacity: int
    used: int
    reserved: int
    total: int


def tree_uses(fleet: Fleet, resource_class: str) -> TreeUses:
    """Return the amounts of a resource class in each tree of the fleet.

    A sharing provider that is a root itself is a tree as well.
    """
    rows = fleet.rows()
    roots = rows[fleet.parent[rows] < 0]
    columns = fleet.inventory_columns(resource_class)
    fleet.meter.spend_rows(fleet.n_rows + columns.n)
    capacity, used = fleet.tree_totals(resource_class, roots)
    tree = fleet.root[columns.row[: columns.n]]
    # A sum of int32 over any number of rows of a fleet is exact in float64.
    reserved, total = (
        np.bincount(tree, weights=column[: columns.n], minlength=fleet.n_rows)[roots].astype(np.int64)
        for column in (columns.reserved, columns.total)
    )
    # An inventory may have a capacity below 0, which no user of a map expects.
    return TreeUses(roots, np.maximum(capacity, 0), used, reserved, total)


def largest_free(fleet: Fleet, resource_class: str) -> tuple[Rows, Int64]:
    """Return the roots of all trees, and the most free units of a class that one provider of each has.

    intp[n] and int64[n], in units of the class.
    """
    rows = fleet.rows()
    roots = rows[fleet.parent[rows] < 0]
    columns = fleet.inventory_columns(resource_class)
    fleet.meter.spend_rows(fleet.n_rows + columns.n)
    free = np.zeros(fleet.n_rows, dtype=np.int64)
    left = np.maximum(columns.capacity[: columns.n] - columns.used[: columns.n], 0)
    np.maximum.at(free, fleet.root[columns.row[: columns.n]], left)
    return roots, free[roots]


def amounts_of_tree(fleet: Fleet, root: int) -> dict[str, ClassAmounts]:
    """Return the amounts of each resource class of one tree, by class in order of name."""
    rows = fleet.subtree(root)
    classes = sorted(fleet.inventoried_classes())
    fleet.meter.spend(len(rows) * len(classes))
    found = {}
    for name in classes:
        columns = fleet.inventory_columns(name)
        slots = [slot for row in rows if (slot := columns.slot(row)) >= 0]
        if slots:
            every = (columns.capacity, columns.used, columns.reserved, columns.total)
            capacity, *others = (sum(map(column.item, slots)) for column in every)
            found[name] = ClassAmounts(min(max(capacity, 0), CAPACITY_LIMIT), *others)
    return found


def class_levels(capacity: Int64, used: Int64, most: int | None = None) -> Levels:
    """Return the level of each host by one resource class, `NO_LEVEL` without it: uint8[len(capacity)].

    ``most``: free units of the last level, and levels are free units; None: levels are shares in use.
    """
    if most is None:
        found = levels(capacity, used)
    else:
        found = levels(np.full(len(capacity), max(most, 1)), capacity - used)
    found[(capacity == 0) & (used == 0)] = NO_LEVEL
    return found


def levels(capacity: Int64, used: Int64, n: int = LEVELS) -> Levels:
    """Return the level of each host, 0 to ``n`` - 1: uint8[len(capacity)].

    Level 0 means that nothing is in use, and only that; ``n`` - 1 that all is, or more. Between them each
    level is an equal share. A host without capacity has level 0, or ``n`` - 1 if it has use all the same.
    ``capacity`` and ``used``: int64, parallel. ``n``: 3 to 256.
    """
    share = used / np.maximum(capacity, 1)
    found: Levels = np.clip(1 + np.floor(share * (n - 2)), 1, n - 2).astype(np.uint8)
    found[used <= 0] = 0
    found[(used > 0) & ~has_room(1, capacity - used)] = n - 1
    return found
