"""The reshape of a simulated host: allocations move to the providers that have the inventory now."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from roost.agent.errors import ReshapeRefused
from roost.agent.provider_tree import ProviderTree
from roost.fleet.fits import has_room, largest_amount, largest_part, meets_units
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid

Shape = Mapping[str, Mapping[str, Inventory]]
"""The inventory of each provider of a host, by name."""

_TURNED = {"VCPU": "PCPU", "PCPU": "VCPU"}
"""Classes that replace each other on a host with only one of them."""


def leftover(tree: ProviderTree, nodename: str, shape: Shape) -> list[str]:
    """Return the uuids of a node's providers that the driver made, by their names, and no longer wants."""
    data = [tree.data(uuid) for uuid in tree.get_provider_uuids_in_tree(nodename)]
    return [each.uuid for each in data if each.name.startswith(f"{nodename}-") and each.name not in shape]


def needs_reshape(tree: ProviderTree, nodename: str, shape: Shape) -> bool:
    """Return whether a node's provider has inventory in placement that another provider should have."""
    return next(_moving(tree, nodename, shape), None) is not None


def move(
    tree: ProviderTree,
    nodename: str,
    shape: Shape,
    allocations: Mapping[str, dict[str, Any]],
    preferred: Mapping[str, str],
) -> None:
    """Move the allocations of a node, in place.

    A consumer gets its CPUs and memory from one provider if it fits, and is split otherwise. ``preferred``:
    the name of a provider by consumer.

    Raises: `ReshapeRefused` if a consumer does not fit.
    """
    goes = dict(_moving(tree, nodename, shape))
    room = _Room(tree, shape, allocations)
    wanted = {consumer: _take_off(record, goes) for consumer, record in allocations.items()}
    # The largest first: small ones fit into the rest.
    for consumer in sorted(wanted, key=lambda each: (-max([*wanted[each].values(), 0]), each)):
        placed = room.place(consumer, wanted[consumer], _uuid(tree, preferred.get(consumer, nodename)))
        for provider, name, amount in placed:
            held = allocations[consumer]["allocations"].setdefault(provider, {"resources": {}})
            held["resources"][name] = held["resources"].get(name, 0) + amount


def _moving(tree: ProviderTree, nodename: str, shape: Shape) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield each inventory that moves: its provider's uuid and class, and the class afterwards."""
    described = {name for inventory in shape.values() for name in inventory}
    made = {nodename, *leftover(tree, nodename, shape)}
    for uuid in tree.get_provider_uuids_in_tree(nodename):
        data = tree.data(uuid)
        if data.name not in shape and uuid not in made:
            continue
        for name in data.inventory:
            if name in shape.get(data.name, {}):
                continue
            after = name if name in described else _TURNED.get(name)
            if after in described:
                yield (uuid, name), after


def _uuid(tree: ProviderTree, name: str) -> str:
    return tree.data(name).uuid if name in tree else provider_uuid(name)


def _take_off(record: dict[str, Any], goes: Mapping[tuple[str, str], str]) -> dict[str, int]:
    """Remove the moving amounts from a consumer; returns them by the class that they have afterwards."""
    taken: defaultdict[str, int] = defaultdict(int)
    for provider, held in list(record["allocations"].items()):
        for name in list(held["resources"]):
            if (after := goes.get((provider, name))) is not None:
                taken[after] += held["resources"].pop(name)
        if not held["resources"]:
            del record["allocations"][provider]
    return dict(taken)


class _Room:
    """The free amount of each class of each provider of a host."""

    def __init__(self, tree: ProviderTree, shape: Shape, allocations: Mapping[str, dict[str, Any]]) -> None:
        self._inventories = {_uuid(tree, name): inventory for name, inventory in shape.items()}
        self._left = {
            (uuid, name): each.capacity
            for uuid, inventory in self._inventories.items()
            for name, each in inventory.items()
        }
        for record in allocations.values():
            for uuid, held in record["allocations"].items():
                for name, amount in held["resources"].items():
                    if name in self._inventories.get(uuid, {}):
                        self._left[uuid, name] -= amount

    def place(self, consumer: str, wanted: Mapping[str, int], first: str) -> list[tuple[str, str, int]]:
        """Take amounts of classes; returns provider, class and amount of each part.

        Provider ``first`` is taken if it has all. Raises `ReshapeRefused`.
        """
        placed: list[tuple[str, str, int]] = []
        together = [uuid for uuid in self._inventories if self._holds(uuid, wanted)]
        if wanted and together:
            # Otherwise the emptiest provider, so that all are used alike.
            emptiest = max(together, key=lambda each: min(self._left[each, name] for name in wanted))
            uuid = first if first in together else emptiest
            placed = [(uuid, name, amount) for name, amount in wanted.items()]
        else:
            for name, amount in wanted.items():
                placed += self._split(consumer, name, amount)
        for uuid, name, amount in placed:
            self._left[uuid, name] -= amount
        return placed

    def _holds(self, uuid: str, wanted: Mapping[str, int]) -> bool:
        return all(self._fits(uuid, name, amount) for name, amount in wanted.items())

    def _split(self, consumer: str, name: str, amount: int) -> list[tuple[str, str, int]]:
        """Take an amount of one class from one provider if it fits, otherwise from as few as possible."""
        found: list[tuple[str, str, int]] = []
        there = [uuid for uuid, inventory in self._inventories.items() if name in inventory]
        there.sort(
            key=lambda uuid: int(
                largest_amount(self._left[uuid, name], self._inventories[uuid][name].max_unit)
            ),
            reverse=True,
        )
        left = amount
        for uuid in there:
            part = int(largest_part(left, self._left[uuid, name], *_units(self._inventories[uuid][name])))
            if part:
                found.append((uuid, name, part))
                left -= part
            if not left:
                return found
        raise ReshapeRefused(
            f"consumer {consumer} holds {amount} {name}, of which {left} fit nowhere: "
            f"all providers together have {sum(max(self._left[uuid, name], 0) for uuid in there)} left"
        )

    def _fits(self, uuid: str, name: str, amount: int) -> bool:
        inventory = self._inventories[uuid].get(name)
        if inventory is None:
            return not amount
        return bool(has_room(amount, self._left[uuid, name]) and meets_units(amount, *_units(inventory)))


def _units(inventory: Inventory) -> tuple[int, int, int]:
    return inventory.min_unit, inventory.max_unit, inventory.step_size
