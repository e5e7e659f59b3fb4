"""The reason why a guest topology does not fit on a node, in words."""

from typing import NamedTuple

from roost.fleet.hardware.cell_fit import CellLimits, fit_cell
from roost.fleet.hardware.fit import Devices, fit
from roost.fleet.hardware.guest_topology import GuestTopology
from roost.fleet.hardware.host_topology import HostTopology
from roost.fleet.hardware.lack import CellLack
from roost.model.spec import NetworkMetadata


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
