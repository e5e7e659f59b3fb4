"""The fleet: every resource provider, in memory, at one version of the ledger.

Rows are the providers' numbers in the ledger's tables, so that every replica has the same rows. Changes
are the only way to alter a fleet, and every change can be undone.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from roost.fleet.columns import Bools, Float64, Int32, Int64, Rows, grown
from roost.fleet.errors import FleetError, Inconsistent, UnknownProvider
from roost.fleet.invalidation_log import InvalidationLog
from roost.fleet.inventory_columns import InventoryColumns
from roost.fleet.rowset import RowSet
from roost.model.allocation import Allocations
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    Change,
    GenerationChanged,
    InventoryChanged,
    ProviderChanged,
    ProviderFacts,
    ResourceClassChanged,
    TraitChanged,
    TraitsChanged,
    inverse,
)
from roost.model.inventory import Inventory
from roost.model.vocabulary import SHARING_TRAIT

_NO_COLUMNS = InventoryColumns()
_EMPTY_ROWS = RowSet()


class Fleet:
    """The whole inventory as columns, at ``version``.

    ``provider_set_version`` rises whenever a provider is created or deleted. ``invalidations`` tells caches
    which rows have changed.
    Columns by row: ``alive`` bool, ``parent`` and ``root`` int32 rows (-1: none), ``generation`` int64,
    ``changed_at`` float64 seconds since the epoch. By class: `stock`. By trait and aggregate: `RowSet`.
    """

    def __init__(self) -> None:
        self.version = 0
        self.provider_set_version = 0
        self.invalidations = InvalidationLog()
        self.n_rows = 0
        self.alive: Bools = np.zeros(0, dtype=np.bool_)
        self.parent: Int32 = np.zeros(0, dtype=np.int32)
        self.root: Int32 = np.zeros(0, dtype=np.int32)
        self.generation: Int64 = np.zeros(0, dtype=np.int64)
        self.changed_at: Float64 = np.zeros(0, dtype=np.float64)
        self.resource_classes: dict[str, int] = {}
        self.traits: dict[str, int] = {}
        self._uuid: list[str] = []
        self._name: list[str] = []
        self._traits_of: list[tuple[str, ...]] = []
        self._aggregates_of: list[tuple[str, ...]] = []
        self._row_of: dict[str, int] = {}
        self._row_named: dict[str, int] = {}
        self._children: dict[int, list[int]] = {}
        self._free_rows: list[int] = []
        self._inventories: dict[str, InventoryColumns] = {}
        self._with_trait: dict[str, RowSet] = {}
        self._in_aggregate: dict[str, RowSet] = {}
        self._same: dict[tuple[str, ...], tuple[str, ...]] = {}

    # What there is

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, uuid: str) -> bool:
        return uuid in self._row_of

    def row(self, uuid: str) -> int:
        """The row of a provider. Raises `UnknownProvider`."""
        try:
            return self._row_of[uuid]
        except KeyError:
            raise UnknownProvider(uuid) from None

    def row_named(self, name: str) -> int | None:
        """The row of the provider with this name, None if there is none."""
        return self._row_named.get(name)

    def uuid(self, row: int) -> str:
        """The uuid of the provider at a row."""
        return self._uuid[row]

    def name(self, row: int) -> str:
        """The name of the provider at a row."""
        return self._name[row]

    def facts(self, row: int) -> ProviderFacts:
        """Name, parent and generation of the provider at a row."""
        parent = self.parent.item(row)
        return ProviderFacts(
            self._name[row], self._uuid[parent] if parent >= 0 else None, self.generation.item(row)
        )

    def rows(self) -> Rows:
        """All rows that hold a provider, ascending."""
        return np.flatnonzero(self.alive[: self.n_rows])

    def uuids(self) -> Iterator[str]:
        """All providers' uuids."""
        return iter(self._row_of)

    def free_row(self) -> int:
        """The row that the next new provider takes."""
        return self._free_rows[-1] if self._free_rows else self.n_rows

    def children(self, row: int) -> Sequence[int]:
        """The rows right under a provider."""
        return self._children.get(row, ())

    def subtree(self, row: int) -> list[int]:
        """A provider's row and all rows below it, parents first."""
        found = [row]
        for parent in found:
            found.extend(self._children.get(parent, ()))
        return found

    def roots(self, rows: Rows) -> Rows:
        """The root of each row's tree: intp[len(rows)]."""
        return self.root[rows].astype(np.intp)

    @property
    def has_trees(self) -> bool:
        """Whether any provider has a parent."""
        return bool(self._children)

    def inventory_columns(self, resource_class: str) -> InventoryColumns:
        """Inventories and use of a class; empty if no provider has it."""
        return self._inventories.get(resource_class, _NO_COLUMNS)

    def inventoried_classes(self) -> list[str]:
        """The classes that some provider has, in no order."""
        return [name for name, stock in self._inventories.items() if stock.n]

    def with_trait(self, trait: str) -> RowSet:
        """The providers with a trait."""
        return self._with_trait.get(trait, _EMPTY_ROWS)

    def in_aggregate(self, aggregate: str) -> RowSet:
        """The providers in an aggregate."""
        return self._in_aggregate.get(aggregate, _EMPTY_ROWS)

    def sharing(self) -> RowSet:
        """The providers that share what they have with the trees in their aggregates."""
        return self.with_trait(SHARING_TRAIT)

    def traits_of(self, row: int) -> tuple[str, ...]:
        """A provider's traits, sorted."""
        return self._traits_of[row]

    def aggregates_of(self, row: int) -> tuple[str, ...]:
        """A provider's aggregates, sorted."""
        return self._aggregates_of[row]

    def inventories(self, row: int) -> dict[str, Inventory]:
        """A provider's inventories, by class."""
        found = {}
        for name, stock in self._inventories.items():
            inventory = stock.inventory(row)
            if inventory is not None:
                found[name] = inventory
        return found

    def usages(self, row: int) -> dict[str, int]:
        """A provider's use of each class that it has or that is allocated from it."""
        return {
            name: stock.used.item(slot)
            for name, stock in self._inventories.items()
            if (slot := stock.slot(row)) >= 0
        }

    def fork(self) -> "Fleet":
        """An independent fleet at the same version, for what-if."""
        other = Fleet.__new__(Fleet)
        other.__dict__.update(self.__dict__)
        other.invalidations = InvalidationLog()
        for name in ("alive", "parent", "root", "generation", "changed_at"):
            setattr(other, name, getattr(self, name).copy())
        for name in (
            "resource_classes", "traits", "_uuid", "_name", "_traits_of", "_aggregates_of",
            "_row_of", "_row_named", "_free_rows", "_same",
        ):  # fmt: skip
            setattr(other, name, getattr(self, name).copy())
        other._children = {row: list(rows) for row, rows in self._children.items()}
        other._inventories = {name: stock.copy() for name, stock in self._inventories.items()}
        other._with_trait = {name: rows.copy() for name, rows in self._with_trait.items()}
        other._in_aggregate = {name: rows.copy() for name, rows in self._in_aggregate.items()}
        return other

    def with_inventory_columns(self, resource_class: str, stock: InventoryColumns) -> "Fleet":
        """This fleet with a stock of one class in place of its own, for what-if: a view that shares all the
        rest, so neither may change while it is looked at."""
        other = Fleet.__new__(Fleet)
        other.__dict__.update(self.__dict__)
        other._inventories = {**self._inventories, resource_class: stock}
        return other

    # How it changes

    def advance(self, version: int, changes: Iterable[Change], at: float) -> None:
        """Apply one commit, or none of it: its changes, made at ``at`` (seconds since the epoch).

        Raises `Inconsistent` or `UnknownProvider` if it does not follow from the fleet as it is.
        """
        if version != self.version + 1:
            raise Inconsistent(f"commit {version} does not follow version {self.version}")
        applied: list[Change] = []
        try:
            for change in changes:
                self.apply(change)
                applied.append(change)
        except FleetError:
            self.undo(applied)
            raise
        self.settle(version, applied, at)

    def settle(self, version: int, changes: Iterable[Change], at: float) -> None:
        """Make changes that were applied last a commit, made at ``at`` (seconds since the epoch)."""
        for change in changes:
            uuid = getattr(change, "provider", None)
            if uuid is not None and uuid in self._row_of:
                self.changed_at[self._row_of[uuid]] = at
        self.version = version

    def undo(self, changes: Sequence[Change]) -> None:
        """Take back changes that were applied last, in the order they were applied."""
        for change in reversed(changes):
            self.apply(inverse(change))

    def apply(self, change: Change) -> None:
        """Apply one change, all of it or nothing.

        Raises `Inconsistent` if the fleet is not as the change says it was, `UnknownProvider` if the
        change names a provider that is not there.
        """
        match change:
            case AllocationsChanged():
                self._use(change.held, change.holds)
            case GenerationChanged():
                row = self.row(change.provider)
                _expect(f"generation of {change.provider}", self.generation.item(row), change.before)
                self.generation[row] = change.after
            case ProviderChanged():
                self._apply_provider(change)
            case InventoryChanged():
                row = self.row(change.provider)
                self.invalidations.append(row)
                _expect(f"inventory of {change.provider}", self.inventories(row), change.before)
                for name in change.before:
                    if name not in change.after:
                        self._inventories[name].remove(row)
                for name, inventory in change.after.items():
                    if change.before.get(name) != inventory:
                        self._inventories.setdefault(name, InventoryColumns()).put(row, inventory)
            case TraitsChanged():
                row = self.row(change.provider)
                self.invalidations.append(row)
                _expect(f"traits of {change.provider}", self._traits_of[row], change.before)
                self._traits_of[row] = self._intern(change.after)
                self._move(self._with_trait, row, change.before, change.after)
            case AggregatesChanged():
                row = self.row(change.provider)
                self.invalidations.append(row)
                _expect(f"aggregates of {change.provider}", self._aggregates_of[row], change.before)
                self._aggregates_of[row] = self._intern(change.after)
                self._move(self._in_aggregate, row, change.before, change.after)
            case ResourceClassChanged():
                _renumber(self.resource_classes, change)
            case TraitChanged():
                _renumber(self.traits, change)

    def _use(self, held: Allocations, holds: Allocations) -> None:
        """Give back what was held and take what is held now; what stays the same is not touched."""
        if not held:
            # A new consumer, as most are: taking more contradicts nothing.
            for row, resources in [(self.row(uuid), resources) for uuid, resources in holds.items()]:
                for name, amount in resources.items():
                    self._take(row, name, amount)
                self.invalidations.append(row)
            return
        difference: dict[tuple[int, str], int] = {}
        for uuid, resources in held.items():
            row = self.row(uuid)
            for name, amount in resources.items():
                used = self.inventory_columns(name).used_by(row)
                if used < amount:
                    raise Inconsistent(f"{uuid} has {used} {name} in use, of which {amount} shall be freed")
                difference[row, name] = -amount
        for uuid, resources in holds.items():
            row = self.row(uuid)
            for name, amount in resources.items():
                difference[row, name] = difference.get((row, name), 0) + amount
        for (row, name), amount in difference.items():
            if amount:
                self._take(row, name, amount)
                self.invalidations.append(row)

    def _take(self, row: int, resource_class: str, amount: int) -> None:
        stock = self._inventories.get(resource_class)
        if stock is None:
            stock = self._inventories[resource_class] = InventoryColumns()
        stock.use(row, amount)

    def _apply_provider(self, change: ProviderChanged) -> None:
        uuid, before, after = change.provider, change.before, change.after
        if before is None:
            if after is None:
                raise Inconsistent(f"resource provider {uuid} neither comes nor goes")
            self._create(change.row, uuid, after)
            return
        row = self.row(uuid)
        _expect(f"row of {uuid}", row, change.row)
        _expect(f"resource provider {uuid}", self.facts(row), before)
        if after is None:
            self._delete(row)
        else:
            self._update(row, after)

    def _create(self, row: int, uuid: str, facts: ProviderFacts) -> None:
        if uuid in self._row_of or facts.name in self._row_named:
            raise Inconsistent(f"resource provider {uuid} ({facts.name}) is there already")
        if row < self.n_rows and row not in self._free_rows:
            raise Inconsistent(f"row {row} of the new resource provider {uuid} is not free")
        parent = self._parent_row(facts)
        if row >= self.n_rows:
            # Rows between the end and the new one are free: a load meets the gaps of deleted providers.
            self._free_rows[:0] = range(row - 1, self.n_rows - 1, -1)
            self._grow(row + 1)
        elif self._free_rows[-1] == row:
            self._free_rows.pop()
        else:
            self._free_rows.remove(row)
        self.provider_set_version += 1
        self.alive[row] = True
        self._uuid[row] = uuid
        self._row_of[uuid] = row
        self._traits_of[row] = self._aggregates_of[row] = ()
        self._name[row] = facts.name
        self._row_named[facts.name] = row
        self.generation[row] = facts.generation
        self._hang(row, parent)

    def _update(self, row: int, facts: ProviderFacts) -> None:
        renamed = facts.name != self._name[row]
        if renamed and facts.name in self._row_named:
            raise Inconsistent(f"another resource provider is named {facts.name}")
        parent = above = self._parent_row(facts)
        while above >= 0:
            if above == row:
                raise Inconsistent(f"resource provider {self._uuid[row]} would be below itself")
            above = self.parent.item(above)
        self.invalidations.append(row)
        if renamed:
            del self._row_named[self._name[row]]
            self._name[row] = facts.name
            self._row_named[facts.name] = row
        self.generation[row] = facts.generation
        if parent != self.parent[row]:
            self._unhang(row)
            self._hang(row, parent)

    def _delete(self, row: int) -> None:
        uuid = self._uuid[row]
        # What a provider has is taken from it first, by changes of their own: so that undoing gives it back.
        if (
            self._children.get(row)
            or self._traits_of[row]
            or self._aggregates_of[row]
            or any(stock.slot(row) >= 0 for stock in self._inventories.values())
        ):
            raise Inconsistent(f"resource provider {uuid} still has children, inventory or use")
        self._unhang(row)
        self.invalidations.append(row)
        self.provider_set_version += 1
        self.alive[row] = False
        del self._row_of[uuid]
        del self._row_named[self._name[row]]
        self._uuid[row] = self._name[row] = ""
        self._free_rows.append(row)
        self._free_rows.sort(reverse=True)

    def _parent_row(self, facts: ProviderFacts) -> int:
        return self.row(facts.parent) if facts.parent is not None else -1

    def _hang(self, row: int, parent: int) -> None:
        self.parent[row] = parent
        if parent >= 0:
            self._children.setdefault(parent, []).append(row)
        root = self.root[parent] if parent >= 0 else row
        for below in self.subtree(row):
            self.root[below] = root
            self.invalidations.append(below)

    def _unhang(self, row: int) -> None:
        parent = self.parent.item(row)
        if parent >= 0:
            self.invalidations.append(parent)
            siblings = self._children[parent]
            siblings.remove(row)
            if not siblings:
                del self._children[parent]

    def _move(self, index: dict[str, RowSet], row: int, before: Iterable[str], after: Iterable[str]) -> None:
        kept = set(after)
        for name in before:
            if name not in kept:
                index[name].discard(row)
                if not len(index[name]):
                    del index[name]
        for name in kept.difference(before):
            if name not in index:
                index[name] = RowSet()
            index[name].add(row, self.n_rows)

    def _intern(self, names: Iterable[str]) -> tuple[str, ...]:
        """Equal tuples of names kept once: most hosts of a fleet have the same traits."""
        names = tuple(names)
        return self._same.setdefault(names, names)

    def _grow(self, size: int) -> None:
        self.alive = grown(self.alive, size, False)
        self.parent = grown(self.parent, size, -1)
        self.root = grown(self.root, size, -1)
        self.generation = grown(self.generation, size, 0)
        self.changed_at = grown(self.changed_at, size, 0.0)
        missing = size - self.n_rows
        self._uuid.extend([""] * missing)
        self._name.extend([""] * missing)
        self._traits_of.extend([()] * missing)
        self._aggregates_of.extend([()] * missing)
        self.n_rows = size


def _renumber(ids: dict[str, int], change: ResourceClassChanged | TraitChanged) -> None:
    _expect(f"id of {change.name}", ids.get(change.name), change.before)
    if change.after is not None:
        ids[change.name] = change.after
    elif change.before is not None:
        del ids[change.name]


def _expect(what: str, is_now: object, was_said: object) -> None:
    if is_now != was_said:
        raise Inconsistent(f"{what} is {is_now}, not {was_said}")
