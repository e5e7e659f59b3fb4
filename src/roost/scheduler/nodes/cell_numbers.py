"""The numbers of one NUMA cell in the columns of the node table."""

from functools import lru_cache
from typing import Final

from roost.fleet.hardware.cpus import Cpus
from roost.fleet.hardware.host_topology import HostCell, Pages, threads_of

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
