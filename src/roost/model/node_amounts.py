"""Amounts of VCPU, memory and disk in the report of a node."""

import math
from typing import NamedTuple

from roost.model.node import NodeReport

MEBIBYTES = 1024
"""MiB in one GiB: disks are in GiB, free disk is reported in MiB."""

AMOUNTS_LIMIT = 2**53
"""Largest capacity. Allocation ratios are floats, which are exact for whole numbers up to this one."""


class NodeAmounts(NamedTuple):
    """Total, reserved and free amount of a class in VCPUs, MiB or GiB, and its allocation ratio.

    The free amount excludes the reserved one and ignores the ratio. Source: ``ComputeNode`` in Nova.
    """

    total: int
    reserved: int
    free: int
    ratio: float

    @property
    def capacity(self) -> int:
        """Units that all instances of the node may hold together."""
        return min(int((self.total - self.reserved) * self.ratio), AMOUNTS_LIMIT)


NOTHING = NodeAmounts(0, 0, 0, 1.0)
"""The amounts of a class that a node does not report."""


def amounts_of(report: NodeReport) -> dict[str, NodeAmounts]:
    """Return the amounts of each class that a node reports."""
    found: dict[str, NodeAmounts] = {}
    if report.vcpus is not None:
        free = report.vcpus - report.reserved_vcpus - (report.vcpus_used or 0)
        found["VCPU"] = NodeAmounts(
            report.vcpus, report.reserved_vcpus, free, report.cpu_allocation_ratio or 1.0
        )
    if report.memory_mb is not None:
        reserved = report.reserved_memory_mb
        free = report.memory_mb - reserved if report.free_ram_mb is None else report.free_ram_mb
        found["MEMORY_MB"] = NodeAmounts(report.memory_mb, reserved, free, report.ram_allocation_ratio or 1.0)
    if report.disk_gb is not None:
        reserved = report.reserved_disk_gb
        free = report.disk_gb - reserved
        if report.free_disk_mb is not None:
            free = math.floor(report.free_disk_mb / MEBIBYTES)
        found["DISK_GB"] = NodeAmounts(report.disk_gb, reserved, free, report.disk_allocation_ratio or 1.0)
    return found
