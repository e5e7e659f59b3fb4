"""One provider of a tree that a driver changes, and what it has said of it."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, NamedTuple

import msgspec

from roost.model.inventory import Inventory

_FIELDS = frozenset(Inventory.__struct_fields__)

Record = Mapping[str, Any]
"""Some fields of an `Inventory`; ``total`` at least."""

Records = Mapping[str, Inventory | Record]
"""An inventory or a record of each resource class."""


class ProviderData(NamedTuple):
    """A copy of one provider. ``parent_uuid`` is None for a root, ``generation`` if it is not known.

    ``resources`` are the things by which a driver keeps units of a class apart, such as persistent memories.
    """

    uuid: str
    name: str
    generation: int | None
    parent_uuid: str | None
    inventory: dict[str, dict[str, Any]]
    traits: set[str]
    aggregates: set[str]
    resources: dict[str, set[Any]]


class ToldProvider(NamedTuple):
    """What a driver has said of one provider since its tree was made; None for what it did not speak of.

    ``is_placed``: it said where the provider is, by making or moving it. ``fields``: those of each record of
    the inventory that it named; the others have their defaults.
    """

    uuid: str
    name: str
    parent: str | None
    is_placed: bool
    inventory: dict[str, Inventory] | None
    fields: dict[str, frozenset[str]]
    traits: frozenset[str] | None
    aggregates: frozenset[str] | None


@dataclass(slots=True, eq=False)
class TreeProvider:
    """One provider in a tree, with those right below it by uuid.

    ``told_inventory``: the records that the driver has told, None if it told none.
    """

    uuid: str
    name: str
    generation: int | None
    parent_uuid: str | None
    children: dict[str, "TreeProvider"] = field(default_factory=dict)
    inventory: dict[str, dict[str, Any]] = field(default_factory=dict)
    traits: set[str] = field(default_factory=set)
    aggregates: set[str] = field(default_factory=set)
    resources: dict[str, set[Any]] = field(default_factory=dict)
    is_placed: bool = False
    told_inventory: dict[str, dict[str, Any]] | None = None
    tells_traits: bool = False
    tells_aggregates: bool = False

    def walk(self) -> Iterator["TreeProvider"]:
        """This provider and all below it, each after its parent."""
        # A loop, as a tree may be deeper than Python's stack.
        left = [self]
        while left:
            provider = left.pop()
            yield provider
            left += reversed(provider.children.values())

    def data(self) -> ProviderData:
        """A copy of the provider as it is now."""
        return ProviderData(
            self.uuid,
            self.name,
            self.generation,
            self.parent_uuid,
            copy.deepcopy(self.inventory),
            set(self.traits),
            set(self.aggregates),
            copy.deepcopy(self.resources),
        )

    def told(self) -> ToldProvider:
        """What the driver has said. Raises `msgspec.ValidationError` for a record that is no inventory."""
        records = self.told_inventory
        return ToldProvider(
            self.uuid,
            self.name,
            self.parent_uuid,
            self.is_placed,
            None if records is None else msgspec.convert(records, dict[str, Inventory]),
            {name: _FIELDS.intersection(record) for name, record in (records or {}).items()},
            frozenset(self.traits) if self.tells_traits else None,
            frozenset(self.aggregates) if self.tells_aggregates else None,
        )


def records_of(inventory: Records) -> dict[str, dict[str, Any]]:
    """A copy of an inventory as records."""
    return {
        name: msgspec.structs.asdict(each) if isinstance(each, Inventory) else dict(each)
        for name, each in inventory.items()
    }


def parents_first(named: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Providers by uuid, each after its parent if that is named too, else in their order.

    Raises ``ValueError`` for those that are parents of each other.
    """
    uuids = list(named)
    below: dict[str, list[int]] = {}
    ready = []
    for number, each in enumerate(named.values()):
        parent = each.get("parent_provider_uuid")
        if parent is not None and parent in named:
            below.setdefault(parent, []).append(number)
        else:
            ready.append(number)
    order = []
    while ready:
        uuid = uuids[heappop(ready)]
        order.append(named[uuid])
        for number in below.pop(uuid, ()):
            heappush(ready, number)
    if below:
        circle = sorted(number for numbers in below.values() for number in numbers)
        raise ValueError(f"providers are parents of each other: {', '.join(uuids[each] for each in circle)}")
    return order
