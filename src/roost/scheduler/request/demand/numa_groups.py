"""The NUMA nodes of a request as request groups, for hosts whose NUMA nodes are child providers.

Each guest cell is one granular group on a provider with the trait HW_NUMA_ROOT, which has VCPU, PCPU and
MEMORY_MB, and a class for each size of its huge pages. Memory in huge pages is not part of MEMORY_MB. No two
cells share a node.

Source: the model of "NUMA topology with resource providers", a specification of Nova for Ussuri that was not
built. It has page sizes as traits of further children; here they are classes, so that a node is one provider.

PCI devices may be wanted close to the nodes: a device is close to a node if its provider is below the node's.
A query asks for that with ``same_subtree``: the group of a guest node, and the groups of the devices close to
it. A query must name the node of each device, so that there is one query for each way to divide the devices
among the nodes. Nodes with equal requests are alike: of ways that differ only in their order, one is used.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, pairwise, product
from math import comb, prod
from typing import Final, Literal

from roost.fleet.hardware.guest_topology import ANY, LARGE, SMALL, GuestCell, GuestTopology
from roost.fleet.hardware.pci_choice import group_suffix
from roost.model.allocation import Candidate, Resources
from roost.model.request import RequestGroup, all_of
from roost.model.spec import PciRequest
from roost.scheduler.errors import BadRequestSpec

NumaModel = Literal["objects", "trees", "both"]
"""The model of the NUMA nodes of hosts: as objects in the reports of nodes, as child providers, or both, each
on some of the hosts."""

NUMA_ROOT: Final = "HW_NUMA_ROOT"
"""The trait of a provider that is a NUMA node."""

_SUFFIX: Final = "_NUMA"

LARGE_PAGES: Final = (1_048_576, 2_048)
"""Sizes in KiB that ``hw:mem_page_size=large`` stands for, in the order in which they are tried."""

LARGEST_SMALL_PAGE: Final = 64
"""Largest page size in KiB whose memory is MEMORY_MB: the smallest pages of a host are 4 to 64 KiB."""


def page_class(size: int) -> str:
    """Return the resource class of huge pages of ``size`` KiB; an amount is a number of pages."""
    return f"CUSTOM_HUGEPAGES_{size}KB"


def suffix_of(number: int) -> str:
    """Return the suffix of the group for the cell at a position."""
    return f"{_SUFFIX}{number}"


def is_of_tree(candidate: Candidate) -> bool:
    """Return whether a candidate has the cells of its guest on child providers."""
    return suffix_of(0) in candidate.mappings


def is_node(group: RequestGroup) -> bool:
    """Return whether a group asks for the NUMA node of a guest cell."""
    return group.suffix.startswith(_SUFFIX)


def page_sizes(guest: GuestTopology, flavor: str) -> list[int | None]:
    """Return the allowed sizes of pages for the guest's memory in KiB, best first; None for MEMORY_MB.

    Raises:
        BadRequestSpec: the memory of a cell is no multiple of the size.
    """
    size = guest.page_size
    if size is None or size == SMALL or 0 < size <= LARGEST_SMALL_PAGE:
        return [None]
    sizes = LARGE_PAGES if size in (LARGE, ANY) else (size,)
    found: list[int | None] = [
        each for each in sizes if all(cell.memory_mb * 1024 % each == 0 for cell in guest.cells)
    ]
    if size == ANY:
        found.append(None)
    if not found:
        memory = " and ".join(sorted({f"{cell.memory_mb} MiB" for cell in guest.cells}))
        raise BadRequestSpec(
            f"flavor {flavor}: the memory of a NUMA node, {memory}, is no multiple of a page of "
            f"{' or '.join(f'{each} KiB' for each in sorted(sizes))}"
        )
    return found


def numa_groups(
    guest: GuestTopology, page_size: int | None, left_out: Collection[str]
) -> Iterator[RequestGroup]:
    """Yield a group for each cell. ``left_out``: classes that the flavor asks for in other groups."""
    for number, cell in enumerate(guest.cells):
        amounts = _amounts(cell, guest.reserved(number), page_size)
        resources = {name: n for name, n in amounts.items() if n and name not in left_out}
        if resources:
            yield RequestGroup(resources, suffix_of(number), all_of(NUMA_ROOT))


def _amounts(cell: GuestCell, reserved: int, page_size: int | None) -> Resources:
    amounts = {"VCPU": cell.shared, "PCPU": cell.pinned + reserved}
    if page_size is None:
        amounts["MEMORY_MB"] = cell.memory_mb
    else:
        amounts[page_class(page_size)] = cell.memory_mb * 1024 // page_size
    return amounts


Subtrees = tuple[frozenset[str], ...]
"""Sets of group suffixes; the providers of the groups in one set are in one subtree."""

Way = tuple[tuple[int, ...], ...]
"""For each node, the number of devices of each request that are close to it."""

MOST_WAYS: Final = 16
"""Most ways to divide devices among nodes, each of which is one query."""
_MOST_TRIED: Final = 2_000

_HARD: Final = ("required", "socket")


def near_nodes(nodes: Sequence[RequestGroup], requests: Sequence[PciRequest]) -> Iterator[Subtrees]:
    """Yield the values for ``same_subtree``, the best first.

    Values that put all devices close to nodes come first. Then come values for the devices that must be
    close: of the policies ``required`` and ``socket``, as trees have no sockets.

    Raises:
        BadRequestSpec: there are too many ways to divide the devices that must be close to nodes.
    """
    must = [each for each in requests if each.numa_policy in _HARD]
    if len(must) < len(requests):
        yield from _subtrees(nodes, requests) or ()
    found = _subtrees(nodes, must)
    if found is None:
        devices = sum(each.count for each in must)
        raise BadRequestSpec(
            f"{devices} PCI devices that must be close to {len(nodes)} NUMA nodes can be divided among these "
            f"in more than {MOST_WAYS} ways"
        )
    yield from found


def _subtrees(nodes: Sequence[RequestGroup], requests: Sequence[PciRequest]) -> list[Subtrees] | None:
    """Return the subtrees of each way to divide all devices; None if there are too many ways."""
    counts = [each.count for each in requests]
    if prod(comb(count + len(nodes) - 1, count) for count in counts) > _MOST_TRIED:
        return None
    ways: dict[Way, None] = {}
    for shares in product(*(list(_shares(count, len(nodes))) for count in counts)):
        ways[_in_order(nodes, tuple(tuple(share[at] for share in shares) for at in range(len(nodes))))] = None
    return None if len(ways) > MOST_WAYS else [_of_way(nodes, requests, way) for way in ways]


def _shares(count: int, nodes: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to divide equal devices among nodes, ways with most devices on early nodes first."""
    for bars in sorted(combinations(range(count + nodes - 1), nodes - 1), reverse=True):
        ends = (-1, *bars, count + nodes - 1)
        yield tuple(after - before - 1 for before, after in pairwise(ends))


def _in_order(nodes: Sequence[RequestGroup], way: Way) -> Way:
    """Return the representative of all ways that differ only in the order of nodes that are alike."""
    ordered = list(way)
    for first in nodes:
        alike = [at for at, node in enumerate(nodes) if node.resources == first.resources]
        for at, share in zip(alike, sorted((ordered[at] for at in alike), reverse=True), strict=True):
            ordered[at] = share
    return tuple(ordered)


def _of_way(nodes: Sequence[RequestGroup], requests: Sequence[PciRequest], way: Way) -> Subtrees:
    used = [0] * len(requests)
    subtrees = []
    for node, share in zip(nodes, way, strict=True):
        suffixes = []
        for at, (request, count) in enumerate(zip(requests, share, strict=True)):
            suffixes += [group_suffix(request, used[at] + number) for number in range(count)]
            used[at] += count
        if suffixes:
            subtrees.append(frozenset((node.suffix, *suffixes)))
    return tuple(subtrees)
