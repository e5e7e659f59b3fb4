"""The data of resource providers: inventories and use, traits and aggregates, by provider and by tree."""

from collections.abc import Iterable

import numpy as np

from roost.fleet.columns import Int32, Int64, Rows
from roost.fleet.inventory_columns import CAPACITY_LIMIT, InventoryColumns
from roost.fleet.inverted_index import InvertedIndex
from roost.fleet.provider_forest import ProviderForest
from roost.fleet.rowset import RowSet
from roost.model.inventory import Inventory
from roost.model.vocabulary import SHARING_TRAIT

_NO_COLUMNS = InventoryColumns()
_NO_ROWS = RowSet()
_FEW_TREES = 64
"""Trees whose amounts are added up one by one. To add up all takes 10 ms with a million rows."""
_EXACT = 2**53
"""Largest number up to which a float64 represents every whole number."""


class FleetData(ProviderForest):
    """All providers with inventories, use, traits and aggregates."""

    def __init__(self) -> None:
        super().__init__()
        self._inventories: dict[str, InventoryColumns] = {}
        self._traits = InvertedIndex()
        self._aggregates = InvertedIndex()

    def inventory_columns(self, resource_class: str) -> InventoryColumns:
        """Return inventories and use of a resource class; without slots if no provider has it."""
        return self._inventories.get(resource_class, _NO_COLUMNS)

    def inventoried_classes(self) -> list[str]:
        """Return the resource classes that some provider has inventory or use of, in no order."""
        return [name for name, columns in self._inventories.items() if columns.n]

    def inventories(self, row: int) -> dict[str, Inventory]:
        """Return a provider's inventories by resource class."""
        found = {}
        for name, columns in self._inventories.items():
            inventory = columns.inventory(row)
            if inventory is not None:
                found[name] = inventory
        return found

    def usages(self, row: int) -> dict[str, int]:
        """Return a provider's use of each resource class that it has inventory or use of."""
        return {
            name: columns.used.item(slot)
            for name, columns in self._inventories.items()
            if (slot := columns.slot(row)) >= 0
        }

    def tree_totals(self, resource_class: str, roots: Rows) -> tuple[Int64, Int64]:
        """Return capacity and use of a resource class, summed over each tree.

        Both int64[len(roots)], in units of the class, at most `CAPACITY_LIMIT`; 0 for a tree without it.
        """
        columns = self.inventory_columns(resource_class)
        if not columns.n:
            return np.zeros(len(roots), dtype=np.int64), np.zeros(len(roots), dtype=np.int64)
        if not self.has_trees:
            slots = columns.slots(roots)
            capacity, used = columns.capacity[slots], columns.used[slots]
            missing = slots < 0
            if missing.any():
                capacity[missing] = used[missing] = 0
            return capacity, used
        if len(roots) <= _FEW_TREES:
            totals = [self.totals_of_tree((resource_class,), root)[0] for root in roots.tolist()]
            capacity, used = np.array(totals, dtype=np.int64).reshape(-1, 2).T
            return capacity, used
        tree = self.root[columns.row[: columns.n]]
        capacity, used = (
            _sums(tree, column[: columns.n], self.n_rows)[roots]
            for column in (columns.capacity, columns.used)
        )
        return capacity, used

    def totals_of_tree(self, resource_classes: Iterable[str], root: int) -> list[tuple[int, int]]:
        """Return capacity and use of some resource classes, summed over one tree: see `tree_totals`."""
        rows = self.subtree(root)
        found = []
        for name in resource_classes:
            columns = self.inventory_columns(name)
            slots = [slot for row in rows if (slot := columns.slot(row)) >= 0]
            capacity = sum(map(columns.capacity.item, slots))
            found.append((min(capacity, CAPACITY_LIMIT), sum(map(columns.used.item, slots))))
        return found

    def with_trait(self, trait: str) -> RowSet:
        """Return the providers with a trait."""
        return self._traits.rows.get(trait, _NO_ROWS)

    def in_aggregate(self, aggregate: str) -> RowSet:
        """Return the providers in an aggregate."""
        return self._aggregates.rows.get(aggregate, _NO_ROWS)

    def sharing(self) -> RowSet:
        """Return the sharing providers. `roost.fleet.reach` tells which trees they serve."""
        return self.with_trait(SHARING_TRAIT)

    def traits_of(self, row: int) -> tuple[str, ...]:
        """Return a provider's traits, sorted."""
        return self._traits.names[row]

    def aggregates_of(self, row: int) -> tuple[str, ...]:
        """Return a provider's aggregates, sorted."""
        return self._aggregates.names[row]

    def hosts_of(self, rows: Iterable[int]) -> tuple[int, ...]:
        """Return the hosts of a consumer that takes from these providers: the rows of roots, ascending.

        A sharing provider stands for a host only if the consumer takes from sharing providers alone.
        """
        rows = tuple(rows)
        sharing = self.sharing()
        if len(sharing):
            rows = tuple(row for row in rows if row not in sharing) or rows
        if len(rows) == 1:
            return (self.root.item(rows[0]),)
        return tuple(sorted({self.root.item(row) for row in rows}))

    def _is_bare(self, row: int) -> bool:
        """Return whether a provider has no children, inventories, use, traits or aggregates.

        Other changes remove them before the provider is deleted, so that undoing those restores them.
        """
        return not (
            self.children(row)
            or self.traits_of(row)
            or self.aggregates_of(row)
            or any(columns.slot(row) >= 0 for columns in self._inventories.values())
        )

    def _grow(self, size: int) -> None:
        super()._grow(size)
        self._traits.grow(size)
        self._aggregates.grow(size)


def _sums(tree: Int32, amounts: Int64, n_rows: int) -> Int64:
    """Return the exact sum of amounts by tree, at most `CAPACITY_LIMIT`: int64[n_rows]."""
    if not len(amounts) or int(np.abs(amounts).max()) < _EXACT // len(amounts):
        return np.bincount(tree, weights=amounts, minlength=n_rows).astype(np.int64)
    # The upper and the lower half of each number add up exactly, each by itself.
    half = 31
    upper = np.bincount(tree, weights=amounts >> half, minlength=n_rows)
    lower = np.bincount(tree, weights=amounts & ((1 << half) - 1), minlength=n_rows)
    limit = CAPACITY_LIMIT >> half
    carried = upper + np.floor(lower / (1 << half))
    sums = (np.minimum(upper, limit).astype(np.int64) << half) + lower.astype(np.int64)
    sums[carried >= limit] = CAPACITY_LIMIT
    return sums
