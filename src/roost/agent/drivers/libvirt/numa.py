"""The NUMA cells of a host, in the names of Nova's ``NUMATopology``."""

from collections.abc import Collection

from roost.agent.drivers.libvirt.host_capabilities import HostCapabilities, HostNumaCell
from roost.agent.drivers.libvirt.inventory import UsedCpus


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
