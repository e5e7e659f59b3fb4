"""The reshape of a host: moves claims to the providers that the driver reports now.

An agent before this one, such as Nova's, may have reported virtual GPUs and contexts of encrypted memory as
inventory of the root, and the CPUs that guests are pinned to as VCPU. If those stayed, the host would have
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
from roost.model.names import provider_uuid


class HeldByGuests(NamedTuple):
    """The hardware of guests, by guest.

    ``cpus``: their dedicated host CPUs. ``devices``: the suffixes of the child providers of their devices.
    """

    cpus: Mapping[str, frozenset[int]]
    devices: Mapping[str, frozenset[str]]


class HostProviders(NamedTuple):
    """The providers of a host now: the inventory of its root, the providers below it, its dedicated CPUs."""

    root: Mapping[str, Inventory]
    children: Sequence[ChildProvider]
    dedicated: frozenset[int]


def what_moves(tree: ProviderTree, node: str, host: HostProviders, guests: HeldByGuests) -> str | None:
    """Return in words which inventory moves to another provider or class; None if nothing moves."""
    there = tree.data(node).inventory
    moved = sorted(_below(there, host))
    if _turns(there, host) and guests.cpus:
        moved.append(f"{VCPU} of pinned guests")
    return f"{', '.join(moved)} of node {node} move" if moved else None


def move(
    tree: ProviderTree,
    node: str,
    host: HostProviders,
    guests: HeldByGuests,
    allocations: dict[str, dict[str, Any]],
) -> None:
    """Move allocations, in place. Raises `ReshapeRefused`."""
    data = tree.data(node)
    below = _below(data.inventory, host)
    room = _Room(tree, node, host, allocations)
    for consumer in sorted(allocations):
        held = allocations[consumer]["allocations"]
        if data.uuid not in held:
            continue
        resources = held[data.uuid]["resources"]
        if _turns(data.inventory, host):
            _turn(consumer, resources, host, guests.cpus.get(consumer, frozenset()))
        for name in sorted(below & resources.keys()):
            amount = resources.pop(name)
            target = room.take(consumer, name, amount, guests.devices.get(consumer, frozenset()))
            held.setdefault(target, {"resources": {}})["resources"][name] = amount
        if not resources:
            del held[data.uuid]


def _below(there: Mapping[str, Any], host: HostProviders) -> set[str]:
    """Return the classes that the root has in placement, and that providers below it have now."""
    children = {name for child in host.children for name in child.inventory}
    return (there.keys() - host.root.keys()) & children


def _turns(there: Mapping[str, Any], host: HostProviders) -> bool:
    """Return whether dedicated CPUs are reported for the first time."""
    return PCPU in host.root and PCPU not in there and VCPU in there


def _turn(consumer: str, resources: dict[str, int], host: HostProviders, cpus: frozenset[int]) -> None:
    """Change a guest's VCPU into PCPU, one for each of its dedicated CPUs."""
    turned = min(len(cpus), resources.get(VCPU, 0))
    if turned:
        if outside := sorted(cpus - host.dedicated):
            raise ReshapeRefused(
                f"guest {consumer} is pinned to CPUs {outside}, which are not in cpu_dedicated_set"
            )
        resources[PCPU] = resources.get(PCPU, 0) + turned
        resources[VCPU] -= turned
        if not resources[VCPU]:
            del resources[VCPU]
    if VCPU in resources and VCPU not in host.root:
        raise ReshapeRefused(
            f"consumer {consumer} holds {resources[VCPU]} VCPU that no CPUs are pinned for, and the host "
            "has no shared CPUs any more: leave it some in cpu_shared_set"
        )


class _Room:
    """The free amounts of the providers below a host's root."""

    def __init__(
        self, tree: ProviderTree, node: str, host: HostProviders, allocations: Mapping[str, dict[str, Any]]
    ) -> None:
        self._children = {}
        for child in host.children:
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
        """Return the provider of a consumer's amount: one whose devices it has, else the emptiest one.

        Raises `ReshapeRefused`.
        """
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
