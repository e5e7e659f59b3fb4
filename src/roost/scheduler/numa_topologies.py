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
from roost.scheduler.numa_columns import NumaColumns
from roost.scheduler.offers import HostView

_log = structlog.get_logger()


@dataclass(slots=True)
class _Node:
    """One node as it was when it was last looked at.

    ``reported``: the topology of the report; ``used``: the same with all that is assigned beside it.
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
        report = hosts.table.report
        with self._lock:
            for position, index in enumerate(hosts.index.tolist()):
                self._look_at(index, report(index), hosts.assigned(position))
            return self._columns.fits(guest, hosts.index)

    def topology(self, hosts: HostView, position: int = 0) -> HostTopology | None:
        """The topology of a host with all that is used of it; None if the host reports none."""
        index = hosts.index.item(position)
        with self._lock:
            return self._look_at(index, hosts.table.report(index), hosts.assigned(position)).used

    def _look_at(self, index: int, report: NodeReport, assigned: Assigned) -> _Node:
        node = self._nodes.get(index)
        if node is None or node.report is not report:
            had = None if node is None else node.report
            if node is None or had is None or had.numa_topology != report.numa_topology:
                node = self._nodes[index] = _Node(report, assigned, _decoded(report), None)
            elif node.assigned == assigned and limits_of(had) == limits_of(report):
                node.report = report
                return node
        elif node.assigned == assigned:
            return node
        node.report, node.assigned, node.used = report, assigned, node.reported
        if node.reported is not None and assigned:
            cells = [cell for each in assigned.values() for cell in each.cells]
            node.used = with_assigned(node.reported, cells)
        self._columns.put(index, node.used, limits_of(report))
        return node


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
