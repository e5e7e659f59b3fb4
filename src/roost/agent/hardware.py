"""NUMA cells and PCI devices that a driver reports of its host, and their assignment to instances."""

from collections.abc import Mapping

import msgspec

from roost.model.assignment import Assignment
from roost.model.instance import Instance


class Hardware(msgspec.Struct, frozen=True):
    """The NUMA topology and PCI devices of a host at one moment, with their use.

    ``numa_topology`` is Nova's ``NUMATopology``, ``pci_device_pools`` are its ``PciDevicePool`` objects with
    the free devices, both as plain data. ``counted``: the assignment of each instance whose use is included
    in them, so that the scheduler knows which of its claims are not.
    """

    numa_topology: dict[str, object] | None = None
    pci_device_pools: tuple[dict[str, object], ...] = ()
    counted: Mapping[str, Assignment] = {}


def assignment_of(instance: Instance) -> Assignment | None:
    """Return the CPUs, memory pages and devices that an instance was assigned; None: none."""
    return None if instance.selection is None else instance.selection.assignment
