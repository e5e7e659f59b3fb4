"""Columns of what nodes report that they have and use, brought up to date from the node table."""

import math

import numpy as np

from roost.fleet.columns import Int64
from roost.fleet.inventory_columns import CAPACITY_LIMIT
from roost.model.node import NodeReport
from roost.scheduler.nodes import NodeTable

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
"""The resource classes of which nodes report amounts."""

MEBIBYTES = 1024
"""In one GiB: disks have GiB, free disk is reported in MiB."""


class ReportedColumns:
    """Capacity, use and size of each node by its index: int64[table.size] for each of `CLASSES`.

    A node that does not report a class has nothing of it. ``largest`` is the most that one instance may have:
    the amount of the machine, without allocation ratio.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._structure = -1
        self._seen = 0
        self.capacity: dict[str, Int64] = {}
        self.used: dict[str, Int64] = {}
        self.largest: dict[str, Int64] = {}

    def catch_up(self) -> None:
        """Take in the reports that have changed."""
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
        amounts = _amounts(report)
        for name in CLASSES:
            total, reserved, free, ratio = amounts.get(name, (0, 0, 0, 1.0))
            self.largest[name][index] = total
            self.capacity[name][index] = min(int((total - reserved) * ratio), CAPACITY_LIMIT)
            self.used[name][index] = total - reserved - free


def _amounts(report: NodeReport) -> dict[str, tuple[int, int, int, float]]:
    """Total, reserved and free amount, and allocation ratio of each class that a node reports.

    Free amounts are without the ratio, and without what is reserved. Source: ``ComputeNode`` in Nova.
    """
    found: dict[str, tuple[int, int, int, float]] = {}
    if report.vcpus is not None:
        free = report.vcpus - report.reserved_vcpus - (report.vcpus_used or 0)
        found["VCPU"] = (report.vcpus, report.reserved_vcpus, free, report.cpu_allocation_ratio or 1.0)
    if report.memory_mb is not None:
        reserved = report.reserved_memory_mb
        free = report.memory_mb - reserved if report.free_ram_mb is None else report.free_ram_mb
        found["MEMORY_MB"] = (report.memory_mb, reserved, free, report.ram_allocation_ratio or 1.0)
    if report.disk_gb is not None:
        reserved = report.reserved_disk_gb
        free = report.disk_gb - reserved
        if report.free_disk_mb is not None:
            free = math.floor(report.free_disk_mb / MEBIBYTES)
        found["DISK_GB"] = (report.disk_gb, reserved, free, report.disk_allocation_ratio or 1.0)
    return found
