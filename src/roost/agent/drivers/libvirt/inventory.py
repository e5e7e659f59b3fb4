"""The inventory of a host's root provider, its NUMA cells, and the sources of its mediated devices."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from roost.agent.drivers.libvirt.host_capabilities import HostCapabilities, HostNumaCell
from roost.agent.drivers.libvirt.node_devices import NodeDevices, PciDevice
from roost.agent.errors import UnusableOptions
from roost.model.inventory import Inventory

VCPU: Final = "VCPU"
PCPU: Final = "PCPU"
MEMORY: Final = "MEMORY_MB"
DISK: Final = "DISK_GB"
VGPU: Final = "VGPU"
ENCRYPTION: Final = "MEM_ENCRYPTION_CONTEXT"


class Ratios(msgspec.Struct, frozen=True):
    """Allocation ratios by class. ``fixed``: hold always; ``initial``: until placement has others."""

    fixed: dict[str, float] = {}
    initial: dict[str, float] = {}

    def of(self, resource_class: str, there: Mapping[str, Mapping[str, Any]]) -> float:
        """Return the ratio of a class. ``there``: the inventory that placement has."""
        if (fixed := self.fixed.get(resource_class)) is not None:
            return fixed
        kept = there.get(resource_class, {}).get("allocation_ratio")
        return float(self.initial.get(resource_class, 1.0) if kept is None else kept)


class Reserved(msgspec.Struct, frozen=True):
    """Amounts of a host that guests do not get: CPUs, MiB, GiB."""

    vcpus: int = 0
    memory_mb: int = 512
    disk_gb: int = 0


class CpuSets(msgspec.Struct, frozen=True):
    """The CPUs over which vCPUs float, and those to which vCPUs are pinned; None: not configured.

    Source: ``[compute] cpu_shared_set`` and ``cpu_dedicated_set`` of Nova.
    """

    shared: frozenset[int] | None = None
    dedicated: frozenset[int] | None = None

    def of(self, host: HostCapabilities) -> "UsedCpus":
        """Return the CPUs of a host. Without any option all are shared. Raises `UnusableOptions`."""
        named = (self.shared or frozenset()) | (self.dedicated or frozenset())
        if missing := sorted(named - host.cpus):
            raise UnusableOptions(f"CPUs {missing} of the options are not online on the host")
        if both := sorted((self.shared or frozenset()) & (self.dedicated or frozenset())):
            raise UnusableOptions(f"CPUs {both} are in both cpu_shared_set and cpu_dedicated_set")
        if self.shared is None and self.dedicated is None:
            return UsedCpus(host.cpus, frozenset())
        return UsedCpus(self.shared or frozenset(), self.dedicated or frozenset())


class UsedCpus(msgspec.Struct, frozen=True):
    """The CPUs of a host that are shared, and those that are dedicated."""

    shared: frozenset[int]
    dedicated: frozenset[int]


class Amounts(msgspec.Struct, frozen=True):
    """Totals of a host: memory in MiB, disk in GiB (None: not reported), memory of foreign guests in MiB."""

    memory_mb: int
    disk_gb: int | None
    others_memory_mb: int = 0


def root_inventory(
    cpus: UsedCpus,
    amounts: Amounts,
    reserved: Reserved,
    ratios: Ratios,
    there: Mapping[str, Mapping[str, Any]],
) -> dict[str, Inventory]:
    """Return the inventory of a host's root provider. ``there``: the one that placement has."""
    totals = {
        VCPU: (len(cpus.shared), reserved.vcpus),
        PCPU: (len(cpus.dedicated), 0),
        MEMORY: (amounts.memory_mb, reserved.memory_mb + amounts.others_memory_mb),
        DISK: (amounts.disk_gb or 0, reserved.disk_gb),
    }
    return {
        name: Inventory(
            total,
            reserved=min(kept, total),
            max_unit=total,
            allocation_ratio=1.0 if name == PCPU else ratios.of(name, there),
        )
        for name, (total, kept) in totals.items()
        if total
    }


class MdevOptions(msgspec.Struct, frozen=True):
    """The types of mediated devices for guests, and the resource classes of types that are not VGPU.

    Source: ``[devices] enabled_mdev_types`` of Nova, and ``mdev_class`` of its sections.
    """

    types: tuple[str, ...] = ()
    classes: dict[str, str] = {}

    def type_of(self, device: PciDevice) -> str | None:
        """Return the type that a physical device makes: the first configured one that it supports."""
        able = {each.name for each in device.mdev_types}
        return next((each for each in self.types if each in able), None)

    def class_of(self, name: str) -> str:
        """Return the resource class of a type."""
        return self.classes.get(name, VGPU)


class MdevSource(msgspec.Struct, frozen=True):
    """A physical device, and the total number of mediated devices of one type that it can have."""

    device: str
    type: str
    resource_class: str
    total: int


def mdev_sources(devices: NodeDevices, options: MdevOptions) -> tuple[MdevSource, ...]:
    """Return the physical devices that make mediated devices for guests."""
    found = []
    for device in devices.pci:
        if (name := options.type_of(device)) is None:
            continue
        [available] = [each.available for each in device.mdev_types if each.name == name]
        made = sum(each.parent == device.name and each.type == name for each in devices.mediated)
        # A device that another type uses up is no provider.
        if available + made:
            found.append(MdevSource(device.name, name, options.class_of(name), available + made))
    return tuple(found)


def numa_topology(
    host: HostCapabilities, cpus: UsedCpus, *, pinned_by_others: Collection[int] = ()
) -> dict[str, object] | None:
    """Return the topology of a host without our guests; None if the host reports no cells.

    ``pinned_by_others``: dedicated CPUs to which foreign guests are pinned.

    Source: ``_get_host_numa_topology`` of Nova's libvirt driver, for the choice of cells and CPUs.
    """
    cells = [_cell(cell, cpus, frozenset(pinned_by_others)) for cell in host.cells]
    return {"cells": cells} if cells else None


def _cell(cell: HostNumaCell, cpus: UsedCpus, others: frozenset[int]) -> dict[str, object]:
    there = frozenset(cpu.id for cpu in cell.cpus)
    used = there & (cpus.shared | cpus.dedicated)
    cores = sorted({tuple(sorted(cpu.siblings & used)) for cpu in cell.cpus if cpu.siblings & used})
    sockets = {cpu.socket for cpu in cell.cpus}
    return {
        "id": cell.id,
        "cpuset": sorted(there & cpus.shared),
        "pcpuset": sorted(there & cpus.dedicated),
        "pinned_cpus": sorted(there & cpus.dedicated & others),
        "siblings": [list(core) for core in cores],
        "memory": cell.memory_kb // 1024,
        "mempages": [{"size_kb": each.size_kb, "total": each.total} for each in cell.pages],
        "socket": sockets.pop() if len(sockets) == 1 else None,
    }
