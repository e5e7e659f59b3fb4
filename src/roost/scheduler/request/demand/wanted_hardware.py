"""Phrases for the hardware that a request wants: room in NUMA cells, and PCI devices."""

from collections.abc import Sequence

from roost.scheduler.request.scheduling_request import SchedulingRequest


def room_in_cells(request: SchedulingRequest) -> str:
    """Return a phrase for hosts with room: ``have room in NUMA cells for the guest (1 cell, …)``."""
    guest = request.demand.guest
    if guest is None:
        return "have room in NUMA cells"
    cells = "1 cell" if len(guest.cells) == 1 else f"{len(guest.cells)} cells"
    pinned = sum(cell.pinned for cell in guest.cells)
    shared = sum(cell.shared for cell in guest.cells)
    memory = sum(cell.memory_mb for cell in guest.cells)
    amounts = [f"{pinned} dedicated"] * bool(pinned) + [f"{shared} shared"] * bool(shared)
    wanted = f"{cells}, {listed(amounts)} vCPUs, {memory} MiB" if amounts else f"{cells}, {memory} MiB"
    near = " near its PCI devices" if request.demand.devices else ""
    networks = request.spec.network_metadata
    if networks is not None and (networks.physnets or networks.tunneled):
        near = f"{near} and networks" if near else " near its networks"
    return f"have room in NUMA cells for the guest ({wanted}){near}"


def enough_devices(request: SchedulingRequest) -> str:
    """Return a phrase for hosts with the PCI devices: ``have enough PCI devices free (2 for alias gpu)``."""
    wanted = [
        f"{each.count} for "
        + (f"port {each.requester_id or each.id}" if each.alias is None else f"alias {each.alias}")
        for each in request.demand.devices
    ]
    return f"have enough PCI devices free ({listed(wanted)})" if wanted else "have PCI devices free"


WORDS = {"NUMATopologyFilter": room_in_cells, "PciPassthroughFilter": enough_devices}
"""Phrases for hosts that pass a filter of hardware, by the name of the filter."""


def listed(words: Sequence[str]) -> str:
    """Return a list in words: ``a``, ``a and b``, ``a, b and c``."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
