"""The provider tree of a host, with its inventories."""

from typing import Final

import msgspec

from roost.dashboard.fleet.hosts import class_rank
from roost.fleet import Fleet
from roost.fleet.reach import sharing_that_serve

MOST_PROVIDERS: Final = 400
"""Providers of a tree that a page shows at most."""


class InventoryRow(msgspec.Struct, frozen=True):
    """An inventory of a provider: units of the class, and the limits of one allocation.

    ``capacity``: ``total`` less ``reserved``, times ``allocation_ratio``. The last three
    limit one allocation.
    """

    resource_class: str
    used: int
    capacity: int
    reserved: int
    total: int
    allocation_ratio: float
    min_unit: int
    max_unit: int
    step_size: int


class ProviderRow(msgspec.Struct, frozen=True, kw_only=True):
    """A provider of the tree. ``depth``: 0 for the root. ``shared``: it is of another tree, and shares."""

    uuid: str
    name: str
    depth: int
    generation: int
    traits: tuple[str, ...]
    aggregates: tuple[str, ...]
    inventories: tuple[InventoryRow, ...]
    shared: bool = False


class ShownTree(msgspec.Struct, frozen=True):
    """The providers of a tree, each after its parent, then the providers that share with it.

    ``more``: the number of providers that are left out.
    """

    providers: tuple[ProviderRow, ...]
    more: int = 0


def provider_tree(fleet: Fleet, root: int) -> ShownTree:
    """Return the tree of a root provider. ``root``: its row."""
    found: list[tuple[int, int]] = []
    waiting = [(root, 0)]
    while waiting:
        row, depth = waiting.pop()
        found.append((row, depth))
        below = sorted(fleet.children(row), key=fleet.name, reverse=True)
        waiting += [(child, depth + 1) for child in below]
    sharing = sharing_that_serve(fleet, root)
    rows = [_provider(fleet, row, depth) for row, depth in found[:MOST_PROVIDERS]]
    room = MOST_PROVIDERS - len(rows)
    rows += [_provider(fleet, row, 0, shared=True) for row in sharing[:room]]
    return ShownTree(tuple(rows), len(found) + len(sharing) - len(rows))


def _provider(fleet: Fleet, row: int, depth: int, *, shared: bool = False) -> ProviderRow:
    used = fleet.usages(row)
    inventories = fleet.inventories(row)
    return ProviderRow(
        uuid=fleet.uuid(row),
        name=fleet.name(row),
        depth=depth,
        generation=fleet.generation.item(row),
        traits=fleet.traits_of(row),
        aggregates=fleet.aggregates_of(row),
        inventories=tuple(
            InventoryRow(
                name,
                used.get(name, 0),
                max(0, each.capacity),
                each.reserved,
                each.total,
                each.allocation_ratio,
                each.min_unit,
                each.max_unit,
                each.step_size,
            )
            for name, each in sorted(inventories.items(), key=lambda item: class_rank(item[0]))
        ),
        shared=shared,
    )
