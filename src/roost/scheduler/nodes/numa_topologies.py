"""The NUMA topologies of all nodes with their present use: by reports, and by claims since."""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock

from roost.fleet.columns import Bools
from roost.fleet.hardware.cell_fit import CellLimits
from roost.fleet.hardware.guest_topology import GuestTopology
from roost.fleet.hardware.host_topology import HostTopology, with_assigned
from roost.model.assignment import Assigned, AssignedDevices
from roost.model.node import NodeReport
from roost.model.spec import NetworkMetadata, PciRequest
from roost.scheduler.candidates.candidate_source import HostView
from roost.scheduler.nodes.near_cells import NearCells, device_demands
from roost.scheduler.nodes.numa_columns import NumaCells, NumaColumns, is_exact
from roost.scheduler.nodes.numa_reports import numbers_of
from roost.scheduler.nodes.outstanding import unreported
from roost.scheduler.nodes.pci_columns import Counted, FreeDevices
from roost.scheduler.nodes.table import NodeTable


@dataclass(slots=True)
class _Node:
    """One node at its last update.

    ``assigned``: all assignments on it. ``used``: the topology of the report, with the use by assignments
    that the report does not count. ``devices``: assigned devices that the report counts as free.
    ``counted``: the node's pools without these devices, once it was computed.
    """

    report: NodeReport
    assigned: Assigned
    used: HostTopology | None
    devices: Sequence[AssignedDevices] = ()
    counted: Counted | None = None


class NumaTopologies:
    """The topologies of the nodes of one table.

    A node is updated when a guest with a topology is judged, if its report or its assignments have changed
    since. So a cloud whose flavors ask for no topology has no such columns. Several threads may call, each
    with its own state of the ledger.
    """

    def __init__(self) -> None:
        self._nodes: dict[int, _Node] = {}
        self._columns = NumaColumns()
        self._lock = Lock()

    def fits(self, guest: GuestTopology, hosts: HostView) -> Bools:
        """Return the hosts that a guest fits on by their cells, see `NumaColumns.fits`: bool[len(hosts)]."""
        with self._lock:
            self._look_at_all(hosts)
            return self._columns.fits(guest, hosts.index)

    def fits_close(
        self,
        guest: GuestTopology,
        network: NetworkMetadata | None,
        requests: Sequence[PciRequest],
        hosts: HostView,
    ) -> Bools | None:
        """Return the hosts that a guest fits on close to its devices and networks: bool[len(hosts)].

        None where columns do not decide that, see `near_cells`.
        """
        if not is_exact(guest):
            return None
        with self._lock:
            self._look_at_all(hosts)
            free = self._free_devices(hosts) if requests else None
            near = NearCells(
                self._columns.places(hosts.index), self._columns.needed(guest, hosts.index), free
            )
        demands = device_demands(requests, hosts.table.pci)
        return None if demands is None else near.fit(len(guest.cells), network, demands)

    def _free_devices(self, hosts: HostView) -> FreeDevices:
        """Return the free devices of each host, without those that claims took since its report."""
        pci = hosts.table.pci
        free = pci.free_devices(hosts.index)
        for position, index in enumerate(hosts.index.tolist()):
            node = self._nodes[index]
            if node.devices:
                if node.counted is None:
                    node.counted = pci.counted_of(pci.pools(index).without(node.devices))
                free.replace(position, node.counted)
        return free

    def _look_at_all(self, hosts: HostView) -> None:
        """Take in the reports of hosts and the assignments on them."""
        table, known = hosts.table, self._nodes.get
        report, nodes, assigned_on = table.report, table.nodes, hosts.all_assigned
        indexes = hosts.index.tolist()
        changed = []
        for index in indexes:
            node, assigned = known(index), assigned_on(nodes[index])
            # The loop visits ten thousand nodes, nearly all of them unchanged.
            if node is None or node.report is not report(index) or node.assigned is not assigned:
                changed.append(self._look_at(table, index, assigned))
        self._columns.put([each for each in changed if each is not None])

    def topology(self, hosts: HostView, position: int = 0) -> HostTopology | None:
        """Return the topology of a host with its present use; None if the host reports none."""
        index = hosts.index.item(position)
        table = hosts.table
        with self._lock:
            changed = self._look_at(table, index, hosts.all_assigned(table.nodes[index]))
            if changed is not None:
                self._columns.put([changed])
            return self._nodes[index].used

    def _look_at(self, table: NodeTable, index: int, assigned: Assigned) -> NumaCells | None:
        """Take in the report of a node and its assignments. Returns its cells if they have changed."""
        node, report = self._nodes.get(index), table.report(index)
        if node is not None and node.report is report and node.assigned == assigned:
            node.assigned = assigned
            return None
        used, numbers = table.numa.of(index), table.numa.numbers(index)
        devices: list[AssignedDevices] = []
        if used is not None and assigned:
            beside = unreported(report, assigned).values()
            devices = [each for one in beside for each in one.devices]
            cells = [cell for each in beside for cell in each.cells]
            if cells:
                used = with_assigned(used, cells)
                numbers = [numbers_of(cell) for cell in used.cells]
        self._nodes[index] = _Node(report, assigned, used, devices)
        return NumaCells(index, () if used is None else used.cells, numbers, limits_of(report))


def limits_of(report: NodeReport) -> CellLimits:
    """Return the allocation ratios of a node; 1 where it reports none."""
    return CellLimits(report.cpu_allocation_ratio or 1.0, report.ram_allocation_ratio or 1.0)
