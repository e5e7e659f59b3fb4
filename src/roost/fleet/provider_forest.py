"""Resource providers and the trees that they form, as columns.

Each provider has a row: its primary key in the ledger's tables, so that all replicas use the same rows. The
row of a deleted provider is free and is used again.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Bools, Float64, Int32, Int64, Rows, grown
from roost.fleet.errors import Inconsistent, ProviderNotFound
from roost.fleet.invalidation_log import InvalidationLog
from roost.model.change import ProviderFacts

_MAX_DOUBLINGS = 64
"""Most passes over all rows to find the roots. Each doubles the depth covered; no tree is 2**64 deep."""


class ProviderColumns(NamedTuple):
    """Providers to load, as parallel columns by ascending row. ``parents`` are rows, -1 for roots."""

    rows: Rows
    uuids: Sequence[str]
    names: Sequence[str]
    parents: Int32
    generations: Int64
    changed_at: Float64


class ProviderForest:
    """All resource providers: identity, generation and place in a tree.

    Columns by row, ``n_rows`` of them in use: ``alive`` bool, ``parent`` and ``root`` int32 rows (-1: none),
    ``generation`` int64, ``changed_at`` float64 seconds since the epoch. ``provider_set_version`` rises
    whenever a provider is created or deleted. ``invalidations`` has the rows that have changed, for caches;
    ``reshaped`` those of them that have changed in anything but amounts: place in a tree, classes, traits,
    aggregates.
    """

    def __init__(self) -> None:
        self.provider_set_version = 0
        self.invalidations = InvalidationLog()
        self.reshaped = InvalidationLog()
        self.n_rows = 0
        self.alive: Bools = np.zeros(0, dtype=np.bool_)
        self.parent: Int32 = np.zeros(0, dtype=np.int32)
        self.root: Int32 = np.zeros(0, dtype=np.int32)
        self.generation: Int64 = np.zeros(0, dtype=np.int64)
        self.changed_at: Float64 = np.zeros(0, dtype=np.float64)
        self._uuid: list[str] = []
        self._name: list[str] = []
        self._row_of: dict[str, int] = {}
        self._row_named: dict[str, int] = {}
        self._children: dict[int, list[int]] = {}
        self._free_rows: list[int] = []

    # Lookups

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, uuid: str) -> bool:
        return uuid in self._row_of

    def row(self, uuid: str) -> int:
        """Return the row of a provider.

        Raises:
            ProviderNotFound: no provider has this uuid.
        """
        try:
            return self._row_of[uuid]
        except KeyError:
            raise ProviderNotFound(uuid) from None

    def find_row(self, uuid: str) -> int:
        """Return the row of a provider, -1 if no provider has this uuid."""
        return self._row_of.get(uuid, -1)

    def row_named(self, name: str) -> int | None:
        """Return the row of the provider with this name, None if there is none."""
        return self._row_named.get(name)

    def uuid(self, row: int) -> str:
        """Return the uuid of the provider at a row."""
        return self._uuid[row]

    def name(self, row: int) -> str:
        """Return the name of the provider at a row."""
        return self._name[row]

    def facts(self, row: int) -> ProviderFacts:
        """Name, parent and generation of the provider at a row."""
        parent = self.parent.item(row)
        return ProviderFacts(
            self._name[row], self._uuid[parent] if parent >= 0 else None, self.generation.item(row)
        )

    def rows(self) -> Rows:
        """Return the rows of all providers, ascending: intp[len(self)]."""
        return np.flatnonzero(self.alive[: self.n_rows])

    def uuids(self) -> Iterator[str]:
        """Return the uuids of all providers, in no order."""
        return iter(self._row_of)

    def free_row(self) -> int:
        """Return the row that the next new provider takes."""
        return self._free_rows[-1] if self._free_rows else self.n_rows

    @property
    def has_trees(self) -> bool:
        """True if any provider has a parent."""
        return bool(self._children)

    def children(self, row: int) -> Sequence[int]:
        """Return the rows of a provider's children."""
        return self._children.get(row, ())

    def subtree(self, row: int) -> list[int]:
        """Return a provider's row and the rows of all its descendants, parents first."""
        found = [row]
        for parent in found:
            found.extend(self._children.get(parent, ()))
        return found

    def roots(self, rows: Rows) -> Rows:
        """Return the root of each row's tree: intp[len(rows)]."""
        return self.root[rows].astype(np.intp)

    # Changes

    def _load_providers(self, columns: ProviderColumns) -> None:
        """Fill an empty forest. Raises `Inconsistent` for a provider that is its own ancestor."""
        rows, parents = columns.rows, columns.parents
        if not len(rows):
            return
        self._grow(int(rows[-1]) + 1)
        listed = rows.tolist()
        if len(listed) == self.n_rows:
            self._uuid, self._name = list(columns.uuids), list(columns.names)
        else:
            for row, uuid, name in zip(listed, columns.uuids, columns.names, strict=True):
                self._uuid[row], self._name[row] = uuid, name
            free = np.ones(self.n_rows, dtype=np.bool_)
            free[rows] = False
            self._free_rows = np.flatnonzero(free)[::-1].tolist()
        self._row_of = dict(zip(columns.uuids, listed, strict=True))
        self._row_named = dict(zip(columns.names, listed, strict=True))
        self.provider_set_version = len(listed)
        self.alive[rows] = True
        self.generation[rows] = columns.generations
        self.changed_at[rows] = columns.changed_at
        self.parent[rows] = parents
        self.root[rows] = self._find_roots(rows)
        below = np.flatnonzero(parents >= 0)
        for row, parent in zip(rows[below].tolist(), parents[below].tolist(), strict=True):
            self._children.setdefault(parent, []).append(row)

    def _find_roots(self, rows: Rows) -> npt.NDArray[np.integer]:
        """Return the root of each row, from ``parent`` alone, by pointer doubling."""
        above = np.where(self.parent >= 0, self.parent, np.arange(len(self.parent), dtype=np.int32))
        for _ in range(_MAX_DOUBLINGS):
            further = above[above]
            if np.array_equal(further, above):
                break
            above = further
        roots = above[rows]
        in_circles = rows[self.parent[roots] >= 0]
        if len(in_circles):
            raise Inconsistent(
                f"resource provider {self._uuid[in_circles.item(0)]} would be its own ancestor"
            )
        return roots

    def _create(self, row: int, uuid: str, facts: ProviderFacts) -> None:
        if uuid in self._row_of or facts.name in self._row_named:
            raise Inconsistent(f"resource provider {uuid} ({facts.name}) exists already")
        if row < self.n_rows and row not in self._free_rows:
            raise Inconsistent(f"row {row} of the new resource provider {uuid} is not free")
        parent = self._parent_row(facts)
        if row >= self.n_rows:
            # The skipped rows become free. They belonged to providers that were deleted before this fleet was
            # loaded.
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
        self._name[row] = facts.name
        self._row_named[facts.name] = row
        self.generation[row] = facts.generation
        self._attach(row, parent)

    def _update(self, row: int, facts: ProviderFacts) -> None:
        renamed = facts.name != self._name[row]
        if renamed and facts.name in self._row_named:
            raise Inconsistent(f"another resource provider is named {facts.name}")
        parent = ancestor = self._parent_row(facts)
        while ancestor >= 0:
            if ancestor == row:
                raise Inconsistent(f"resource provider {self._uuid[row]} would be its own ancestor")
            ancestor = self.parent.item(ancestor)
        self._reshape(row)
        if renamed:
            del self._row_named[self._name[row]]
            self._name[row] = facts.name
            self._row_named[facts.name] = row
        self.generation[row] = facts.generation
        if parent != self.parent[row]:
            self._detach(row)
            self._attach(row, parent)

    def _delete(self, row: int) -> None:
        self._detach(row)
        self._reshape(row)
        self.provider_set_version += 1
        self.alive[row] = False
        del self._row_of[self._uuid[row]]
        del self._row_named[self._name[row]]
        self._uuid[row] = self._name[row] = ""
        self._free_rows.append(row)
        self._free_rows.sort(reverse=True)

    def _reshape(self, row: int) -> None:
        """Record that a row has changed in more than amounts."""
        self.invalidations.append(row)
        self.reshaped.append(row)

    def _parent_row(self, facts: ProviderFacts) -> int:
        return self.row(facts.parent) if facts.parent is not None else -1

    def _attach(self, row: int, parent: int) -> None:
        """Make a subtree a child of ``parent``, or a separate tree if ``parent`` is -1."""
        self.parent[row] = parent
        if parent >= 0:
            self._children.setdefault(parent, []).append(row)
        root = self.root[parent] if parent >= 0 else row
        for below in self.subtree(row):
            self.root[below] = root
            self._reshape(below)

    def _detach(self, row: int) -> None:
        """Remove a provider from its parent's children. `_attach` sets the new parent and root."""
        parent = self.parent.item(row)
        if parent >= 0:
            self._reshape(parent)
            siblings = self._children[parent]
            siblings.remove(row)
            if not siblings:
                del self._children[parent]

    def _grow(self, size: int) -> None:
        """Make room for ``size`` rows."""
        self.alive = grown(self.alive, size, False)
        self.parent = grown(self.parent, size, -1)
        self.root = grown(self.root, size, -1)
        self.generation = grown(self.generation, size, 0)
        self.changed_at = grown(self.changed_at, size, 0.0)
        missing = size - self.n_rows
        self._uuid.extend([""] * missing)
        self._name.extend([""] * missing)
        self.n_rows = size

    def _copy(self) -> Self:
        """Return an independent copy, with an empty invalidation log."""
        other = self._shallow_copy()
        other.invalidations = InvalidationLog()
        other.reshaped = InvalidationLog()
        for name in (
            "alive", "parent", "root", "generation", "changed_at",
            "_uuid", "_name", "_row_of", "_row_named", "_free_rows",
        ):  # fmt: skip
            setattr(other, name, getattr(self, name).copy())
        other._children = {row: list(children) for row, children in self._children.items()}
        return other

    def _shallow_copy(self) -> Self:
        """Return a forest that shares everything with this one."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other
