"""What consumers hold of a host, moved to where the driver reports it now.

An agent before this one, such as Nova's, may have told virtual GPUs and contexts of encrypted memory as
amounts of the root, and the CPUs that guests are pinned to as VCPU. Left where they are, the host would have
them twice.

Source: the reshapes of Nova's libvirt driver in its releases 19, 20 and 33.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from roost.agent.drivers.libvirt.inventory import PCPU, VCPU
from roost.agent.drivers.libvirt.providers import ChildProvider
from roost.agent.errors import ReshapeRefused
from roost.agent.provider_tree import ProviderTree
from roost.fleet.fits import has_room, meets_units
from roost.model.inventory import Inventory
from roost.model.provider_names import provider_uuid


class HeldByGuests(NamedTuple):
    """What guests have of the hardware, by guest.

    ``cpus``: the host CPUs that they have to themselves. ``devices``: the suffixes of the children whose
    devices they have.
    """

    cpus: Mapping[str, frozenset[int]]
    devices: Mapping[str, frozenset[str]]


class HostShape(NamedTuple):
    """What a host has now: the inventory of its root, the providers below it, its dedicated CPUs."""

    root: Mapping[str, Inventory]
    children: Sequence[ChildProvider]
    dedicated: frozenset[int]


def what_moves(tree: ProviderTree, node: str, shape: HostShape, guests: HeldByGuests) -> str | None:
    """What of a host is elsewhere in placement than the driver reports it, in words; None if nothing is."""
    there = tree.data(node).inventory
    moved = sorted(_below(there, shape))
    if _turns(there, shape) and guests.cpus:
        moved.append(f"{VCPU} of pinned guests")
    return f"{', '.join(moved)} of node {node} move" if moved else None


def move(
    tree: ProviderTree,
    node: str,
    shape: HostShape,
    guests: HeldByGuests,
    allocations: dict[str, dict[str, Any]],
) -> None:
    """Move what consumers hold, in place. Raises `ReshapeRefused`."""
    data = tree.data(node)
    below = _below(data.inventory, shape)
    room = _Room(tree, node, shape, allocations)
    for consumer in sorted(allocations):
        held = allocations[consumer]["allocations"]
        if data.uuid not in held:
            continue
        resources = held[data.uuid]["resources"]
        if _turns(data.inventory, shape):
            _turn(consumer, resources, shape, guests.cpus.get(consumer, frozenset()))
        for name in sorted(below & resources.keys()):
            amount = resources.pop(name)
            target = room.take(consumer, name, amount, guests.devices.get(consumer, frozenset()))
            held.setdefault(target, {"resources": {}})["resources"][name] = amount
        if not resources:
            del held[data.uuid]


def _below(there: Mapping[str, Any], shape: HostShape) -> set[str]:
    """The classes that the root has in placement, and providers below it have now."""
    children = {name for child in shape.children for name in child.inventory}
    return (there.keys() - shape.root.keys()) & children


def _turns(there: Mapping[str, Any], shape: HostShape) -> bool:
    """Whether dedicated CPUs are told for the first time."""
    return PCPU in shape.root and PCPU not in there and VCPU in there


def _turn(consumer: str, resources: dict[str, int], shape: HostShape, cpus: frozenset[int]) -> None:
    """Make the VCPU for which a guest has CPUs to itself PCPU."""
    turned = min(len(cpus), resources.get(VCPU, 0))
    if turned:
        if outside := sorted(cpus - shape.dedicated):
            raise ReshapeRefused(
                f"guest {consumer} is pinned to CPUs {outside}, which are not in cpu_dedicated_set"
            )
        resources[PCPU] = resources.get(PCPU, 0) + turned
        resources[VCPU] -= turned
        if not resources[VCPU]:
            del resources[VCPU]
    if VCPU in resources and VCPU not in shape.root:
        raise ReshapeRefused(
            f"consumer {consumer} holds {resources[VCPU]} VCPU that no CPUs are pinned for, and the host "
            "has no shared CPUs any more: leave it some in cpu_shared_set"
        )


class _Room:
    """What is left of the providers below a host's root."""

    def __init__(
        self, tree: ProviderTree, node: str, shape: HostShape, allocations: Mapping[str, dict[str, Any]]
    ) -> None:
        self._children = {}
        for child in shape.children:
            name = f"{node}_{child.suffix}"
            self._children[tree.data(name).uuid if name in tree else provider_uuid(name)] = child
        self._left = {
            (uuid, name): each.capacity
            for uuid, child in self._children.items()
            for name, each in child.inventory.items()
        }
        for record in allocations.values():
            for uuid, held in record["allocations"].items():
                for name, amount in held["resources"].items():
                    if (uuid, name) in self._left:
                        self._left[uuid, name] -= amount

    def take(self, consumer: str, name: str, amount: int, devices: frozenset[str]) -> str:
        """The provider of which a consumer gets an amount: one whose devices it has, else the emptiest one.
        Raises `ReshapeRefused`."""
        able = [uuid for uuid, child in self._children.items() if self._fits(uuid, child, name, amount)]
        own = [uuid for uuid in able if self._children[uuid].suffix in devices]
        if not able:
            raise ReshapeRefused(
                f"consumer {consumer} holds {amount} {name}, which fit none of the host's devices"
            )
        chosen = max(own or able, key=lambda uuid: self._left[uuid, name])
        self._left[chosen, name] -= amount
        return chosen

    def _fits(self, uuid: str, child: ChildProvider, name: str, amount: int) -> bool:
        each = child.inventory.get(name)
        if each is None:
            return False
        units = meets_units(amount, each.min_unit, each.max_unit, each.step_size)
        return bool(has_room(amount, self._left[uuid, name]) and units)
