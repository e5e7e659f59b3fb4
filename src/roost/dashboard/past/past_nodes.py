"""The amounts of all compute nodes at a version, each with its whole tree, by index in the node table."""

import asyncio
from typing import Final

import numpy as np

from roost.dashboard.past.fleet_columns import ClassAmountColumns, PastColumns
from roost.dashboard.past.index_block import Keys
from roost.dashboard.past.index_entries import key_of
from roost.dashboard.past.state_log import UNKNOWN, States
from roost.fleet.columns import Bools, Int64, Rows
from roost.scheduler.nodes.node_amounts import TreeAmounts
from roost.scheduler.nodes.table import NodeTable

_AT_ONCE: Final = 4_000
"""Nodes that are looked at before other tasks may run."""


class NodeKeys:
    """The keys of the root providers of a table's nodes, kept while nodes come and go."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._structure = -1
        self._uuids: list[str] = []
        self._keys: Keys = np.zeros(0, dtype=np.uint64)

    async def keys(self) -> Keys:
        """Return the key of each node: uint64[size], by index in the table."""
        table = self._table
        while self._structure != table.structure:
            structure, size = table.structure, table.size
            self._uuids += [""] * (size - len(self._uuids))
            self._keys = np.concatenate([self._keys, np.zeros(size - len(self._keys), dtype=np.uint64)])
            for first in range(0, size, _AT_ONCE):
                for index in range(first, min(first + _AT_ONCE, size, table.size)):
                    uuid = table.nodes[index]
                    if uuid != self._uuids[index]:
                        self._uuids[index], self._keys[index] = uuid, key_of(uuid)
                await asyncio.sleep(0)
            self._structure = structure
        return self._keys


class PastNodes:
    """The amounts and states of nodes at a moment.

    ``places``: intp[size], of the nodes by index in ``columns``. ``states``: uint8[size], numbers of `STATES`
    or `UNKNOWN`; None: nobody looked at that time.
    """

    def __init__(self, columns: PastColumns, places: Rows, states: States | None = None) -> None:
        self.columns = columns
        self._places = places
        self._states = states

    @property
    def version(self) -> int:
        """The version."""
        return self.columns.version

    def existed(self, nodes: Rows) -> Bools:
        """Return for each node whether placement had it: bool[n]. ``nodes``: intp[n], indexes."""
        return self._places_of(nodes) >= 0

    def states(self, nodes: Rows) -> States | None:
        """Return the state of each node: uint8[n], `UNKNOWN` of nodes that were not there; None: not kept."""
        if self._states is None:
            return None
        found = np.full(len(nodes), UNKNOWN, dtype=np.uint8)
        known = nodes < len(self._states)
        found[known] = self._states[nodes[known]]
        return found

    def amounts(self, resource_class: str, nodes: Rows) -> TreeAmounts:
        """Return the amounts of a class on nodes: int64[n], 0 where placement did not have the node."""
        trees: ClassAmountColumns = self.columns.trees(resource_class)
        return TreeAmounts(*(self._of(column, nodes) for column in trees))

    def largest_free(self, resource_class: str, nodes: Rows) -> Int64:
        """Return the most units of a class that one provider of each node had free: int64[n]."""
        return self._of(self.columns.largest_free(resource_class), nodes)

    def _of(self, column: Int64, nodes: Rows) -> Int64:
        places = self._places_of(nodes)
        there = places >= 0
        found = np.zeros(len(nodes), dtype=np.int64)
        found[there] = column[places[there]]
        return found

    def _places_of(self, nodes: Rows) -> Rows:
        # Nodes may have come since.
        found = np.full(len(nodes), -1, dtype=np.intp)
        known = nodes < len(self._places)
        found[known] = self._places[nodes[known]]
        return found
