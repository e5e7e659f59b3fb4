"""The columns of the node table: numbers that nodes report, less the amounts of claims since."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import msgspec
import numpy as np

from roost.fleet.columns import Bools, Float64, Int32, Int64, grown
from roost.fleet.hardware.pci_pools import free_devices
from roost.fleet.invalidation_log import InvalidationLog
from roost.model.assignment import Assignment
from roost.model.node import NodeReport
from roost.model.node_event import ClaimBuilt, ClaimCounted, ClaimReleased, NodeEvent
from roost.model.operator_word import Subject
from roost.scheduler.nodes.numa_reports import NumaReports
from roost.scheduler.nodes.outstanding import OutstandingClaims, Sums, TakenAmounts
from roost.scheduler.nodes.pci_columns import PciColumns


class MetricColumns:
    """One column for each metric that some node reports: float64 by node index, NaN where not reported.

    A number that is not finite counts as not reported: no weigher could use it.
    """

    def __init__(self) -> None:
        self._columns: dict[str, Float64] = {}
        self._reporters: dict[str, int] = {}

    def of(self, name: str, size: int) -> Float64:
        """Return the column of a metric: float64[size]."""
        column = self._columns.get(name)
        if column is None:
            return np.full(size, math.nan)
        if len(column) < size:
            column = self._columns[name] = grown(column, size, math.nan)
        return column[:size]

    def put(self, index: int, old: Mapping[str, float], new: Mapping[str, float]) -> None:
        """Set the metrics of a node that had ``old``."""
        for name, value in new.items():
            if name not in old:
                self._reporters[name] = self._reporters.get(name, 0) + 1
            column = grown(self._columns.get(name, np.zeros(0)), index + 1, math.nan)
            column[index] = value if math.isfinite(value) else math.nan
            self._columns[name] = column
        for name in old:
            if name not in new:
                self._reporters[name] -= 1
                if self._reporters[name]:
                    self._columns[name][index] = math.nan
                else:
                    del self._reporters[name], self._columns[name]


_COLUMNS = {
    "cell": (np.int32, 0),
    "service": (np.int32, 0),
    "enabled": (np.bool_, False),
    "alive": (np.bool_, False),
    "service_version": (np.int64, 0),
    "hypervisor_version": (np.int64, 0),
    "_num_instances": (np.int64, 0),
    "_num_io_ops": (np.int64, 0),
    "failed_builds": (np.float64, 0.0),
    "_free_ram_mb": (np.float64, math.nan),
    "_free_disk_mb": (np.float64, math.nan),
    "_free_pci_devices": (np.int64, 0),
}
"""Dtype of each column, and its value in a row without a node."""

_NOTHING = Sums()
"""The amounts of a node without claims."""

_HAS: dict[str, Callable[[NodeReport], bool]] = {
    "hypervisor_version": lambda report: report.hypervisor_version != 0,
    "num_instances": lambda report: report.num_instances != 0,
    "num_io_ops": lambda report: report.num_io_ops != 0,
    "failed_builds": lambda report: report.failed_builds != 0,
    "free_ram_mb": lambda report: report.free_ram_mb is not None,
    "free_disk_mb": lambda report: report.free_disk_mb is not None,
    "free_pci_devices": lambda report: free_devices(report.pci_device_pools) != 0,
}
"""For each column of numbers, a function that tells if a report has something in it."""


class NodeColumns:
    """Arrays with one number a node, by index; they may be longer than the table.

    ``cell`` int32 (number of the cell in ``cells``), ``service`` int32 (number of the compute service, see
    `last_seen`), ``enabled`` and ``alive`` bool (see `seen_since`; a node is enabled if its agent says so and
    no operator has disabled it), ``service_version``,
    ``hypervisor_version``, ``num_instances`` and ``num_io_ops`` int64, ``failed_builds`` float64,
    ``free_ram_mb`` and ``free_disk_mb`` float64 (NaN where not reported), ``free_pci_devices`` int64.
    The numbers of instances and I/O operations and the free amounts are those of the node's report, with the
    claims since that report counted (see `claim`).

    ``numa`` has the NUMA topologies that nodes report, and ``pci`` the PCI pools: see `decode`.

    For caches: ``invalidations`` lists the nodes whose reports have changed; a heartbeat counts as a change
    only if it makes a service alive again (see `seen_since`). ``structure`` rises when caches must begin
    anew: a node came or went, or changed its cell or its service; a metadata key came or went; `has` of a
    column changed.
    """

    cell: Int32
    service: Int32
    enabled: Bools
    alive: Bools
    service_version: Int64
    hypervisor_version: Int64
    failed_builds: Float64
    _num_instances: Int64
    _num_io_ops: Int64
    _free_ram_mb: Float64
    _free_disk_mb: Float64
    _free_pci_devices: Int64

    def __init__(self) -> None:
        self.invalidations = InvalidationLog()
        self.structure = 0
        for name, (dtype, _) in _COLUMNS.items():
            setattr(self, name, np.zeros(0, dtype=dtype))
        self._reports: list[NodeReport] = []
        self.version: int | None = None
        self._listening: list[list[NodeEvent]] = []
        self._disabled: set[Subject] = set()
        self._had: set[str] = set()
        self._service_versions = Counter[int]()
        self._metrics = MetricColumns()
        self.numa = NumaReports()
        self.pci = PciColumns()
        self._claims = OutstandingClaims()
        # True once the numbers that claims change were read: no cache depends on them before.
        self._counts_read = False
        self._amounts_read = False
        self._devices_read = False

    @property
    def size(self) -> int:
        """The number of rows, free ones included."""
        return len(self._reports)

    def report(self, index: int) -> NodeReport:
        """Return the last report of a node; for a free row, that of its last node."""
        return self._reports[index]

    def has(self, column: str) -> bool:
        """Return whether any node has ever reported something in a column of numbers.

        NaN is nothing. 0 is something only in columns that are NaN where not reported. A weigher ignores a
        column until then. The value never returns to False: otherwise a run during which the last such report
        changes would weigh some of its instances by the column and others not. A column of zeros weighs
        nothing.
        """
        return column in self._had

    def set_reported(self, columns: Iterable[str]) -> None:
        """Note columns in which some node has reported something before."""
        new = {*columns} - self._had
        self._had |= new
        self.structure += len(new)

    def metric(self, name: str) -> Float64:
        """Return a metric of every node: float64[size], NaN where a node does not report it."""
        return self._metrics.of(name, self.size)

    @property
    def oldest_service_version(self) -> int:
        """The lowest version that a node's service reports; 0 without nodes."""
        return min(self._service_versions, default=0)

    # Claims between two reports

    @property
    def num_instances(self) -> Int64:
        """Instances on each node, claims included: int64 by index."""
        self._counts_read = True
        return self._num_instances

    @property
    def num_io_ops(self) -> Int64:
        """Instances that burden the disk of each node, claims included: int64 by index."""
        self._counts_read = True
        return self._num_io_ops

    @property
    def free_ram_mb(self) -> Float64:
        """Free memory of each node's machine in MiB, less what claims took: float64 by index, or NaN."""
        self._amounts_read = True
        return self._free_ram_mb

    @property
    def free_disk_mb(self) -> Float64:
        """Free disk of each node's machine in MiB, less what claims took: float64 by index, or NaN."""
        self._amounts_read = True
        return self._free_disk_mb

    @property
    def free_pci_devices(self) -> Int64:
        """Free devices in all PCI pools of each node, less those that claims took: int64 by index."""
        self._devices_read = True
        return self._free_pci_devices

    @property
    def outstanding(self) -> OutstandingClaims:
        """The claims that no report contains yet."""
        return self._claims

    def claim(
        self,
        instance: str,
        index: int,
        memory_mb: int = 0,
        disk_mb: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        """Count the claim of an instance on a node, until a report lists the instance or `release` is called.

        A claim of the same instance on another node ends. Amounts are in MiB.
        """
        self.release(instance)
        report = self._reports[index]
        if instance not in report.instances:
            self._note(ClaimCounted(instance, report.node, memory_mb, disk_mb, assignment))
            self._claims.put(instance, TakenAmounts(index, memory_mb, disk_mb, assignment=assignment))
            self._recount_claims(index)

    def built(self, instance: str) -> None:
        """Note that an instance is built: its claim no longer counts as an I/O operation."""
        taken = self._claims.of(instance)
        if taken is not None and taken.building:
            self._note(ClaimBuilt(instance))
            self._claims.put(instance, msgspec.structs.replace(taken, building=False))
            self._recount_claims(taken.index)

    def release(self, *instances: str) -> None:
        """End the claims of instances whose attempts failed, or that are gone."""
        for instance in instances:
            taken = self._claims.drop(instance)
            if taken is not None:
                self._note(ClaimReleased(instance))
                self._recount_claims(taken.index)

    def _note(self, event: NodeEvent) -> None:
        """Append an event to all lists of `listen`. With a journal, the table gets the event's version."""
        if self._listening:
            for events in self._listening:
                events.append(event)
            if self.version is not None:
                self.version += 1

    def _recount_claims(self, index: int) -> None:
        report = self._reports[index]
        had = self._free_pci_devices.item(index)
        self._set_counted(index, report)
        # An amount that is not reported stays NaN, whatever is claimed.
        amounts = report.free_ram_mb is not None or report.free_disk_mb is not None
        devices = self._devices_read and had != self._free_pci_devices.item(index)
        if self._counts_read or (self._amounts_read and amounts) or devices:
            self.invalidations.append(index)

    def _set_counted(self, index: int, report: NodeReport) -> None:
        """Set the columns that claims change, from the report and the claims since."""
        sums = self._claims.sums(index) or _NOTHING
        self._num_instances[index] = report.num_instances + sums.instances
        self._num_io_ops[index] = report.num_io_ops + sums.io_ops
        free_ram_mb, free_disk_mb = report.free_ram_mb, report.free_disk_mb
        self._free_ram_mb[index] = math.nan if free_ram_mb is None else free_ram_mb - sums.memory_mb
        self._free_disk_mb[index] = math.nan if free_disk_mb is None else free_disk_mb - sums.disk_mb
        self._free_pci_devices[index] = max(0, self.pci.free(index) - sums.pci_devices)

    # Changes

    def decode(self, most: int) -> bool:
        """Decode NUMA topologies and PCI pools of new reports, of ``most`` nodes at most; returns whether
        more may be left to decode.

        A decision that needs a report that is not decoded decodes it itself, and holds up other decisions
        meanwhile. A table of the past, which is made from a journal, is read for few of its nodes: it does
        not call this.
        """
        return max(self.numa.decode(most), self.pci.decode(most)) == most

    def _append(self, report: NodeReport) -> int:
        """Add a row at the end; returns its index."""
        index = len(self._reports)
        self._reports.append(report)
        if index >= len(self.cell):
            for name, (_, fill) in _COLUMNS.items():
                setattr(self, name, grown(getattr(self, name), index + 1, fill))
        return index

    def _set_columns(self, index: int, old: NodeReport | None, new: NodeReport) -> None:
        """Set all columns of a node that depend on its own report alone."""
        self._reports[index] = new
        self._note_reported(new)
        self.enabled[index] = new.enabled and not self._is_disabled(new)
        self.service_version[index] = new.service_version
        self.hypervisor_version[index] = new.hypervisor_version
        self.failed_builds[index] = new.failed_builds
        self._claims.reported(index, new)
        if old is None or new.pci_device_pools != old.pci_device_pools:
            self.pci.put(index, new.pci_device_pools)
        if old is None or new.numa_topology != old.numa_topology:
            self.numa.put(index, new)
        self._set_counted(index, new)
        if old is None or old.service_version != new.service_version:
            self._count_version(new.service_version, 1)
            if old is not None:
                self._count_version(old.service_version, -1)
        had = {} if old is None else old.metrics
        if new.metrics != had:
            self._metrics.put(index, had, new.metrics)

    def _is_disabled(self, report: NodeReport) -> bool:
        """Return whether an operator has disabled a node, its host or its cell."""
        disabled = self._disabled
        return bool(disabled) and (
            Subject(report.cell) in disabled
            or Subject(report.cell, report.host) in disabled
            or Subject(report.cell, report.host, report.node) in disabled
        )

    def _note_reported(self, new: NodeReport) -> None:
        if len(self._had) < len(_HAS):
            for column in [each for each in _HAS if each not in self._had]:
                if _HAS[column](new):
                    self._had.add(column)
                    self.structure += 1

    def _count_version(self, version: int, by: int) -> None:
        self._service_versions[version] += by
        if not self._service_versions[version]:
            del self._service_versions[version]
