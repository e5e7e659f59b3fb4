"""Assignments: the parts of a node's reported hardware that one consumer holds.

Allocations count amounts. An assignment names the hardware behind the amounts: host cells, pinned CPUs, pages
and PCI devices, as the node reports them (``NodeReport.numa_topology`` and ``NodeReport.pci_device_pools``).
"""

import hashlib
from collections.abc import Mapping

import msgspec


class AssignedCell(msgspec.Struct, frozen=True, omit_defaults=True):
    """One NUMA cell of a guest, and the part of a host cell that it holds.

    ``guest`` and ``host`` are the ids of the two cells. ``shared`` counts the vCPUs that float over the
    shared CPUs of the host cell. ``pinned`` has a pair for each vCPU with a CPU of its own: the guest's CPU,
    the host's CPU. ``reserved`` are host CPUs for emulator threads alone. ``withheld`` are siblings of these
    that stay idle. ``memory_mb`` is in MiB, made of pages of ``page_size_kb`` KiB; None for the smallest
    pages.
    """

    guest: int
    host: int
    shared: int = 0
    pinned: tuple[tuple[int, int], ...] = ()
    reserved: tuple[int, ...] = ()
    withheld: tuple[int, ...] = ()
    memory_mb: int = 0
    page_size_kb: int | None = None

    @property
    def cpus(self) -> frozenset[int]:
        """The host CPUs that no other guest may use."""
        return frozenset((*(host for _, host in self.pinned), *self.reserved, *self.withheld))


class AssignedDevices(msgspec.Struct, frozen=True, omit_defaults=True):
    """PCI devices of one pool, for one PCI request.

    ``request`` is the id of the request. ``pool`` is the key of the pool that the devices are taken from.
    ``addresses`` names the devices where the node reports addresses; otherwise the host chooses ``count``
    devices of the pool.
    """

    request: str
    pool: str
    count: int
    addresses: tuple[str, ...] = ()


class Assignment(msgspec.Struct, frozen=True, omit_defaults=True):
    """The hardware of one node that one consumer holds. ``node`` is the uuid of the root provider."""

    node: str
    cells: tuple[AssignedCell, ...] = ()
    devices: tuple[AssignedDevices, ...] = ()

    @property
    def cpus(self) -> frozenset[int]:
        """The host CPUs that no other guest may use."""
        return frozenset(cpu for cell in self.cells for cpu in cell.cpus)

    @property
    def addresses(self) -> frozenset[str]:
        """The PCI addresses of the devices that the assignment names."""
        return frozenset(address for devices in self.devices for address in devices.addresses)


Assigned = Mapping[str, Assignment]
"""The assignments of the consumers on one node, by the uuid of the consumer."""


def clashes(assignment: Assignment, others: Assigned) -> dict[str, str]:
    """Return the consumers that hold exclusive parts of ``assignment``, each with these parts as text.

    Exclusive are pinned and reserved CPUs, and devices with an address. Amounts of memory and of devices
    without addresses cannot clash: the node's report decides whether they fit.
    """
    found = {}
    for consumer, other in others.items():
        cpus, addresses = assignment.cpus & other.cpus, assignment.addresses & other.addresses
        parts = [f"host CPU {cpu}" for cpu in sorted(cpus)]
        parts += [f"PCI device {address}" for address in sorted(addresses)]
        if parts:
            found[consumer] = ", ".join(parts)
    return found


def digest(assignment: Assignment) -> str:
    """Return a short text that is the same for equal assignments, and different for others."""
    return _digest(msgspec.json.encode(assignment))


def digest_of_all(assigned: Assigned) -> str:
    """Return a short text for all assignments on a node, which changes with any of them."""
    return _digest(msgspec.json.encode(sorted(assigned.items())))


def _digest(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=12).hexdigest()
