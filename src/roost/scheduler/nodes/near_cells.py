"""Finds, for all nodes at once, the nodes with NUMA cells close to a guest's PCI devices and networks.

A guest of n cells gets n cells of a host. The set of these host cells alone decides whether devices and
networks are close enough; the guest cell that each of them serves does not matter. So each set of n cells is
tried, on all nodes together. By Hall's theorem the guest's cells find places in a set if enough of its cells
serve each set of demands (see `roost.scheduler.nodes.numa_columns`). A PCI request finds devices if enough of
them are in the pools that its policy allows. The rules are those of `roost.fleet.hardware.fit` and
`roost.fleet.hardware.pci_choice`.

PCI requests compete for devices only if a pool suits two of them. The order of choices matters if two
competing requests differ, or if a physical function could be taken together with its virtual ones. Then the
columns decide nothing.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Final, NamedTuple

import numpy as np

from roost.fleet.columns import Bools, Int64
from roost.fleet.hardware.fit import MOST_STEPS
from roost.fleet.hardware.pci_choice import DeviceConditions, FreePools, Mappings, Sockets
from roost.fleet.hardware.pci_pools import TYPE_PF
from roost.model.assignment import AssignedDevices
from roost.model.spec import NetworkMetadata, NumaPolicy, PciRequest
from roost.scheduler.nodes.numa_columns import CellPlaces
from roost.scheduler.nodes.numa_reports import NO_SOCKET
from roost.scheduler.nodes.pci_columns import NO_CELL, FreeDevices, Matching, PciColumns, names_cards

MOST_SETS: Final = 256
"""Most sets of host cells that are tried; with more of them the columns decide nothing."""


class DeviceDemand(NamedTuple):
    """The devices that equal PCI requests want together: their number, and the kinds that suit.

    ``policy``: the closeness that they need. ``cell``: the NUMA cell of each kind of devices, int64[kinds].
    """

    devices: int
    policy: NumaPolicy
    matching: Matching
    cell: Int64


def device_demands(requests: Sequence[PciRequest], pci: PciColumns) -> list[DeviceDemand] | None:
    """Return the demands of PCI requests; None if the choice of devices for one request affects others."""
    if names_cards(requests):
        return None
    alike: dict[object, list[PciRequest]] = {}
    for each in requests:
        _, specs, policy, _ = each.wanted
        alike.setdefault((specs, policy or "legacy"), []).append(each)
    firsts = [same[0] for same in alike.values()]
    if any(DeviceConditions(each).names_physical for each in firsts) and (
        len(firsts) > 1 or any(spec.get("dev_type") != TYPE_PF for spec in firsts[0].specs)
    ):
        return None
    found, cell = pci.matching(firsts)
    if (np.sum([each.suit for each in found], axis=0) > 1).any():
        return None
    demands = []
    for same, matching in zip(alike.values(), found, strict=True):
        if len(same) > 1 and not np.array_equal(matching.suit, matching.may_get):
            return None
        devices = sum(each.count for each in same)
        demands.append(DeviceDemand(devices, same[0].numa_policy or "legacy", matching, cell))
    return demands


class NearCells:
    """The host cells of some nodes for one guest.

    ``needed``: for each set of the guest's demands the host cells that serve one of them, bool[nodes, cells],
    and the number of these that the guest needs. ``free``: the free devices of the nodes, if the guest wants
    any.
    """

    def __init__(
        self, places: CellPlaces, needed: Sequence[tuple[Bools, int]], free: FreeDevices | None
    ) -> None:
        self._places = places
        self._free = free
        self._needed = [(cells.T, count) for cells, count in needed]

    def fit(
        self,
        size: int,
        network: NetworkMetadata | None,
        demands: Sequence[DeviceDemand],
    ) -> Bools | None:
        """Return the nodes where ``size`` cells suit the guest, its networks and its devices: bool[nodes].

        None if there are more than `MOST_SETS` sets of cells.
        """
        cells, nodes = self._places.exists.shape
        if comb(cells, size) > MOST_SETS or sum(comb(cells, n) for n in range(1, size + 1)) > MOST_STEPS:
            return None
        free = self._free
        devices = [] if free is None else [_Devices(each, free, self._places) for each in demands]
        fits: Bools = np.zeros(nodes, dtype=np.bool_)
        for chosen in combinations(range(cells), size):
            suits = self._serves(chosen)
            if network is not None and suits.any():
                suits &= _is_close(self._places, chosen, network)
            for each in devices:
                if suits.any():
                    suits &= each.suffice(chosen)
            fits |= suits
        return fits

    def _serves(self, chosen: Sequence[int]) -> Bools:
        """Return the nodes where the guest's cells find places in a set of cells."""
        cells = [*chosen]
        suits: Bools = np.ones(self._places.exists.shape[1], dtype=np.bool_)
        suits &= self._places.exists[cells].all(axis=0)
        for serving, count in self._needed:
            suits &= np.count_nonzero(serving[cells], axis=0) >= count
        return suits


def _is_close(places: CellPlaces, chosen: Sequence[int], network: NetworkMetadata) -> Bools:
    """As `roost.fleet.hardware.fit.is_close`."""
    cells = [*chosen]
    close: Bools = np.ones(places.exists.shape[1], dtype=np.bool_)
    networks = [places.physnets[name] for name in network.physnets if name in places.physnets]
    if network.tunneled:
        networks.append(places.tunneled)
    for near in networks:
        close &= near[cells].any(axis=0) | ~near.any(axis=0)
    return close


class _Devices:
    """The free devices for one demand, by their NUMA cell on each node.

    Numbers come in pairs: first the devices with the properties that the requests name, then the devices
    among them that the requests may get. The first number decides which pools are close enough, as in Nova.
    """

    def __init__(self, demand: DeviceDemand, free: FreeDevices, places: CellPlaces) -> None:
        self._demand = demand
        self._places = places
        self._tell_sockets = ~((places.socket == NO_SOCKET) & places.exists).any(axis=0)
        # int64[2, slots, nodes]
        devices = np.array([np.where(kinds[free.kind], free.count, 0) for kinds in demand.matching])
        cell_of = demand.cell[free.kind]
        # int64[cells, 2, nodes]
        self._near: Int64 = np.array(
            [
                np.where((cell_of == id) & exists, devices, 0).sum(axis=1, dtype=np.int64)
                for exists, id in zip(places.exists, places.id, strict=True)
            ]
        )
        # int64[2, nodes] each
        self._unknown: Int64 = np.where(cell_of == NO_CELL, devices, 0).sum(axis=1, dtype=np.int64)
        self._all: Int64 = devices.sum(axis=1, dtype=np.int64)

    def suffice(self, chosen: Sequence[int]) -> Bools:
        """Return the nodes with enough devices close to a set of cells. As `Pools.choose`."""
        demand, policy = self._demand.devices, self._demand.policy
        close = self._near[[*chosen]].sum(axis=0)
        enough = close >= demand
        further: Bools
        if policy == "required":
            further = enough[1]
        elif policy == "socket":
            further = self._on_sockets(chosen) >= demand
        else:
            known_or_not = close + self._unknown >= demand
            further = known_or_not[1]
            if policy == "preferred":
                further |= ~known_or_not[0] & (self._all[1] >= demand)
        found: Bools = np.where(enough[0], enough[1], further)
        return found

    def _on_sockets(self, chosen: Sequence[int]) -> Int64:
        """Return the devices on the sockets of a set of cells, none where a cell reports no socket."""
        socket = self._places.socket
        same = np.array([(socket == socket[each]) for each in chosen]).any(axis=0)
        near: Int64 = np.where(same & self._tell_sockets, self._near[:, 1], 0).sum(axis=0)
        return near


class DevicesNearCells:
    """Free devices of a host for a guest that has no cells on it yet, as `roost.fleet.hardware.fit.Devices`.

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
