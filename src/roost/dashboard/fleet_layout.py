"""The layout of the fleet map: all compute nodes in one order, in groups by zone, rack and cell."""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Rows
from roost.model.aggregate import AVAILABILITY_ZONE
from roost.model.node_event import AggregateRemoved, AggregateSet, MembershipsSet, NodeEvent
from roost.scheduler.nodes.table import NodeTable


class LayoutGroup(msgspec.Struct, frozen=True):
    """Neighbouring nodes of the layout: those of one rack and cell in a zone.

    ``rack``: empty for nodes in no rack. ``first``: the position of the first one; ``count``: their number.
    """

    zone: str
    rack: str
    cell: str
    first: int
    count: int


class FleetLayout(NamedTuple):
    """All compute nodes in the order of zone, rack, cell and name.

    ``id`` identifies the order: positions mean the same nodes as long as it is the same. ``indexes``: the
    index of each node in the node table, intp[n]. A node in several racks is in the first of them.
    """

    id: str
    indexes: Rows
    groups: tuple[LayoutGroup, ...]

    def roots(self, table: NodeTable, fleet: Fleet) -> Rows:
        """Return the row of each node's root provider in a fleet: intp[n], -1 where it has none."""
        rows = fleet.rows()
        rows = rows[fleet.parent[rows] < 0]
        nodes = table.indexes_of_rows(fleet, rows)
        row_of = np.full(table.size, -1, dtype=np.intp)
        row_of[nodes[nodes >= 0]] = rows[nodes >= 0]
        return row_of[self.indexes]


class FleetLayouts:
    """Keeps the layout of a node table, which is made anew when nodes or their places change.

    ``default_zone``: the zone of nodes whose aggregates name none. ``rack_key``: the metadata key of racks.
    """

    def __init__(self, table: NodeTable, default_zone: str, rack_key: str) -> None:
        self._table = table
        self._default_zone = default_zone
        self._rack_key = rack_key
        self._events = table.listen()
        self._structure = -1
        self._layout = FleetLayout("", np.zeros(0, dtype=np.intp), ())

    def current(self) -> FleetLayout:
        """Return the layout of the nodes as they are now."""
        moved = _moves_nodes(self._events)
        self._events.clear()
        if moved or self._structure != self._table.structure:
            self._structure = self._table.structure
            self._layout = self._made()
        return self._layout

    def close(self) -> None:
        """Stop following the table."""
        self._table.ignore(self._events)

    def _made(self) -> FleetLayout:
        table = self._table
        indexes = [index for index in range(table.size) if table.index_of_node(table.nodes[index]) == index]
        zones, racks = table.metadata(AVAILABILITY_ZONE), table.metadata(self._rack_key)
        keys = []
        for index in indexes:
            zone = (*(() if zones is None else zones.of(index)), self._default_zone)[0]
            rack = (*(() if racks is None else racks.of(index)), "")[0]
            cell = table.cells[table.cell[index]]
            keys.append((zone, rack, cell, table.hosts[index], table.nodenames[index], index))
        keys.sort()
        digest = hashlib.blake2b(digest_size=12)
        starts: list[int] = []
        for position, (zone, rack, cell, host, name, _) in enumerate(keys):
            digest.update(f"{zone}\0{rack}\0{cell}\0{host}\0{name}\n".encode())
            if not starts or keys[starts[-1]][:3] != (zone, rack, cell):
                starts.append(position)
        groups = tuple(
            LayoutGroup(*keys[first][:3], first, following - first)
            for first, following in zip(starts, [*starts[1:], len(keys)], strict=True)
        )
        order = np.array([key[-1] for key in keys], dtype=np.intp)
        return FleetLayout(digest.hexdigest(), order, groups)


def _moves_nodes(events: Iterable[NodeEvent]) -> bool:
    return any(isinstance(each, AggregateSet | MembershipsSet | AggregateRemoved) for each in events)
