"""PCI devices close to the NUMA nodes of a guest, where both are providers in the trees of hosts.

A device is close to a NUMA node if its provider is below the node's. A query asks for that with
``same_subtree``: the group of a guest node, and the groups of the devices close to it. A query must name the
node of each device, so that there is one query for each way to divide the devices among the nodes. Nodes with
equal requests are alike: of ways that differ only in their order, one is used.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, product
from math import comb, prod
from typing import Final

from roost.fleet.hardware.pci_choice import group_suffix
from roost.model.request import RequestGroup
from roost.model.spec import PciRequest
from roost.scheduler.errors import BadRequestSpec

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
