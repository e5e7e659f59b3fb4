"""What a driver tells of its host beyond amounts: NUMA cells, PCI devices, and what instances have."""

from collections.abc import Mapping

import msgspec

from roost.model.assignment import Assignment
from roost.model.instance import Instance


class Hardware(msgspec.Struct, frozen=True):
    """The objects of a host at one moment, with what is used of them.

    ``numa_topology`` is Nova's ``NUMATopology``, ``pci_device_pools`` are its ``PciDevicePool`` objects with
    the free devices, both as plain data. ``counted`` has the assignment of each instance whose use is in
    them: so the scheduler knows which of its claims are not in yet.
    """

    numa_topology: dict[str, object] | None = None
    pci_device_pools: tuple[dict[str, object], ...] = ()
    counted: Mapping[str, Assignment] = {}


def assignment_of(instance: Instance) -> Assignment | None:
    """What an instance was assigned of its host's hardware."""
    return None if instance.selection is None else instance.selection.assignment
