"""The PCI pools that nodes report, as columns, which find the nodes with enough devices for a request.

Pools of one *kind* have the same properties, apart from properties that identify single cards of a node.
Nodes report few kinds. So a request is matched with the kinds, and the devices of the kinds that suit are
added up for all nodes at once.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from roost.fleet.columns import Bools, Int64
from roost.fleet.hardware.pci_choice import DeviceConditions, FreePools
from roost.fleet.hardware.pci_pools import PciPool, free_devices
from roost.model.spec import PciRequest
from roost.scheduler.nodes.labels import Indexes

_OF_ONE_CARD: Final = frozenset(("address", "parent_ifname"))
_MOST_KNOWN: Final = 1_000
_encode: Final = msgspec.msgpack.Encoder().encode

NO_CELL: Final = -(2**40)
"""The NUMA cell of devices that report none."""

Kind = tuple[tuple[tuple[str, str | None], ...], int | None]
"""Properties, and the NUMA cell."""

Int32 = npt.NDArray[np.int32]

Counted = tuple[tuple[int, int], ...]
"""The pools of a node, in order: the number of the kind, and the devices."""


class _Decoded(NamedTuple):
    pools: FreePools
    counted: Counted


_NOTHING: Final = _Decoded(FreePools(()), ())


class Matching(NamedTuple):
    """The kinds of devices that match a request, as two masks bool[kinds].

    ``suit``: kinds with the properties that the request names. ``may_get``: kinds among these whose type the
    request may get.
    """

    suit: Bools
    may_get: Bools


class FreeDevices:
    """The free devices of some nodes: the kind of each pool and its devices, int32[slots, nodes] each."""

    def __init__(self, kind: Int32, count: Int32) -> None:
        self.kind = kind
        self.count = count

    def replace(self, position: int, counted: Counted) -> None:
        """Set the free devices of one node. It has no more pools than it reports."""
        self.count[:, position] = 0
        for slot, (kind, count) in enumerate(_by_kind(counted).items()):
            self.kind[slot, position] = kind
            self.count[slot, position] = count


class PciColumns:
    """The pools of each node, by index in the node table.

    A report is decoded once: by `decode`, or at the first read of the node's pools.
    """

    def __init__(self) -> None:
        self._reported: dict[int, Sequence[Mapping[str, Any]]] = {}
        self._decoded: dict[int, _Decoded] = {}
        self._known: dict[bytes, _Decoded] = {}
        self._free: dict[int, int] = {}
        # Nodes whose pools are not in the columns yet.
        self._waiting: dict[int, None] = {}
        self._kinds: dict[Kind, int] = {}
        self._examples: list[PciPool] = []
        # int32[slots, nodes]: the kind of each pool of a node, and its devices; a node that has fewer pools
        # has 0 devices in its last slots.
        self._kind: Int32 = np.zeros((0, 0), dtype=np.int32)
        self._count: Int32 = np.zeros((0, 0), dtype=np.int32)

    def free(self, index: int) -> int:
        """Return the free devices in all pools of a node."""
        return self._free.get(index, 0)

    def counted(self, index: int) -> Counted:
        """Return the kinds of a node's pools and their devices, without the identity of single cards."""
        return self._of(index).counted

    def matching(self, requests: Sequence[PciRequest]) -> tuple[list[Matching], Int64]:
        """Return the kinds of devices for each request, and the NUMA cell of each kind.

        Cells are int64[kinds], `NO_CELL` where none is reported.
        """
        self.decode(len(self._waiting))
        # A copy: another thread may add kinds meanwhile.
        kinds = [*self._examples]
        found = []
        for request in requests:
            wanted = DeviceConditions(request)
            suit = np.array([wanted.suits(each) for each in kinds], dtype=np.bool_)
            named = np.array([wanted.names(each) for each in kinds], dtype=np.bool_)
            found.append(Matching(suit, suit & named))
        cells = [NO_CELL if each.numa_node is None else each.numa_node for each in kinds]
        return found, np.array(cells, dtype=np.int64)

    def free_devices(self, index: Indexes) -> FreeDevices:
        """Return the devices that some nodes report as free, as a copy."""
        self.decode(len(self._waiting))
        if not self._kind.size:
            return FreeDevices(*np.zeros((2, 0, len(index)), dtype=np.int32))
        # A node beyond the columns reports no pools.
        known = np.minimum(index, self._kind.shape[1] - 1)
        free = FreeDevices(self._kind[:, known], self._count[:, known])
        free.count[:, index >= self._kind.shape[1]] = 0
        return free

    def put(self, index: int, reported: Sequence[Mapping[str, Any]]) -> None:
        """Take in the pools of a node; empty for a removed node."""
        self._decoded.pop(index, None)
        self._free.pop(index, None)
        if reported:
            self._reported[index] = reported
            self._free[index] = free_devices(reported)
            self._waiting[index] = None
        elif self._reported.pop(index, None) is not None:
            self._waiting[index] = None

    def pools(self, index: int) -> FreePools:
        """Return the free devices that a node reports."""
        return self._of(index).pools

    def _of(self, index: int) -> _Decoded:
        """Return the decoded report of a node. Equal reports, as of equal machines, share one object."""
        found = self._decoded.get(index)
        if found is None:
            reported = self._reported.get(index)
            if reported is None:
                return _NOTHING
            text = _encode(reported)
            found = self._known.get(text)
            if found is None:
                if len(self._known) == _MOST_KNOWN:
                    self._known.clear()
                pools = FreePools.reported(reported)
                found = self._known[text] = _Decoded(pools, self.counted_of(pools))
            self._decoded[index] = found
        return found

    def counted_of(self, pools: FreePools) -> Counted:
        """Return the kinds of some pools and their devices."""
        return tuple([(self._number(each), each.count) for each in pools.pools])

    def decode(self, most: int) -> int:
        """Put the pools of new reports into the columns, of ``most`` nodes at most. Returns their number."""
        indexes = list(islice(self._waiting, most))
        if not indexes:
            return 0
        nodes = max(indexes) + 1
        for index in indexes:
            counts = _by_kind(self._of(index).counted)
            self._make_room(len(counts), nodes)
            self._count[:, index] = 0
            for slot, (kind, count) in enumerate(counts.items()):
                self._kind[slot, index] = kind
                self._count[slot, index] = count
            self._waiting.pop(index, None)
        return len(indexes)

    def suitable(self, request: PciRequest, index: Indexes) -> Int64:
        """Return the devices of each node that suit a request, wherever they are: int64[len(index)]."""
        self.decode(len(self._waiting))
        if names_cards((request,)):
            wanted = DeviceConditions(request)
            counts = [
                sum(each.count for each in self.pools(at).pools if wanted.may_get(each))
                for at in index.tolist()
            ]
            return np.array(counts, dtype=np.int64)
        free = self.free_devices(index)
        [[matching], _] = self.matching((request,))
        total: Int64 = np.zeros(len(index), dtype=np.int64)
        for kind, count in zip(free.kind, free.count, strict=True):
            total += np.where(matching.may_get[kind], count, 0)
        return total

    def _number(self, pool: PciPool) -> int:
        # The properties of a pool are in order of their names.
        properties = tuple(item for item in pool.properties.items() if item[0] not in _OF_ONE_CARD)
        kind = properties, pool.numa_node
        number = self._kinds.get(kind)
        if number is None:
            number = self._kinds[kind] = len(self._examples)
            self._examples.append(pool)
        return number

    def _make_room(self, slots: int, nodes: int) -> None:
        have = self._kind.shape
        if slots > have[0] or nodes > have[1]:
            more = (max(slots, have[0]), nodes if nodes <= have[1] else max(nodes, 2 * have[1]))
            more = (more[0], max(more[1], have[1]))
            for name in ("_kind", "_count"):
                column = np.zeros(more, dtype=np.int32)
                column[: have[0], : have[1]] = getattr(self, name)
                setattr(self, name, column)


def _by_kind(counted: Counted) -> dict[int, int]:
    counts: dict[int, int] = {}
    for kind, count in counted:
        counts[kind] = counts.get(kind, 0) + count
    return counts


def names_cards(requests: Sequence[PciRequest]) -> bool:
    """Return whether requests name properties that identify single cards of a node."""
    return any(_OF_ONE_CARD & spec.keys() for each in requests for spec in each.specs)
