"""The report of a compute node: everything that the scheduler knows about it besides its inventory."""

import math
from typing import NamedTuple

import msgspec


class SupportedInstance(msgspec.Struct, frozen=True, array_like=True):
    """One kind of guest that a hypervisor runs: architecture, hypervisor type and vm mode, Nova's names."""

    arch: str
    hv_type: str
    vm_mode: str


class NodeInstance(msgspec.Struct, frozen=True, omit_defaults=True):
    """One instance in the report of its node.

    ``image`` is the image's id, None without an image. ``image_properties`` are the properties of the image
    by which hosts are weighed.

    ``assignment`` is the digest (`roost.model.assignment.digest`) of the assignment that the report counts
    for the instance, empty if it counts none. None: the reporter does not say, and the report is taken to
    count all hardware that the instance holds.
    """

    project_id: str = ""
    flavor: str = ""
    image: str | None = None
    image_properties: dict[str, str] = {}
    assignment: str | None = None


class NodeReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last report of one compute node.

    ``node`` is the uuid of the node's root provider; it identifies the node. ``host`` is the name of the
    compute service, which may have thousands of nodes (bare metal). ``nodename`` is the node's own name, the
    same as the host's if it is empty. ``last_seen`` is when the service was last seen alive, in seconds since
    the epoch; infinity if the source of this time declares the service up, minus infinity if it declares it
    down. ``enabled`` and ``service_version`` are the service's as well.

    ``failed_builds`` counts failed builds since the last successful one. ``num_io_ops`` counts instances in
    a state that burdens the disk (being built, resized, migrated, and so on). ``metrics`` are named numbers
    whose units the reporter chooses (a temperature in degrees Celsius, say). ``images`` are the ids of the
    images in the node's cache. ``stats`` are further capabilities by name.

    Amounts are those of the machine, without allocation ratios; None where the node does not report them.
    The free amounts are without the reserved ones, which the host keeps for itself.
    ``numa_topology`` and ``pci_device_pools`` are stored as they were reported.

    ``refused`` says why placement lacks a part of what the node's driver reports; None if it has all of it.

    Source: the names and meanings are those of ``HostState`` in Nova's ``scheduler/host_manager.py``.
    """

    node: str
    host: str
    cell: str
    last_seen: float = -math.inf
    nodename: str = ""
    enabled: bool = True
    service_version: int = 0
    hypervisor_type: str = ""
    hypervisor_version: int = 0
    supported_instances: tuple[SupportedInstance, ...] = ()
    host_ip: str | None = None
    cpu_info: dict[str, object] = {}
    stats: dict[str, str] = {}
    instances: dict[str, NodeInstance] = {}
    num_instances: int = 0
    num_io_ops: int = 0
    failed_builds: int = 0
    images: frozenset[str] = frozenset()
    metrics: dict[str, float] = {}
    vcpus: int | None = None
    vcpus_used: int | None = None
    memory_mb: int | None = None
    free_ram_mb: int | None = None
    disk_gb: int | None = None
    reserved_vcpus: int = 0
    reserved_memory_mb: int = 0
    reserved_disk_gb: int = 0
    free_disk_mb: int | None = None
    cpu_allocation_ratio: float | None = None
    ram_allocation_ratio: float | None = None
    disk_allocation_ratio: float | None = None
    numa_topology: dict[str, object] | None = None
    pci_device_pools: tuple[dict[str, object], ...] = ()
    refused: str | None = None


KEEPS_DISKS = "keeps_disks_of_moves"
"""The key of ``stats`` of a node whose driver keeps the disks of guests that move.

Its value is the store of the disks: guests move between nodes with the same one. `YES`, as processes before
stores read it too: the disks are found on any host with this value.
"""

KEEPS_SHELVED = "keeps_disks_of_shelved"
"""The key of ``stats``, with the value `YES`, of a node whose driver leaves the disks of a guest in their
store when it destroys the guest (`roost.agent.drivers.SharingDriver`)."""

LIVE_MOVES = "live_moves"
"""The key of ``stats``, with the value `YES`, of a node whose guests can move while they run."""

RESIZES_IN_PLACE = "resizes_in_place"
"""The key of ``stats``, with the value `YES`, of a node whose driver keeps two sizes of a guest."""

YES = "yes"

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
