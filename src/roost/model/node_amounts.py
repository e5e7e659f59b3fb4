"""What a node reports that it has and uses of the resource classes that reports know."""

import math
from typing import NamedTuple

from roost.model.node import NodeReport

MEBIBYTES = 1024
"""In one GiB: disks have GiB, free disk is reported in MiB."""

AMOUNTS_LIMIT = 2**53
"""No capacity is larger: allocation ratios are floats."""


class NodeAmounts(NamedTuple):
    """Total, reserved and free amount of a class, and its allocation ratio. VCPU, MiB or GiB.

    Free amounts are without the ratio, and without what is reserved. Source: ``ComputeNode`` in Nova.
    """

    total: int
    reserved: int
    free: int
    ratio: float

    @property
    def capacity(self) -> int:
        """What all instances of the node may have together."""
        return min(int((self.total - self.reserved) * self.ratio), AMOUNTS_LIMIT)


NOTHING = NodeAmounts(0, 0, 0, 1.0)
"""Of a class that a node does not report."""


def amounts_of(report: NodeReport) -> dict[str, NodeAmounts]:
    """The amounts of each class that a node reports."""
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
