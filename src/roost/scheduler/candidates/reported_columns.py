"""Columns of the capacity and use that nodes report, brought up to date from the node table."""

import numpy as np

from roost.fleet.columns import Int64
from roost.fleet.inventory_columns import CAPACITY_LIMIT
from roost.model.node import NOTHING, NodeReport, amounts_of
from roost.scheduler.nodes.table import NodeTable

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
"""The resource classes whose amounts nodes report."""


class ReportedColumns:
    """Capacity, use and size of each node by its index: int64[table.size] for each of `CLASSES`.

    A node that does not report a class has nothing of it. ``largest``: the most that one instance may have,
    which is the amount of the machine without allocation ratio.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._structure = -1
        self._seen = 0
        self.capacity: dict[str, Int64] = {}
        self.used: dict[str, Int64] = {}
        self.largest: dict[str, Int64] = {}

    def catch_up(self) -> None:
        """Read the reports that have changed."""
        table = self._table
        log = table.invalidations
        changed = log.since(self._seen) if self._structure == table.structure else None
        if changed is None:
            for columns in (self.capacity, self.used, self.largest):
                columns.update({name: np.zeros(table.size, dtype=np.int64) for name in CLASSES})
            changed = set(range(table.size))
        for index in changed:
            report = table.report(index)
            if table.index_of_node(report.node) == index:
                self._set(index, report)
        self._structure, self._seen = table.structure, log.end

    def _set(self, index: int, report: NodeReport) -> None:
        amounts = amounts_of(report)
        for name in CLASSES:
            of_it = amounts.get(name, NOTHING)
            self.largest[name][index] = of_it.total
            self.capacity[name][index] = min(of_it.capacity, CAPACITY_LIMIT)
            self.used[name][index] = of_it.total - of_it.reserved - of_it.free
