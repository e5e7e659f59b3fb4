"""The NUMA topologies of all nodes, as they are used now: what reports say, and what claims took since."""

from dataclasses import dataclass
from threading import Lock

import structlog

from roost.fleet.columns import Bools
from roost.hardware.cell_fit import Limits
from roost.hardware.guest_topology import GuestTopology
from roost.hardware.host_topology import HostTopology, UnreadableTopology, decoded
from roost.hardware.usage import with_assigned
from roost.model.assignment import Assigned
from roost.model.node import NodeReport
from roost.scheduler.numa_columns import NumaCells, NumaColumns
from roost.scheduler.offers import HostView
from roost.scheduler.unreported import unreported

_log = structlog.get_logger()


@dataclass(slots=True)
class _Node:
    """One node as it was when it was last looked at.

    ``assigned``: all assignments on it. ``reported``: the topology of the report; ``used``: the same with all
    that is assigned beside it.
    """

    report: NodeReport
    assigned: Assigned
    reported: HostTopology | None
    used: HostTopology | None


class NumaTopologies:
    """The topologies of the nodes of one table.

    A node is looked at again when a guest with a topology is judged and the node has reported since, or its
    assignments are others. So a cloud whose flavors ask for no topology pays nothing for those that its nodes
    report. Several threads may ask, each with its own state of the ledger.
    """

    def __init__(self) -> None:
        self._nodes: dict[int, _Node] = {}
        self._columns = NumaColumns()
        self._lock = Lock()

    def fits(self, guest: GuestTopology, hosts: HostView) -> Bools:
        """The hosts that a guest fits on by their cells, see `NumaColumns.fits`: bool[len(hosts)]."""
        table, known = hosts.table, self._nodes.get
        report, nodes, assigned_on = table.report, table.nodes, hosts.all_assigned
        indexes = hosts.index.tolist()
        with self._lock:
            changed = []
            for index in indexes:
                node, assigned = known(index), assigned_on(nodes[index])
                # Nearly all nodes are as they were, and each of ten thousand is asked here.
                if node is None or node.report is not report(index) or node.assigned is not assigned:
                    changed.append(self._look_at(index, report(index), assigned))
            self._columns.put([each for each in changed if each is not None])
            return self._columns.fits(guest, hosts.index)

    def topology(self, hosts: HostView, position: int = 0) -> HostTopology | None:
        """The topology of a host with all that is used of it; None if the host reports none."""
        index = hosts.index.item(position)
        table = hosts.table
        with self._lock:
            changed = self._look_at(index, table.report(index), hosts.all_assigned(table.nodes[index]))
            if changed is not None:
                self._columns.put([changed])
            return self._nodes[index].used

    def _look_at(self, index: int, report: NodeReport, assigned: Assigned) -> NumaCells | None:
        """Take in what a node reports and what is assigned on it. Returns it if it differs from before."""
        node = self._nodes.get(index)
        if node is not None and node.report is report and node.assigned == assigned:
            node.assigned = assigned
            return None
        if node is None or node.report.numa_topology != report.numa_topology:
            node = self._nodes[index] = _Node(report, assigned, _decoded(report), None)
        node.report, node.assigned, node.used = report, assigned, node.reported
        if node.reported is not None:
            cells = [cell for each in unreported(report, assigned).values() for cell in each.cells]
            node.used = with_assigned(node.reported, cells)
        return NumaCells(index, () if node.used is None else node.used.cells, limits_of(report))


def limits_of(report: NodeReport) -> Limits:
    """The allocation ratios of a node; 1 where it reports none."""
    return Limits(report.cpu_allocation_ratio or 1.0, report.ram_allocation_ratio or 1.0)


def _decoded(report: NodeReport) -> HostTopology | None:
    if not report.numa_topology:
        return None
    try:
        topology = decoded(report.numa_topology)
    except UnreadableTopology as error:
        _log.warning(
            "the NUMA topology of a node cannot be read: it takes no instance that asks for one",
            host=report.host,
            nodename=report.nodename,
            error=str(error),
        )
        return None
    return topology if topology.cells else None
