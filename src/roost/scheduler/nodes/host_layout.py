"""The layout of maps: all hosts in an order that stays, in groups of zone, label and cell.

A map is asked for every few seconds, and to sort a hundred thousand names takes longer than all else that it
needs. So the layout is kept until a node comes, goes or changes its place in it. Even then the sort would
hold the event loop for a quarter of a second: `HostLayouts.prepare` sorts in another thread, where numpy
lets the interpreter go.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple

import msgspec
import numpy as np

from roost.fleet.columns import Int64, Rows
from roost.model.aggregate import AVAILABILITY_ZONE
from roost.scheduler.nodes.labels import Values
from roost.scheduler.nodes.table import NodeTable

MOST_LABELS: Final = 4
"""Layouts by different labels that are kept at most."""

_FEW: Final = 2_000
"""Nodes whose names are sorted at once: that takes some milliseconds."""

_AT_ONCE: Final = 4_000
"""Names that are encoded before other tasks may run."""

_ROUNDS: Final = 3
"""Times that names are sorted apart while nodes come and go. Then they are sorted at once."""


class HostGroup(NamedTuple):
    """The hosts of one zone, label and cell: ``hosts`` of them, from the position ``first`` of a layout on.

    ``label``: the value of an aggregate metadata key such as ``rack``; empty for hosts without one.
    """

    zone: str
    label: str
    cell: str
    first: int
    hosts: int


class HostLayout(NamedTuple):
    """All nodes by zone, label, cell and name.

    ``nodes``: intp[n], their indexes in the node table. ``version``: equal in all processes for the same
    nodes in the same groups.
    """

    version: str
    nodes: Rows
    groups: tuple[HostGroup, ...]


class NamedCodes(NamedTuple):
    """A name for each node.

    ``names``: sorted, each of at least one node. ``codes``: intp[n], the place of each node's name in them.
    """

    names: list[str]
    codes: Rows


class _KeptLayout(NamedTuple):
    names: tuple[list[str], ...]
    codes: Int64
    layout: HostLayout


class HostLayouts:
    """The layouts of a node table. ``default_zone``: that of nodes whose aggregates name none."""

    def __init__(self, table: NodeTable, default_zone: str) -> None:
        self._table = table
        self._default_zone = default_zone
        self._structure = -1
        self._by_name: Rows = np.zeros(0, dtype=np.intp)
        self._uuids: list[str] = []
        self._kept: OrderedDict[str | None, _KeptLayout] = OrderedDict()

    @property
    def prepared(self) -> bool:
        """True if the names of all nodes are sorted, or are few."""
        return self._structure == self._table.structure or len(self._table) <= _FEW

    async def prepare(self) -> None:
        """Sort the names of all nodes, if any have come or gone, beside the other tasks of the event loop."""
        for _ in range(_ROUNDS):
            table, structure = self._table, self._table.structure
            if self.prepared:
                return
            indexes, hosts, nodenames = table.indexes(), table.hosts.copy(), table.nodenames.copy()
            parts = []
            for first in range(0, len(indexes), _AT_ONCE):
                some = indexes[first : first + _AT_ONCE]
                parts.append(
                    np.array(
                        [f"{hosts[each]}\0{nodenames[each]}".encode(errors="surrogatepass") for each in some]
                    )
                )
                await asyncio.sleep(0)
            # UTF-8 has the order of code points, as sorted() has it.
            order = await asyncio.to_thread(lambda: np.argsort(np.concatenate(parts), kind="stable"))  # noqa: B023
            if structure == table.structure:
                self._take(np.array(indexes, dtype=np.intp)[order])

    def by_name(self) -> Rows:
        """Return the indexes of all nodes by the name of the host, then of the node: intp[n]."""
        table = self._table
        if self._structure != table.structure:
            hosts, nodenames = table.hosts, table.nodenames
            order = sorted(table.indexes(), key=lambda index: (hosts[index], nodenames[index]))
            self._take(np.array(order, dtype=np.intp))
        return self._by_name

    def _take(self, order: Rows) -> None:
        uuids = list(map(self._table.nodes.__getitem__, order.tolist()))
        # The structure rises for other reasons too, and the index of a removed node is used again.
        if uuids != self._uuids or not np.array_equal(order, self._by_name):
            self._by_name, self._uuids = order, uuids
            self._kept.clear()
        self._structure = self._table.structure

    def zones(self, nodes: Rows) -> NamedCodes:
        """Return the availability zone of each node; of a node in several zones the first one."""
        return self._named(AVAILABILITY_ZONE, nodes, lambda values: (*values, self._default_zone)[0])

    def layout(self, label: str | None = None) -> HostLayout:
        """Return the layout of all nodes. ``label``: an aggregate metadata key; None: no label."""
        nodes = self.by_name()
        zones, labels = self.zones(nodes), NamedCodes([""], np.zeros(len(nodes), dtype=np.intp))
        if label is not None:
            labels = self._named(label, nodes, ", ".join)
        cells = self._cells(nodes)
        codes: Int64 = (zones.codes * len(labels.names) + labels.codes) * len(cells.names) + cells.codes
        names = (zones.names, labels.names, cells.names)
        kept = self._kept.get(label)
        if kept is None or kept.names != names or not np.array_equal(kept.codes, codes):
            kept = self._kept[label] = _KeptLayout(names, codes, self._made(names, codes))
        self._kept.move_to_end(label)
        if len(self._kept) > MOST_LABELS:
            self._kept.popitem(last=False)
        return kept.layout

    def _made(self, names: tuple[list[str], ...], codes: Int64) -> HostLayout:
        zones, labels, cells = names
        order = np.argsort(codes, kind="stable")
        nodes, codes = self.by_name()[order], codes[order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
        groups = []
        for first, end in pairwise([*starts, len(codes)]):
            rest, cell = divmod(codes.item(first), len(cells))
            zone, label = divmod(rest, len(labels))
            groups.append(HostGroup(zones[zone], labels[label], cells[cell], first, end - first))
        mark = hashlib.blake2b(msgspec.json.encode(groups), digest_size=8)
        mark.update("".join(map(self._table.nodes.__getitem__, nodes.tolist())).encode())
        return HostLayout(mark.hexdigest(), nodes, tuple(groups))

    def _cells(self, nodes: Rows) -> NamedCodes:
        numbers = self._table.cell[nodes].astype(np.intp)
        return _sorted(self._table.cells, numbers)

    def _named(self, key: str, nodes: Rows, text_of: Callable[[Values], str]) -> NamedCodes:
        """Return for each node the text of its values of an aggregate metadata key."""
        labels = self._table.metadata(key)
        if labels is None:
            return NamedCodes([text_of(())], np.zeros(len(nodes), dtype=np.intp))
        texts: list[str] = []

        def number(values: Values) -> int:
            texts.append(text_of(values))
            return len(texts) - 1

        return _sorted(texts, labels.judged(number, nodes).astype(np.intp))


def _sorted(texts: list[str], numbers: Rows) -> NamedCodes:
    """Return the texts that are in use, each once. ``numbers``: intp[n], the index of each node's text."""
    used = np.flatnonzero(np.bincount(numbers, minlength=len(texts))).tolist()
    names = sorted({texts[number] for number in used})
    place = {name: number for number, name in enumerate(names)}
    codes = np.array([place.get(text, 0) for text in texts], dtype=np.intp)
    return NamedCodes(names, codes[numbers])
