"""Utilisation: the capacity and use of each resource class, and the fullest providers."""

from typing import NamedTuple

import numpy as np

from roost.fleet.columns import Float64, Int64
from roost.fleet.fleet import Fleet


class ClassUse(NamedTuple):
    """Capacity and use of a resource class, summed over all providers, in units of the class."""

    resource_class: str
    providers: int
    capacity: int
    used: int


_SORTED = 4
"""Units of work to sort one provider by its name."""


class FullProvider(NamedTuple):
    """A provider, and its resource class with the largest share of capacity in use.

    ``row``: the provider's row. ``share``: used divided by capacity; more than 1 if it is oversubscribed.
    """

    row: int
    resource_class: str
    capacity: int
    used: int
    share: float


def class_uses(fleet: Fleet) -> list[ClassUse]:
    """Return the capacity and use of each class of which a provider has an inventory, in order of name."""
    found = []
    for name in sorted(fleet.inventoried_classes()):
        columns = fleet.inventory_columns(name)
        fleet.meter.spend_rows(columns.n)
        # An inventory may have a capacity below 0, which takes nothing away from others.
        capacity = int(np.maximum(columns.capacity[: columns.n], 0).sum())
        found.append(ClassUse(name, columns.n, capacity, int(columns.used[: columns.n].sum())))
    return found


def uses_of_groups(fleet: Fleet, group: Int64, n_groups: int) -> dict[str, tuple[Int64, Int64]]:
    """Return the capacity and use of each class in groups of trees, by class, both int64[n_groups].

    ``group``: by row, the group of the tree whose root the row is: 0 to ``n_groups`` - 1, or -1 for none.
    """
    found = {}
    for name in sorted(fleet.inventoried_classes()):
        columns = fleet.inventory_columns(name)
        groups = group[fleet.roots(columns.row[: columns.n].astype(np.intp))]
        there = groups >= 0
        capacity = np.zeros(n_groups, dtype=np.int64)
        used = np.zeros(n_groups, dtype=np.int64)
        np.add.at(capacity, groups[there], np.maximum(columns.capacity[: columns.n][there], 0))
        np.add.at(used, groups[there], columns.used[: columns.n][there])
        found[name] = capacity, used
    return found


def fullest_providers(fleet: Fleet, most: int) -> list[FullProvider]:
    """Return the ``most`` providers with the largest share of a class in use, fullest first, then by name."""
    classes = sorted(fleet.inventoried_classes())
    best: Float64 = np.full(fleet.n_rows, -1.0)
    of_class = np.zeros(fleet.n_rows, dtype=np.intp)
    for number, name in enumerate(classes):
        columns = fleet.inventory_columns(name)
        fleet.meter.spend_rows(4 * columns.n)
        rows, capacity = columns.row[: columns.n], columns.capacity[: columns.n]
        # Without capacity, any use is a share of 1 or more.
        share = columns.used[: columns.n] / np.maximum(capacity, 1)
        fuller = share > best[rows]
        best[rows[fuller]] = share[fuller]
        of_class[rows[fuller]] = number
    full = np.flatnonzero(best > 0)
    if len(full) > most > 0:
        # Of equally full ones all are kept until they are sorted by name.
        full = full[best[full] >= np.partition(best[full], len(full) - most)[len(full) - most]]
    fleet.meter.spend(_SORTED * len(full))
    ordered = sorted(full.tolist(), key=lambda row: (-best.item(row), fleet.name(row)))[:most]
    return [_full(fleet, row, classes[of_class.item(row)], best.item(row)) for row in ordered]


def _full(fleet: Fleet, row: int, name: str, share: float) -> FullProvider:
    columns = fleet.inventory_columns(name)
    slot = columns.slot(row)
    return FullProvider(row, name, columns.capacity.item(slot), columns.used.item(slot), share)
