"""Nodes without an agent: a platform without agents has its hosts in placement alone.

Such a node has the name of its root provider, is enabled and alive, and is in no cell. Filters and weighers
see its data in placement only. If an agent reports the node later, the node is that agent's.
"""

import math

from roost.model.node import NodeReport
from roost.scheduler.nodes.roots import Roots
from roost.scheduler.nodes.table import NodeTable

NO_CELL = ""
"""The cell of nodes without an agent."""


class UnreportedNodes:
    """Puts the hosts of placement into a node table, and takes those away that placement has no longer."""

    def __init__(self, table: NodeTable) -> None:
        self._table = table

    def take(self, hosts: Roots) -> None:
        """Take in all hosts that placement has."""
        table = self._table
        own = table.nodes_of_cell(NO_CELL)
        table.remove(sorted(own - hosts.keys()))
        table.update(
            NodeReport(node=uuid, host=name, cell=NO_CELL, last_seen=math.inf)
            for uuid, name in hosts.items()
            if uuid in own or (table.index_of_node(uuid) is None and table.index(name, name) is None)
        )

    def settle(self) -> None:
        """End the outstanding claims on these nodes: no report will ever list their instances.

        Placement has the amounts that they took from the inventories.
        """
        table = self._table
        cell = table.cells.index(NO_CELL) if NO_CELL in table.cells else -1
        for instance, taken in table.outstanding:
            if table.cell.item(taken.index) == cell:
                table.release(instance)
