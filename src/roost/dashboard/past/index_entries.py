"""Entries of the index: the content of commits, as tables that need no state of the fleet to be made.

An entry names providers and consumers by a key, the first 64 bits of a hash of the uuid. So the entries of a
commit follow from its changes alone, and commits are indexed in any order.
"""

from enum import IntFlag
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from roost.fleet.inventory_columns import CAPACITY_LIMIT
from roost.ledger.feed import Commit, decode_changes
from roost.model.allocation import Allocations
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    Change,
    GenerationChanged,
    InventoryChanged,
    ProviderChanged,
    TraitsChanged,
)
from roost.model.inventory import Inventory

Table = npt.NDArray[np.void]
"""An array of records, one for each entry."""

NOBODY: Final = 0
"""The key of no provider and of no consumer."""


class Touch(IntFlag):
    """The parts of a provider that a commit changes."""

    FACTS = 1
    """It was created, deleted, renamed or moved."""
    GENERATION = 2
    INVENTORY = 4
    TRAITS = 8
    AGGREGATES = 16
    CHILD = 32
    """A child of it was deleted or moved to another parent."""
    USE = 64
    """The allocations of a consumer changed that holds something of it, before or afterwards."""
    HELD = 128
    """That consumer held something of it before."""


COMMITS: Final = np.dtype([("seq", "i8"), ("at", "f8"), ("created", "i4"), ("ended", "i4")])
"""Commits. ``at``: seconds since the epoch. ``created``, ``ended``: consumers that came and went."""

PROVIDERS: Final = np.dtype([("seq", "i8"), ("key", "u8"), ("touch", "u1"), ("consumer", "u8")])
"""Commits that touch a provider. Each consumer whose holdings of it change has an entry of its own."""

CONSUMERS: Final = np.dtype([("seq", "i8"), ("key", "u8")])
"""Commits that change a consumer."""

USES: Final = np.dtype([("seq", "i8"), ("key", "u8"), ("resource_class", "i4"), ("step", "i8")])
"""Amounts of a class by which the use of a provider rises."""

INVENTORIES: Final = np.dtype(
    [
        ("seq", "i8"),
        ("key", "u8"),
        ("resource_class", "i4"),
        *((each, "i8") for each in ("capacity", "reserved", "total")),
    ]
)
"""Amounts by which the inventory of a provider rises: differences modulo 2**64."""

PARENTS: Final = np.dtype([("seq", "i8"), ("key", "u8"), ("parent", "u8"), ("existed", "?")])
"""Providers that are created, deleted or moved: whether one existed before, and its parent before."""


class IndexEntries(NamedTuple):
    """The entries of consecutive commits, each table in the order of commits.

    ``classes``: the names of resource classes, to whose indexes ``resource_class`` refers.
    """

    commits: Table
    providers: Table
    consumers: Table
    uses: Table
    inventories: Table
    parents: Table
    classes: tuple[str, ...]


TYPES: Final = (COMMITS, PROVIDERS, CONSUMERS, USES, INVENTORIES, PARENTS)
"""The types of the tables of `IndexEntries`."""


def key_of(uuid: str) -> int:
    """Return the key of a provider or consumer."""
    return int.from_bytes(blake2b(uuid.encode(), digest_size=8).digest(), "little") or 1


def joined(parts: "list[IndexEntries]") -> IndexEntries:
    """Return the entries of several ranges of commits that follow one another."""
    classes = list(dict.fromkeys(name for part in parts for name in part.classes))
    tables: list[Any] = [[] for _ in TYPES]
    for part in parts:
        numbers = np.array([classes.index(name) for name in part.classes], np.int32)
        for table, found in zip(part[:-1], tables, strict=True):
            if "resource_class" in (table.dtype.names or ()):
                table = table.copy()
                table["resource_class"] = numbers[table["resource_class"]]
            found.append(table)
    return IndexEntries._make((*(np.concatenate(each) for each in tables), tuple(classes)))


class EntryCollector:
    """Makes the entries of commits, one commit after another."""

    def __init__(self) -> None:
        self._keys: dict[str, int] = {}
        self._begin()

    def __len__(self) -> int:
        return len(self._commits)

    def take(self) -> IndexEntries:
        """Return the entries since the last call."""
        rows = (
            self._commits, self._providers, self._consumers, self._uses, self._inventories, self._parents
        )  # fmt: skip
        tables = (np.array(each, dtype) for each, dtype in zip(rows, TYPES, strict=True))
        found = IndexEntries._make((*tables, tuple(self._classes)))
        self._begin()
        return found

    def add(self, commit: Commit) -> None:
        """Add the entries of the next commit. Raises: `msgspec.MsgspecError` if it cannot be decoded."""
        seq = commit.seq
        holdings: dict[str, list[AllocationsChanged]] = {}
        facts: dict[str, list[ProviderChanged]] = {}
        inventories: dict[str, list[InventoryChanged]] = {}
        touched: dict[str, int] = {}
        for change in decode_changes(commit.changes):
            if isinstance(change, AllocationsChanged):
                holdings.setdefault(change.consumer, []).append(change)
                continue
            touch = _TOUCHES.get(type(change))
            if touch is None:
                continue
            uuid: str = change.provider  # type: ignore[union-attr]
            touched[uuid] = touched.get(uuid, 0) | touch
            if isinstance(change, ProviderChanged):
                facts.setdefault(uuid, []).append(change)
            elif isinstance(change, InventoryChanged):
                inventories.setdefault(uuid, []).append(change)
        created = ended = 0
        for uuid, of_consumer in holdings.items():
            begin, end = of_consumer[0], of_consumer[-1]
            created += begin.before is None and end.after is not None
            ended += begin.before is not None and end.after is None
            self._add_consumer(seq, uuid, begin.held, end.holds, touched)
        for uuid, of_provider in facts.items():
            self._add_facts(seq, uuid, of_provider[0], of_provider[-1], touched)
        for uuid, of_inventory in inventories.items():
            self._add_inventory(seq, uuid, of_inventory[0].before, of_inventory[-1].after)
        self._providers += [(seq, self._key(uuid), touch, NOBODY) for uuid, touch in touched.items()]
        self._commits.append((seq, commit.at, created, ended))

    def _begin(self) -> None:
        self._classes: dict[str, int] = {}
        self._commits: list[tuple[int, float, int, int]] = []
        self._providers: list[tuple[int, int, int, int]] = []
        self._consumers: list[tuple[int, int]] = []
        self._uses: list[tuple[int, int, int, int]] = []
        self._inventories: list[tuple[int, int, int, int, int, int]] = []
        self._parents: list[tuple[int, int, int, bool]] = []
        if len(self._keys) > _MOST_KEYS:
            self._keys.clear()

    def _key(self, provider: str) -> int:
        key = self._keys.get(provider)
        if key is None:
            key = self._keys[provider] = key_of(provider)
        return key

    def _class(self, name: str) -> int:
        return self._classes.setdefault(name, len(self._classes))

    def _add_consumer(
        self, seq: int, uuid: str, held: Allocations, holds: Allocations, touched: dict[str, int]
    ) -> None:
        consumer = key_of(uuid)
        self._consumers.append((seq, consumer))
        for provider in held | holds:
            key = self._key(provider)
            had, has = held.get(provider), holds.get(provider, {})
            touch = touched.pop(provider, 0) | (_USE if had is None else _HELD)
            self._providers.append((seq, key, touch, consumer))
            for name in has if had is None else had | has:
                step = has.get(name, 0) - (had or {}).get(name, 0)
                if step:
                    self._uses.append((seq, key, self._class(name), step))

    def _add_facts(
        self, seq: int, uuid: str, begin: ProviderChanged, end: ProviderChanged, touched: dict[str, int]
    ) -> None:
        before, after = begin.before, end.after
        parent = None if before is None else before.parent
        key = NOBODY if parent is None else self._key(parent)
        self._parents.append((seq, self._key(uuid), key, before is not None))
        if parent is not None and (after is None or after.parent != parent):
            touched[parent] = touched.get(parent, 0) | Touch.CHILD

    def _add_inventory(
        self, seq: int, uuid: str, had: dict[str, Inventory], has: dict[str, Inventory]
    ) -> None:
        for name in had | has:
            before, after = _amounts(had.get(name)), _amounts(has.get(name))
            if before != after:
                steps = (_wrapped(now - then) for then, now in zip(before, after, strict=True))
                self._inventories.append((seq, self._key(uuid), self._class(name), *steps))  # type: ignore[arg-type]


_USE: Final = int(Touch.USE)
_HELD: Final = int(Touch.USE | Touch.HELD)
_MOST_KEYS: Final = 2_000_000
"""Keys of providers that a collector remembers."""

_TOUCHES: Final[dict[type[Change], int]] = {
    ProviderChanged: int(Touch.FACTS | Touch.GENERATION),
    GenerationChanged: int(Touch.GENERATION),
    InventoryChanged: int(Touch.INVENTORY),
    TraitsChanged: int(Touch.TRAITS),
    AggregatesChanged: int(Touch.AGGREGATES),
}


def _amounts(inventory: Inventory | None) -> tuple[int, int, int]:
    """Return capacity, reserved and total as the columns of a fleet have them."""
    if inventory is None:
        return 0, 0, 0
    capacity = max(min(inventory.capacity, CAPACITY_LIMIT), -CAPACITY_LIMIT)
    return capacity, inventory.reserved, inventory.total


def _wrapped(step: int) -> int:
    """Return a difference modulo 2**64, as numpy adds: two capacities may differ by 2**63."""
    return (step + 2**63) % 2**64 - 2**63
