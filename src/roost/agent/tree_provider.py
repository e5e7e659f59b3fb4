"""One provider of a tree, and the driver's changes to it."""

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
    """A copy of one provider. ``parent_uuid``: None for a root. ``generation``: None if it is not known.

    ``resources``: the objects by which a driver keeps units of a class apart, such as persistent memories.
    """

    uuid: str
    name: str
    generation: int | None
    parent_uuid: str | None
    inventory: dict[str, dict[str, Any]]
    traits: set[str]
    aggregates: set[str]
    resources: dict[str, set[Any]]


class DesiredProvider(NamedTuple):
    """The driver's changes to one provider since its tree was made; None for parts that it did not set.

    ``is_placed``: the driver created or moved the provider. ``fields``: the fields of each inventory record
    that it set; the others have their defaults.
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
    """One provider in a tree, with its children by uuid.

    ``driver_inventory``: the records that the driver has set; None if it set none.
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
    driver_inventory: dict[str, dict[str, Any]] | None = None
    sets_traits: bool = False
    sets_aggregates: bool = False

    def walk(self) -> Iterator["TreeProvider"]:
        """Yield this provider and all below it, each after its parent."""
        # A loop, as a tree may be deeper than Python's stack.
        left = [self]
        while left:
            provider = left.pop()
            yield provider
            left += reversed(provider.children.values())

    def data(self) -> ProviderData:
        """Return a copy of the provider."""
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

    def desired(self) -> DesiredProvider:
        """Return the driver's changes. Raises `msgspec.ValidationError` for a record that is no inventory."""
        records = self.driver_inventory
        return DesiredProvider(
            self.uuid,
            self.name,
            self.parent_uuid,
            self.is_placed,
            None if records is None else msgspec.convert(records, dict[str, Inventory]),
            {name: _FIELDS.intersection(record) for name, record in (records or {}).items()},
            frozenset(self.traits) if self.sets_traits else None,
            frozenset(self.aggregates) if self.sets_aggregates else None,
        )


def records_of(inventory: Records) -> dict[str, dict[str, Any]]:
    """Return a copy of an inventory as records."""
    return {
        name: msgspec.structs.asdict(each) if isinstance(each, Inventory) else dict(each)
        for name, each in inventory.items()
    }


def parents_first(named: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Sort providers, given by uuid, so that each is after its parent; else they keep their order.

    Raises ``ValueError`` for providers that are parents of each other.
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
