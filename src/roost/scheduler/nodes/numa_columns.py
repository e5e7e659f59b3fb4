"""The NUMA cells of nodes as columns, which find the nodes that a guest topology fits on, all at once.

A column has a number for each node and each of its cells. A condition of one guest cell on one host cell is
a comparison of columns, the one that `roost.fleet.hardware.cell_fit` makes for a single cell. Equal guest
cells share one *demand*. By Hall's theorem each guest cell finds a host cell of its own if, for each set of
demands, the host cells that serve one of them are at least as many as the guest cells with one of them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations
from typing import Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Bools, Float64, Int64
from roost.fleet.hardware.cell_fit import CellLimits
from roost.fleet.hardware.guest_topology import ANY, LARGE, SMALL, GuestTopology
from roost.fleet.hardware.host_topology import HostCell
from roost.scheduler.nodes.labels import Indexes
from roost.scheduler.nodes.numa_reports import FIELDS, CellNumbers

MOST_DEMANDS: Final = 4
"""Most different demands of one guest that the columns decide exactly. For a guest with more, the columns
find the nodes where it may fit."""


N = TypeVar("N", bound=np.generic)


class CellDemand(NamedTuple):
    """The demand of one guest cell: shared and dedicated vCPUs, host CPUs for emulator threads, MiB."""

    shared: int
    pinned: int
    reserved: int
    memory_mb: int


class NumaCells(NamedTuple):
    """The cells of one node, by its index in the node table, with their numbers and allocation ratios."""

    node: int
    cells: tuple[HostCell, ...]
    numbers: Sequence[CellNumbers]
    limits: CellLimits


class CellPlaces(NamedTuple):
    """The ids, sockets and networks of the cells of some nodes, each array [cells, nodes].

    ``exists``: there is such a cell. ``id``: its id. ``socket``: its socket, `NO_SOCKET` of one that reports
    none. ``tunneled`` and ``physnets``: the cell is close to tunneled networks, or to a physical network.
    """

    exists: Bools
    id: Int64
    socket: Int64
    tunneled: Bools
    physnets: Mapping[str, Bools]


class NumaColumns:
    """The columns, by index in the node table. A node without a topology has no cells."""

    def __init__(self) -> None:
        # int64[fields, nodes, cells], zeros where a node has no such cell.
        self._cells: Int64 = np.zeros((len(FIELDS), 0, 0), dtype=np.int64)
        # By page size in KiB: KiB in free pages, int64[nodes, cells], -1 where a cell has no such pages.
        self._pages: dict[int, Int64] = {}
        # By name of a physical network, whether a cell is close to it: bool[nodes, cells].
        self._physnets: dict[str, Bools] = {}
        # Allocation ratios of each node: float64[2, nodes].
        self._ratios: Float64 = np.ones((2, 0))

    def put(self, nodes: Sequence[NumaCells]) -> None:
        """Set the cells of nodes, with their capacity and use."""
        if not nodes:
            return
        rows = [each.node for each in nodes]
        self._make_room(max(rows) + 1, max(len(each.cells) for each in nodes))
        self._cells[:, rows, :] = 0
        for pages in self._pages.values():
            pages[rows] = -1
        for close in self._physnets.values():
            close[rows] = False
        self._ratios[:, rows] = np.array([each.limits for each in nodes]).T
        cells = [(each.node, at, cell) for each in nodes for at, cell in enumerate(each.cells)]
        if not cells:
            return
        numbers = np.array([cell for each in nodes for cell in each.numbers]).T
        self._cells[:, [row for row, _, _ in cells], [at for _, at, _ in cells]] = numbers
        having: dict[int, list[tuple[int, int, int]]] = {}
        for row, at, cell in cells:
            for pages_there in cell.pages:
                having.setdefault(pages_there.size_kb, []).append((row, at, pages_there.free_kb))
            for physnet in cell.physnets:
                self._close_to(physnet)[row, at] = True
        for size, there in having.items():
            rows_with, cells_with, free_kb = zip(*there, strict=True)
            self._pages_of(size)[list(rows_with), list(cells_with)] = free_kb

    def fits(self, guest: GuestTopology, index: Indexes) -> Bools:
        """Return the nodes whose cells have room for a guest: bool[len(index)].

        A guest with up to `MOST_DEMANDS` different demands fits on exactly these nodes, as far as devices and
        networks allow. ``index`` must be of nodes that were `put`.
        """
        fits: Bools = np.ones(len(index), dtype=np.bool_)
        for cells, needed in self.needed(guest, index):
            fits &= np.count_nonzero(cells, axis=1) >= needed
        return fits

    def needed(self, guest: GuestTopology, index: Indexes) -> list[tuple[Bools, int]]:
        """Return for each set of demands the host cells that serve one of them, bool[len(index), cells], and
        the number of these that the guest needs."""
        demands = demands_of(guest)
        counts = list(demands.values())
        serving = [self._serve(guest, demand, index) for demand in demands]
        most = len(demands) if len(demands) <= MOST_DEMANDS else 1
        sizes = {*range(1, most + 1), len(demands)}
        sets = (each for size in sorted(sizes) for each in combinations(range(len(demands)), size))
        return [
            (reduce(np.logical_or, (serving[number] for number in some)), sum(counts[each] for each in some))
            for some in sets
        ]

    def places(self, index: Indexes) -> CellPlaces:
        """Return the ids, sockets and networks of the cells of some nodes."""
        column = dict(zip(FIELDS, self._cells, strict=True))
        return CellPlaces(
            (column["exists"][index] > 0).T,
            column["id"][index].T,
            column["socket"][index].T,
            (column["tunneled"][index] > 0).T,
            {physnet: close[index].T for physnet, close in self._physnets.items()},
        )

    def _serve(self, guest: GuestTopology, demand: CellDemand, index: Indexes) -> Bools:
        """Return the host cells that serve one demand: bool[len(index), cells]."""
        column = dict(zip(FIELDS, self._cells[:, index], strict=True))
        serve: Bools = column["exists"] > 0
        serve &= self._enough_memory(guest, demand, column, index)
        if guest.shares:
            cpu_ratio, ram_ratio = self._ratios[:, index, np.newaxis]
            serve &= demand.shared <= column["shared_cpus"]
            serve &= column["cpu_usage"] + demand.shared <= column["shared_cpus"] * cpu_ratio
            serve &= column["memory_used_mb"] + demand.memory_mb <= column["memory_mb"] * ram_ratio
        if guest.pins:
            serve &= _enough_cpus(guest, demand, column)
        return serve

    def _enough_memory(
        self, guest: GuestTopology, demand: CellDemand, column: dict[str, Int64], index: Indexes
    ) -> Bools:
        memory_kb = demand.memory_mb * 1024
        smallest = column["smallest_page_kb"]
        if guest.page_size is None:
            have_mb = column["memory_mb"] - (column["memory_used_mb"] if guest.pins else 0)
            have_kb = column["smallest_free_kb" if guest.pins else "smallest_total_kb"]
            in_pages = (memory_kb <= have_kb) & (memory_kb % np.maximum(smallest, 1) == 0)
            return np.where(smallest > 0, in_pages, demand.memory_mb <= have_mb)
        enough: Bools = np.zeros(smallest.shape, dtype=np.bool_)
        for size, free_kb in self._pages.items():
            if memory_kb % size or guest.page_size not in (SMALL, LARGE, ANY, size):
                continue
            serves = memory_kb <= free_kb[index]
            if guest.page_size in (SMALL, LARGE):
                serves &= (smallest == size) == (guest.page_size == SMALL)
            enough |= serves
        return enough

    def _pages_of(self, size_kb: int) -> Int64:
        found = self._pages.get(size_kb)
        if found is None:
            found = self._pages[size_kb] = np.full(self._cells.shape[1:], -1, dtype=np.int64)
        return found

    def _close_to(self, physnet: str) -> Bools:
        found = self._physnets.get(physnet)
        if found is None:
            found = self._physnets[physnet] = np.zeros(self._cells.shape[1:], dtype=np.bool_)
        return found

    def _make_room(self, nodes: int, cells: int) -> None:
        _, had_nodes, had_cells = self._cells.shape
        if nodes <= had_nodes and cells <= had_cells:
            return
        nodes = had_nodes if nodes <= had_nodes else max(nodes, 2 * had_nodes)
        cells = max(cells, had_cells)
        self._cells = _grown(self._cells, (len(FIELDS), nodes, cells), 0)
        self._pages = {size: _grown(pages, (nodes, cells), -1) for size, pages in self._pages.items()}
        self._physnets = {name: _grown(close, (nodes, cells), 0) for name, close in self._physnets.items()}
        ratios = np.ones((2, nodes))
        ratios[:, :had_nodes] = self._ratios
        self._ratios = ratios


def demands_of(guest: GuestTopology) -> Counter[CellDemand]:
    """Return the demands of a guest's cells, and how many cells have each."""
    return Counter(
        CellDemand(cell.shared, cell.pinned, guest.reserved(number), cell.memory_mb)
        for number, cell in enumerate(guest.cells)
    )


def is_exact(guest: GuestTopology) -> bool:
    """Return whether the columns decide exactly if a guest fits, as far as devices and networks allow."""
    return len(demands_of(guest)) <= MOST_DEMANDS


def _enough_cpus(guest: GuestTopology, demand: CellDemand, column: dict[str, Int64]) -> Bools:
    """As `roost.fleet.hardware.pinning.pin`."""
    count, reserved = demand.pinned, demand.reserved
    enough: Bools = column["free_cpus"] >= count + reserved
    if guest.thread_policy == "isolate":
        enough &= column["whole_cores"] >= max(1, count)
        enough &= column["free_cores"] >= count + reserved
        return enough & (count > 0)
    if guest.thread_policy == "require":
        enough &= column["with_siblings"] >= max(1, count)
    enough &= column["free_in_cores"] >= count + reserved
    return enough & (count > 0 or not reserved)


def _grown(column: npt.NDArray[N], shape: tuple[int, ...], fill: int) -> npt.NDArray[N]:
    grown: npt.NDArray[N] = np.full(shape, fill, dtype=column.dtype)
    grown[tuple(slice(size) for size in column.shape)] = column
    return grown
