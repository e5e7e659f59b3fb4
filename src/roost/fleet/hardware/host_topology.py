"""`HostTopology`: the NUMA cells of a compute node, and their use."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from roost.fleet.hardware.cpus import MOST_CPUS, Cpus, set_of
from roost.model.assignment import AssignedCell

MOST_CELLS = 64
"""The NUMA cells that a node can have; a report with more is refused."""


class UnreadableTopology(ValueError):
    """The reported NUMA topology of a node is invalid; the text says where."""


class Pages(NamedTuple):
    """The pages of one size in a host cell: KiB of one page, number of all, and number of free ones.

    ``free`` is negative if a host came back with fewer pages than are used.
    """

    size_kb: int
    total: int
    free: int

    @property
    def free_kb(self) -> int:
        """KiB in free pages."""
        return self.free * self.size_kb

    @property
    def total_kb(self) -> int:
        """KiB in all pages."""
        return self.total * self.size_kb


@lru_cache(maxsize=256)
def threads_of(siblings: tuple[Cpus, ...]) -> int:
    """Return the threads of the largest core of a cell; 1 without hyperthreading."""
    return max((core.bit_count() for core in siblings), default=1) or 1


class HostCell(NamedTuple):
    """One NUMA cell of a node.

    - ``cpuset``: the CPUs that shared vCPUs float over; ``pcpuset``: the CPUs that vCPUs can be pinned to.
      The sets are equal on a node that does not distinguish them, else disjoint.
    - ``pinned``: the CPUs of ``pcpuset`` that are taken. ``cpu_usage``: shared vCPUs on the cell.
    - ``siblings``: the CPUs of each core. They are disjoint.
    - ``memory_mb``, ``memory_used_mb``: MiB. ``pages``: by size, ascending.
    - ``physnets``, ``tunneled``: the networks that this cell is close to.
    - ``socket``: None if it is not reported.

    Source: ``NUMACell`` of ``nova/objects/numa.py``.
    """

    id: int
    cpuset: Cpus
    pcpuset: Cpus
    pinned: Cpus
    cpu_usage: int
    siblings: tuple[Cpus, ...]
    memory_mb: int
    memory_used_mb: int
    pages: tuple[Pages, ...]
    physnets: frozenset[str]
    tunneled: bool
    socket: int | None

    @property
    def free_cpus(self) -> Cpus:
        """The CPUs that vCPUs can still be pinned to."""
        return self.pcpuset & ~self.pinned

    @property
    def free_memory_mb(self) -> int:
        """MiB that no instance uses."""
        return self.memory_mb - self.memory_used_mb

    @property
    def threads_per_core(self) -> int:
        """The threads of the cell's largest core; 1 without hyperthreading."""
        return threads_of(self.siblings)

    @property
    def free_cores(self) -> list[Cpus]:
        """The free CPUs of each core that has any."""
        free = self.free_cpus
        return [core & free for core in self.siblings if core & free]


class HostTopology:
    """The cells of a node. Hashable: equal topologies are equal keys."""

    __slots__ = ("__dict__", "cells")

    def __init__(self, cells: tuple[HostCell, ...]) -> None:
        self.cells = cells

    @cached_property
    def _hash(self) -> int:
        return hash(self.cells)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostTopology) and (self is other or self.cells == other.cells)

    def __repr__(self) -> str:
        return f"HostTopology({self.cells!r})"

    @cached_property
    def sockets(self) -> Mapping[int, int | None]:
        """The socket of each cell by the cell's id, None where it is not reported."""
        return {cell.id: cell.socket for cell in self.cells}


# Decoding

_Number = Annotated[int, Meta(ge=0, le=2**50)]
_Cpu = Annotated[int, Meta(ge=0, lt=MOST_CPUS)]
_CpuList = Annotated[tuple[_Cpu, ...], Meta(max_length=MOST_CPUS)]


class _Network(msgspec.Struct):
    physnets: list[str] = []
    tunneled: bool = False


class _Pages(msgspec.Struct):
    size_kb: Annotated[int, Meta(ge=1, le=2**40)]
    total: _Number
    used: _Number = 0
    reserved: _Number = 0


class _Cell(msgspec.Struct):
    id: _Number
    cpuset: _CpuList
    memory: _Number
    pcpuset: _CpuList | None = None
    cpu_usage: _Number = 0
    memory_usage: _Number = 0
    pinned_cpus: _CpuList = ()
    siblings: Annotated[tuple[_CpuList, ...], Meta(max_length=MOST_CPUS)] = ()
    mempages: Annotated[list[dict[str, Any]], Meta(max_length=64)] = []
    network_metadata: dict[str, Any] | None = None
    socket: Annotated[int, Meta(ge=-(2**31), le=2**31)] | None = None


class _Topology(msgspec.Struct):
    cells: Annotated[list[dict[str, Any]], Meta(max_length=MOST_CELLS)]


def decoded(reported: Mapping[str, Any]) -> HostTopology:
    """Decode the topology in a report: a serialised ``NUMATopology`` of Nova, or the same as plain objects.

    A cell without ``pcpuset`` comes from a Nova that did not distinguish shared and dedicated CPUs.

    Raises:
        UnreadableTopology: something is missing or has a value that it cannot have; the text says where.
    """
    try:
        topology = msgspec.convert(_members(reported), _Topology)
        cells = tuple([_cell(msgspec.convert(_members(each), _Cell)) for each in topology.cells])
    except msgspec.ValidationError as error:
        raise UnreadableTopology(str(error)) from error
    _check(cells)
    return HostTopology(cells)


def _members(reported: Mapping[str, Any]) -> Any:
    """Return the members of an object, without the envelope of a serialised one."""
    return reported.get("nova_object.data", reported)


def _cell(cell: _Cell) -> HostCell:
    cpuset = _set_of(cell.cpuset)
    network = _Network()
    if cell.network_metadata is not None:
        network = msgspec.convert(_members(cell.network_metadata), _Network)
    pages = [msgspec.convert(_members(each), _Pages) for each in cell.mempages]
    sizes = {each.size_kb for each in pages}
    if len(sizes) < len(pages):
        raise UnreadableTopology(f"cell {cell.id} has a page size twice")
    return HostCell(
        id=cell.id,
        cpuset=cpuset,
        pcpuset=cpuset if cell.pcpuset is None else _set_of(cell.pcpuset),
        pinned=_set_of(cell.pinned_cpus),
        cpu_usage=cell.cpu_usage,
        siblings=_cores(cell.siblings),
        memory_mb=cell.memory,
        memory_used_mb=cell.memory_usage,
        pages=tuple(
            sorted(Pages(each.size_kb, each.total, each.total - each.used - each.reserved) for each in pages)
        ),
        physnets=frozenset(network.physnets),
        tunneled=network.tunneled,
        socket=cell.socket,
    )


# The nodes of a cloud are of few kinds, so the same lists of CPUs recur.
_set_of = lru_cache(maxsize=4096)(set_of)


@lru_cache(maxsize=1024)
def _cores(siblings: tuple[tuple[int, ...], ...]) -> tuple[Cpus, ...]:
    cores, seen = [], 0
    for each in siblings:
        core = set_of(each)
        if seen & core:
            raise UnreadableTopology(f"CPUs {sorted(each)} are in two cores")
        seen |= core
        cores.append(core)
    return tuple(cores)


def _check(cells: tuple[HostCell, ...]) -> None:
    """Raise `UnreadableTopology` where a cell or a CPU is there twice: two guests would get it."""
    seen = 0
    for cell in cells:
        if seen & cell.pcpuset:
            raise UnreadableTopology(f"cell {cell.id} has CPUs of another cell in its pcpuset")
        seen |= cell.pcpuset
    if len({cell.id for cell in cells}) < len(cells):
        raise UnreadableTopology("two cells have the same id")


def with_assigned(topology: HostTopology, assigned: Iterable[AssignedCell]) -> HostTopology:
    """Return the topology with these cells counted as used. Cells that the node no longer has are ignored.

    Source: ``numa_usage_from_instance_numa`` of ``nova/virt/hardware.py``.
    """
    by_host: dict[int, list[AssignedCell]] = defaultdict(list)
    for cell in assigned:
        by_host[cell.host].append(cell)
    if not by_host:
        return topology
    return HostTopology(
        tuple(
            [
                cell if cell.id not in by_host else _with_used(cell, by_host[cell.id])
                for cell in topology.cells
            ]
        )
    )


def _with_used(host: HostCell, assigned: Sequence[AssignedCell]) -> HostCell:
    pages = {each.size_kb: each for each in host.pages}
    smallest = min(pages, default=None)
    for cell in assigned:
        size = smallest if cell.page_size_kb is None else cell.page_size_kb
        if size in pages:
            had = pages[size]
            pages[size] = Pages(had.size_kb, had.total, had.free - -(-cell.memory_mb * 1024 // had.size_kb))
    return host._replace(
        pinned=host.pinned | set_of(cpu for cell in assigned for cpu in cell.cpus),
        cpu_usage=host.cpu_usage + sum(cell.shared for cell in assigned),
        memory_used_mb=host.memory_used_mb + sum(cell.memory_mb for cell in assigned),
        pages=tuple([pages[each.size_kb] for each in host.pages]),
    )
