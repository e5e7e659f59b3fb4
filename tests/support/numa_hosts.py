"""NUMA topologies of nodes, as they report them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def reported_cell(
    id: int,
    cpus: Iterable[int],
    *,
    dedicated: Iterable[int] | None = None,
    memory_mb: int = 4096,
    pages: Mapping[int, int] | None = None,
    threads: int = 1,
    **more: Any,
) -> dict[str, Any]:
    """A cell in Nova's names, as a plain object.

    ``dedicated`` are the CPUs that can be pinned to, by default all. ``threads``: of each core, whose CPUs
    follow one another. ``pages``: size in KiB -> number; by default all memory is in pages of 4 KiB.
    """
    shared = sorted(cpus)
    pinnable = shared if dedicated is None else sorted(dedicated)
    everything = sorted({*shared, *pinnable})
    sizes = {4: memory_mb * 256} if pages is None else pages
    return {
        "id": id,
        "cpuset": shared,
        "pcpuset": pinnable,
        "memory": memory_mb,
        "siblings": [everything[at : at + threads] for at in range(0, len(everything), threads)],
        "mempages": [{"size_kb": size, "total": total} for size, total in sizes.items()],
        **more,
    }


def reported(*cells: Mapping[str, Any]) -> dict[str, Any]:
    """A topology of plain objects."""
    return {"cells": list(cells)}


def enveloped(topology: Mapping[str, Any]) -> dict[str, Any]:
    """A topology of plain objects as Nova serialises it."""
    cells = []
    for cell in topology["cells"]:
        data = dict(cell)
        data["mempages"] = [_object("NUMAPagesTopology", "1.1", each) for each in cell["mempages"]]
        if (network := data.get("network_metadata")) is not None:
            data["network_metadata"] = _object("NetworkMetadata", "1.0", network)
        cells.append(_object("NUMACell", "1.5", data))
    return _object("NUMATopology", "1.2", {"cells": cells})


def two_cells(cpus: Sequence[int] = (4, 4), **more: Any) -> dict[str, Any]:
    """A node with two equal cells, unless they have different numbers of CPUs."""
    first, second = cpus
    return reported(
        reported_cell(0, range(first), **more), reported_cell(1, range(first, first + second), **more)
    )


def _object(name: str, version: str, data: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "nova_object.name": name,
        "nova_object.namespace": "nova",
        "nova_object.version": version,
        "nova_object.data": dict(data),
    }
