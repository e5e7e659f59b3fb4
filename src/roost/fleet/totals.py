"""What whole trees have and use of a resource class, for weighing hosts."""

import numpy as np

from roost.fleet.columns import Int64, Rows
from roost.fleet.fleet import Fleet
from roost.fleet.inventory_columns import CAPACITY_LIMIT


def tree_totals(fleet: Fleet, resource_class: str, roots: Rows) -> tuple[Int64, Int64]:
    """Capacity and use of a class over each tree: int64[len(roots)] each, 0 where a tree has none of it."""
    stock = fleet.inventory_columns(resource_class)
    if not stock.n:
        return np.zeros(len(roots), dtype=np.int64), np.zeros(len(roots), dtype=np.int64)
    if not fleet.has_trees:
        slots = stock.slots(roots)
        capacity, used = stock.capacity[slots], stock.used[slots]
        missing = slots < 0
        if missing.any():
            capacity[missing] = used[missing] = 0
        return capacity, used
    tree = fleet.root[stock.row[: stock.n]]
    sums = []
    for column in (stock.capacity, stock.used):
        total = np.bincount(tree, weights=column[: stock.n], minlength=fleet.n_rows)
        sums.append(np.minimum(total[roots], CAPACITY_LIMIT).astype(np.int64))
    return sums[0], sums[1]
