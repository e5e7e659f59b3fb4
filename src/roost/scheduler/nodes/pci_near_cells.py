"""`DevicesNearCells`: the PCI devices of a host for a guest that has no cells on the host yet."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from roost.fleet.hardware.pci_choice import FreePools, Mappings, Sockets
from roost.model.assignment import AssignedDevices
from roost.model.pci import PciRequest


class DevicesNearCells:
    """Free devices for one list of requests, as `roost.fleet.hardware.fit.Devices`.

    ``sockets``: of the host's cells. ``mappings``: those of the allocation candidate, if one is given.
    """

    def __init__(
        self, pools: FreePools, requests: Sequence[PciRequest], sockets: Sockets, mappings: Mappings | None
    ) -> None:
        self.requested = bool(requests)
        self._pools = pools
        self._requests = requests
        self._sockets = sockets
        self._mappings = mappings

    def free_by_cell(self) -> Mapping[int | None, int]:
        """As `roost.fleet.hardware.fit.Devices`."""
        found = Counter[int | None]()
        for pool in self._pools.pools:
            found[pool.numa_node] += pool.count
        return found

    def choose(self, host_cells: Collection[int]) -> tuple[AssignedDevices, ...] | None:
        """As `roost.fleet.hardware.fit.Devices`."""
        return self._pools.choose(self._requests, host_cells, self._sockets, self._mappings)
