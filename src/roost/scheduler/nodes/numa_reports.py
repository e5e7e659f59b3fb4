"""The NUMA topologies of the nodes' reports, decoded, and the numbers of their cells in columns."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

import structlog

from roost.fleet.hardware.cpus import Cpus
from roost.fleet.hardware.host_topology import (
    HostCell,
    HostTopology,
    Pages,
    UnreadableTopology,
    decoded,
    threads_of,
)
from roost.model.node import NodeReport

FIELDS: Final = (
    "exists",
    "id",
    "socket",
    "tunneled",
    "shared_cpus",
    "free_cpus",
    "free_in_cores",
    "free_cores",
    "whole_cores",
    "with_siblings",
    "cpu_usage",
    "memory_mb",
    "memory_used_mb",
    "smallest_page_kb",
    "smallest_free_kb",
    "smallest_total_kb",
)


NO_SOCKET: Final = -(2**40)
"""The socket of a cell that reports none."""

CellNumbers = tuple[int, ...]
"""The numbers of one cell, in the order of `FIELDS`."""


def numbers_of(cell: HostCell) -> CellNumbers:
    """Return the numbers of one cell for the columns."""
    smallest = cell.pages[0] if cell.pages else _NO_PAGES
    return (
        1,
        cell.id,
        NO_SOCKET if cell.socket is None else cell.socket,
        int(cell.tunneled),
        cell.cpuset.bit_count(),
        *core_numbers(cell.siblings, cell.free_cpus, cell.pcpuset == cell.cpuset),
        cell.cpu_usage,
        cell.memory_mb,
        cell.memory_used_mb,
        smallest.size_kb,
        smallest.free_kb,
        smallest.total_kb,
    )


_NO_PAGES = Pages(0, 0, 0)


@lru_cache(maxsize=2**14)
def core_numbers(siblings: tuple[Cpus, ...], free: Cpus, keeps_whole: bool) -> tuple[int, ...]:
    """Return the numbers of a cell's free CPUs: the fields from ``free_cpus`` to ``with_siblings``.

    ``keeps_whole``: siblings can be kept idle, because the host does not separate dedicated from shared CPUs.
    The last results are cached: cells are of few kinds, and many of them are empty or full.
    """
    # Counts of free CPUs by core, because nodes in use have thousands of different sets of free CPUs.
    cores = [(core & free).bit_count() for core in siblings]
    threads = threads_of(siblings)
    having, by_threads = 0, [0]
    for number in range(threads, 0, -1):
        having += cores.count(number)
        if number > 1:
            by_threads.append(number * having)
    whole = cores.count(threads) if threads == 1 or keeps_whole else 0
    return (free.bit_count(), sum(cores), having, whole, max(by_threads))


_log = structlog.get_logger()


class _Decoded(NamedTuple):
    topology: HostTopology
    numbers: tuple[CellNumbers, ...]


class NumaReports:
    """The topology that each node reports, by index in the node table.

    A report is decoded once, by `decode` or at the first read of its topology. A topology is the same object
    until the node reports another one.
    """

    def __init__(self) -> None:
        self._decoded: dict[int, _Decoded] = {}
        # Reports that are not decoded yet.
        self._waiting: dict[int, NodeReport] = {}

    def put(self, index: int, report: NodeReport) -> None:
        """Take in the report of a node whose topology has changed."""
        self._decoded.pop(index, None)
        if report.numa_topology:
            self._waiting[index] = report
        else:
            self._waiting.pop(index, None)

    def of(self, index: int) -> HostTopology | None:
        """Return the topology of a node; None if it reports none that can be read."""
        found = self._of(index)
        return None if found is None else found.topology

    def numbers(self, index: int) -> Sequence[CellNumbers]:
        """Return the numbers of the cells of a node's topology."""
        found = self._of(index)
        return () if found is None else found.numbers

    def _of(self, index: int) -> _Decoded | None:
        report = self._waiting.get(index)
        if report is not None:
            topology = _decoded(report)
            if topology is not None:
                numbers = tuple([numbers_of(cell) for cell in topology.cells])
                self._decoded[index] = _Decoded(topology, numbers)
            # After the result is stored: another thread must not see a report without a topology.
            self._waiting.pop(index, None)
        return self._decoded.get(index)

    def decode(self, most: int) -> int:
        """Decode reports that are not decoded yet, ``most`` at most. Returns their number."""
        indexes = list(islice(self._waiting, most))
        for index in indexes:
            self.of(index)
        return len(indexes)


def _decoded(report: NodeReport) -> HostTopology | None:
    try:
        topology = decoded(report.numa_topology or {})
    except UnreadableTopology as error:
        _log.warning(
            "the NUMA topology of a node cannot be read: it takes no instance that asks for one",
            host=report.host,
            nodename=report.nodename,
            error=str(error),
        )
        return None
    return topology if topology.cells else None
