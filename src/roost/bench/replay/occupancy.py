"""Hosts that are in use, and the fewest that would do by their amounts alone."""

from typing import NamedTuple

import numpy as np

from roost.fleet import Fleet


class Occupancy(NamedTuple):
    """``in_use``: hosts on which something is allocated. ``fewest``: a lower bound for the hosts that could
    hold all that is in use; see `occupancy_of`."""

    in_use: int
    fewest: int


NOTHING_IN_USE = Occupancy(0, 0)


def occupancy_of(fleet: Fleet) -> Occupancy:
    """Return the hosts in use, a host being a provider tree.

    The bound: for each resource class, the largest hosts are taken until their capacities add up to what is
    in use of the class; the class that needs most hosts counts. Traits, groups, and the sizes of single
    instances, which fill no host to its last unit, are left out of account.
    """
    roots = np.unique(fleet.roots(fleet.rows()))
    occupied = np.zeros(len(roots), dtype=np.bool_)
    fewest = 0
    for name in fleet.inventoried_classes():
        columns = fleet.inventory_columns(name)
        # A provider with more reserved than it has takes nothing away from the others of its tree.
        capacity, used = np.zeros((2, fleet.n_rows), dtype=np.int64)
        tree = fleet.roots(columns.row[: columns.n].astype(np.intp))
        np.add.at(capacity, tree, np.maximum(columns.capacity[: columns.n], 0))
        np.add.at(used, tree, columns.used[: columns.n])
        capacity, used = capacity[roots], used[roots]
        occupied |= used > 0
        reached = np.cumsum(np.sort(capacity)[::-1])
        fewest = max(fewest, int(np.searchsorted(reached, used.sum())) + 1 if used.any() else 0)
    return Occupancy(int(occupied.sum()), min(fewest, len(roots)))
