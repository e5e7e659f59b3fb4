"""The NUMA cells and PCI devices of a host with the use of its guests, as drivers report them."""

from collections.abc import Mapping, Sequence
from typing import Any

from roost.fleet.hardware.cpus import numbers_of
from roost.fleet.hardware.host_topology import HostCell, decoded, with_assigned
from roost.fleet.hardware.pci_choice import FreePools
from roost.fleet.hardware.pci_pools import pools_of
from roost.model.assignment import Assignment


def used_topology(
    topology: Mapping[str, Any] | None, guests: Sequence[Assignment]
) -> dict[str, object] | None:
    """Return the topology of a host with the use of its guests. ``topology``: plain data of the empty host.

    Raises: `roost.fleet.hardware.host_topology.UnreadableTopology` if it is no topology.
    """
    if topology is None:
        return None
    used = with_assigned(decoded(topology), [cell for guest in guests for cell in guest.cells])
    by_id = {cell.id: cell for cell in used.cells}
    return {"cells": [_used_cell(cell, by_id[cell["id"]]) for cell in topology["cells"]]}


def free_pools(
    pools: Sequence[Mapping[str, object]], guests: Sequence[Assignment]
) -> tuple[dict[str, object], ...]:
    """Return the pools of a host without its guests' devices. ``pools``: plain data of the empty host."""
    left = FreePools.reported(pools).without(each for guest in guests for each in guest.devices)
    by_key = {pool.key: pool for pool in left.pools}
    found: list[dict[str, object]] = []
    for pool in pools:
        [of_pool] = pools_of([pool])
        if (some := by_key.get(of_pool.key)) is not None:
            devices = {"devices": list(some.devices)} if "devices" in pool else {}
            found.append({**pool, "count": some.count, **devices})
    return tuple(found)


def _used_cell(reported: Mapping[str, Any], used: HostCell) -> dict[str, object]:
    free = {pages.size_kb: pages.free for pages in used.pages}
    return {
        **reported,
        "cpu_usage": used.cpu_usage,
        "memory_usage": used.memory_used_mb,
        "pinned_cpus": list(numbers_of(used.pinned)),
        "mempages": [
            {**pages, "used": pages["total"] - pages.get("reserved", 0) - free[pages["size_kb"]]}
            for pages in reported.get("mempages", ())
        ],
    }
