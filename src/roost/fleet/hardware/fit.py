"""The fit of a guest topology on a node: its host cells, CPUs, pages and devices, or why it does not fit.

Source: ``numa_fit_instance_to_host`` of ``nova/virt/hardware.py``, which tries permutations of host cells in
an order of preference and takes the first that fits.

Why not try permutations: eight cells have 40,320, and where devices are close to the wrong cells all fail.
Whether the remaining guest cells fit depends only on the set of host cells taken, not on their order. So a
depth-first search remembers the sets that failed, of which there are 2^8, and finds the same permutation.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from roost.fleet.hardware.cell_fit import CellLimits, fit_cell
from roost.fleet.hardware.guest_topology import GuestTopology
from roost.fleet.hardware.host_topology import HostCell, HostTopology
from roost.fleet.hardware.lack import CellLack
from roost.model.assignment import AssignedCell, AssignedDevices
from roost.model.spec import NetworkMetadata

MOST_STEPS = 10_000
"""Most guest cells placed in one search. A search that needs more finds nothing: it has failed with thousands
of sets of host cells for the same devices or networks."""


class Devices(Protocol):
    """The PCI devices of a node for one list of requests."""

    requested: bool
    """True if any device is requested."""

    def free_by_cell(self) -> Mapping[int | None, int]:
        """Return the number of free devices by the id of their host cell."""

    def choose(self, host_cells: Collection[int]) -> tuple[AssignedDevices, ...] | None:
        """Return devices for all requests of a guest on these host cells, None if there are not enough."""


class Fit(NamedTuple):
    """The hardware that a guest gets: a part of a host cell for each of its cells, and devices."""

    cells: tuple[AssignedCell, ...]
    devices: tuple[AssignedDevices, ...] = ()


def fit(
    host: HostTopology,
    guest: GuestTopology,
    limits: CellLimits,
    *,
    pack: bool = False,
    network: NetworkMetadata | None = None,
    devices: Devices | None = None,
) -> Fit | None:
    """Return the hardware that a guest gets on a node, None if it does not fit.

    ``pack``: used host cells are preferred to unused ones.
    """
    if len(host.cells) < len(guest.cells):
        return None
    cells = list(host.cells)
    if len(cells) > len(guest.cells):
        cells = preferred(cells, guest, pack=pack, devices=devices)
    return _Search(host, cells, guest, limits, network, devices).run()


def preferred(
    cells: Sequence[HostCell], guest: GuestTopology, *, pack: bool, devices: Devices | None
) -> list[HostCell]:
    """Return host cells in the order in which they are tried.

    Cells with most devices come first if the guest needs devices, else cells with fewest; then the order is
    by CPUs in use, then by free memory.
    """
    near: Mapping[int | None, int] = Counter() if devices is None else devices.free_by_cell()
    wants_devices = devices is not None and devices.requested
    sign = -1 if pack else 1

    def key(cell: HostCell) -> tuple[int, int, int]:
        free = near.get(cell.id, 0)
        used = -cell.free_cpus.bit_count() if guest.pins else cell.cpu_usage
        return (-free if wants_devices else free, sign * used, -sign * cell.free_memory_mb)

    return sorted(cells, key=key)


class _Search:
    def __init__(
        self,
        host: HostTopology,
        cells: Sequence[HostCell],
        guest: GuestTopology,
        limits: CellLimits,
        network: NetworkMetadata | None,
        devices: Devices | None,
    ) -> None:
        self._host = host
        self._cells = cells
        self._guest = guest
        self._limits = limits
        self._network = network
        self._devices = devices if devices is not None and devices.requested else None
        self._fitted: dict[tuple[int, int], AssignedCell | CellLack] = {}
        self._failed: set[int] = set()
        self._steps = 0

    def run(self) -> Fit | None:
        return self._place(0, 0, ())

    def _place(self, number: int, taken: int, chosen: tuple[AssignedCell, ...]) -> Fit | None:
        """Place the guest cells from ``number`` on, where the host cells in the set ``taken`` are taken."""
        if number == len(self._guest.cells):
            return self._complete(chosen)
        for at in range(len(self._cells)):
            after = taken | 1 << at
            if after == taken or after in self._failed:
                continue
            cell = self._fit(at, number)
            if isinstance(cell, CellLack):
                continue
            self._steps += 1
            if self._steps > MOST_STEPS:
                return None
            found = self._place(number + 1, after, (*chosen, cell))
            if found is not None:
                return found
            self._failed.add(after)
        return None

    def _fit(self, at: int, number: int) -> AssignedCell | CellLack:
        found = self._fitted.get((at, number))
        if found is None:
            found = fit_cell(self._cells[at], self._guest, number, self._limits)
            self._fitted[at, number] = found
        return found

    def _complete(self, chosen: tuple[AssignedCell, ...]) -> Fit | None:
        on = frozenset(cell.host for cell in chosen)
        if self._network is not None and not is_close(self._host, on, self._network):
            return None
        if self._devices is None:
            return Fit(chosen)
        devices = self._devices.choose(on)
        return None if devices is None else Fit(chosen, devices)


def is_close(host: HostTopology, on: Collection[int], network: NetworkMetadata) -> bool:
    """Return whether a guest on the host cells ``on`` is close to its networks.

    A network that no cell reports may be anywhere.
    Source: ``_numa_cells_support_network_metadata``.
    """
    chosen = [cell for cell in host.cells if cell.id in on]
    others = [cell for cell in host.cells if cell.id not in on]
    elsewhere = network.physnets.difference(*(cell.physnets for cell in chosen))
    if any(elsewhere & cell.physnets for cell in others):
        return False
    if not network.tunneled or any(cell.tunneled for cell in chosen):
        return True
    return not any(cell.tunneled for cell in others)


class Misfit(NamedTuple):
    """The reason why a guest does not fit on a node.

    ``text``: the rest of a sentence that begins with the node's name. ``distance``: from 0 (near) to 1 (far).
    """

    text: str
    distance: float


def misfit(
    host: HostTopology,
    guest: GuestTopology,
    limits: CellLimits,
    *,
    network: NetworkMetadata | None = None,
    devices: Devices | None = None,
) -> Misfit | None:
    """Return the reason why a guest does not fit on a node, None if it fits.

    The reason is the first guest cell that fits on no host cell, with the host cell that lacks least; else a
    condition that the guest's cells fail only together.
    """
    if len(host.cells) < len(guest.cells):
        return Misfit(f"has {len(host.cells)} of the {len(guest.cells)} NUMA cells asked for", 1.0)
    for number, cell in enumerate(guest.cells):
        found = [(fit_cell(each, guest, number, limits), each.id) for each in host.cells]
        lacks = [(lack.distance, id, lack) for lack, id in found if isinstance(lack, CellLack)]
        if len(lacks) == len(found):
            distance, id, lack = min(lacks, key=lambda each: each[:2])
            which = f" for cell {cell.id} of the guest" if len(guest.cells) > 1 else ""
            return Misfit(f"has no NUMA cell{which}: the closest, cell {id}, {lack.text}", distance)
    if fit(host, guest, limits) is None:
        return Misfit(
            f"has NUMA cells for each of the guest's {len(guest.cells)}, but not for all at once", 0.2
        )
    if fit(host, guest, limits, network=network) is None:
        return Misfit("has its networks close to other NUMA cells than those with room", 0.1)
    if fit(host, guest, limits, network=network, devices=devices) is None:
        return Misfit("has PCI devices close to other NUMA cells than those with room, or too few", 0.1)
    return None
