"""NUMA cells and PCI devices for simulated hosts, as plain data in Nova's names."""

from typing import Final

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
