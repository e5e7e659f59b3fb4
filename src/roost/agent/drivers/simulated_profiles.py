"""Profiles of simulated hosts: TOML files with the providers of a kind of host, beside this module.

NUMA cells and PCI devices are plain data in Nova's names.
"""

from pathlib import Path
from typing import Final

import msgspec

from roost.agent.drivers.simulated import SimulatedHost, SimulatedNodes, SimulatedPool, SimulatedProvider
from roost.agent.toml_file import read_toml
from roost.model.errors import OperatorError
from roost.model.inventory import Inventory

_FOLDER = Path(__file__).with_name("profiles")


class HostProfile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of host: inventory and traits of its root, and the providers below it.

    ``nodes``: the nodes instead, each with a root of its own. ``pools``: sharing providers that serve it.
    """

    inventory: dict[str, Inventory] = {}
    traits: tuple[str, ...] = ()
    providers: tuple[SimulatedProvider, ...] = ()
    nodes: tuple[SimulatedNodes, ...] = ()
    pools: tuple[SimulatedPool, ...] = ()

    def host(self, name: str, traits: tuple[str, ...] = ()) -> SimulatedHost:
        """Return a host of this kind. ``traits``: further traits of its root."""
        return SimulatedHost(
            name,
            self.inventory,
            children=self.providers,
            traits=(*self.traits, *traits),
            nodes=self.nodes,
            pools=self.pools,
        )


def profile_names() -> list[str]:
    """Return the names of the profiles in this package."""
    return sorted(path.stem for path in _FOLDER.glob("*.toml"))


def read_profile(name: str) -> HostProfile:
    """Read a profile by its name, or by the path of a file, which has a slash. Raises `OperatorError`."""
    if "/" not in name and name not in profile_names():
        raise OperatorError(f"there is no profile {name}; there are: {', '.join(profile_names())}")
    path = Path(name) if "/" in name else _FOLDER / f"{name}.toml"
    try:
        return read_toml(path, HostProfile)
    except (OSError, ValueError) as error:
        raise OperatorError(f"the profile {path} cannot be read: {error}") from error


PCI_DEVICE: Final = {"vendor_id": "10de", "product_id": "2236", "dev_type": "type-PCI"}
"""The ids and the type of each PCI device."""

_SMALL_KB: Final = 4
_LARGE_KB: Final = 2_048


def numa_topology(cells: int, vcpus: int, memory_mb: int) -> dict[str, object] | None:
    """Return the topology of an empty host; None for one without cells.

    CPUs and memory (MiB) are divided among the cells; the first cells get the remaining CPUs. Two consecutive
    CPUs are a core. Half of the memory is in pages of 2 MiB, half in pages of 4 KiB.
    """
    if not cells:
        return None
    found, first = [], 0
    for number in range(cells):
        count = vcpus // cells + (number < vcpus % cells)
        cpus = list(range(first, first + count))
        first += count
        memory = memory_mb // cells
        large = memory // 2 * 1024 // _LARGE_KB
        small = (memory * 1024 - large * _LARGE_KB) // _SMALL_KB
        found.append(
            {
                "id": number,
                "socket": number,
                "cpuset": cpus,
                "pcpuset": cpus,
                "siblings": [cpus[at : at + 2] for at in range(0, count, 2)],
                "memory": memory,
                "mempages": [{"size_kb": _SMALL_KB, "total": small}, {"size_kb": _LARGE_KB, "total": large}],
            }
        )
    return {"cells": found}


def pci_device_pools(devices: int, cells: int) -> tuple[dict[str, object], ...]:
    """Return the pools of an empty host: one for each device, assigned to the cells in turn."""
    return tuple(
        {
            **PCI_DEVICE,
            "count": 1,
            "numa_node": number % cells if cells else None,
            "address": f"{number >> 8:04x}:{number & 255:02x}:00.0",
        }
        for number in range(devices)
    )
