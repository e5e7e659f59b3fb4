"""The topology of a node with assigned cells counted as used.

Source: ``numa_usage_from_instance_numa`` of ``nova/virt/hardware.py``.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from roost.fleet.hardware.cpus import set_of
from roost.fleet.hardware.host_topology import HostCell, HostTopology, Pages
from roost.model.assignment import AssignedCell


def with_assigned(topology: HostTopology, assigned: Iterable[AssignedCell]) -> HostTopology:
    """Return the topology with these cells counted as used. Cells that the node no longer has are ignored."""
    by_host: dict[int, list[AssignedCell]] = defaultdict(list)
    for cell in assigned:
        by_host[cell.host].append(cell)
    if not by_host:
        return topology
    return HostTopology(
        tuple(
            [
                cell if cell.id not in by_host else _with_used(cell, by_host[cell.id])
                for cell in topology.cells
            ]
        )
    )


def _with_used(host: HostCell, assigned: Sequence[AssignedCell]) -> HostCell:
    pages = {each.size_kb: each for each in host.pages}
    smallest = min(pages, default=None)
    for cell in assigned:
        size = smallest if cell.page_size_kb is None else cell.page_size_kb
        if size in pages:
            had = pages[size]
            pages[size] = Pages(had.size_kb, had.total, had.free - -(-cell.memory_mb * 1024 // had.size_kb))
    return host._replace(
        pinned=host.pinned | set_of(cpu for cell in assigned for cpu in cell.cpus),
        cpu_usage=host.cpu_usage + sum(cell.shared for cell in assigned),
        memory_used_mb=host.memory_used_mb + sum(cell.memory_mb for cell in assigned),
        pages=tuple([pages[each.size_kb] for each in host.pages]),
    )
