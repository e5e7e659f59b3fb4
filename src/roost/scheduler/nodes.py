"""The node table: what every compute node reports, as columns."""

import math
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager

import msgspec
import numpy as np

from roost.fleet import Fleet
from roost.fleet.columns import Bools, Float64, Int32, Int64, Rows, grown
from roost.fleet.invalidation_log import InvalidationLog
from roost.model.node import HostAggregate, NodeReport, SupportedInstance
from roost.model.node_event import NodeEvent, NodeRemoved, NodeReported, ServiceTransition
from roost.scheduler.heartbeats import Heartbeats
from roost.scheduler.labels import Labels, Values
from roost.scheduler.metric_columns import MetricColumns
from roost.scheduler.node_rows import FreeRows
from roost.scheduler.outstanding import OutstandingClaims, Taken

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
    "free_pci_devices": (np.int64, 0),
}
"""Type of each column, and its value where no node is."""

_OPTIONAL = ("free_ram_mb", "free_disk_mb")
"""Columns that are NaN where a node does not report the number."""

_HAS: dict[str, Callable[[NodeReport], bool]] = {
    "hypervisor_version": lambda report: report.hypervisor_version != 0,
    "num_instances": lambda report: report.num_instances != 0,
    "num_io_ops": lambda report: report.num_io_ops != 0,
    "free_ram_mb": lambda report: report.free_ram_mb is not None,
    "free_disk_mb": lambda report: report.free_disk_mb is not None,
    "free_pci_devices": lambda report: _free_devices(report) != 0,
}
"""Whether a report has something in a column."""

_COMPARED = [name for name in NodeReport.__struct_fields__ if name not in ("node", "last_seen")]


class NodeTable:
    """Every compute node that some agent has reported, by root provider.

    A node's *index* is its row. Ties between equal nodes go to the lower index. ``len`` is the number of
    nodes; ``size`` is the number of rows, of which some may be free: no lookup finds a free row, and it is
    neither enabled nor alive.

    Columns by index, with room to spare at the end: ``cell`` int32 (number of the cell in ``cells``),
    ``service`` int32 (number of the compute service, see `last_seen`), ``enabled`` and ``alive`` bool (see
    `seen_since`), ``service_version``, ``hypervisor_version``, ``num_instances`` and ``num_io_ops`` int64,
    ``failed_builds`` float64, ``free_ram_mb`` and ``free_disk_mb`` float64 (NaN where not reported),
    ``free_pci_devices`` int64.
    Of these, the numbers of instances and I/O operations and the free memory and disk are what the node
    reports and what claims have taken since (see `claim`).
    Labels by index: ``hypervisor_type``, ``host_ip``, ``supported_instances``. Lists by index: ``hosts``
    (names of compute services), ``nodes`` (uuids of root providers), ``nodenames``.

    ``version`` is that of the node journal, None without one. ``transitions``, if it is a list, gets each
    service that comes up or goes down.

    For caches: ``invalidations`` has the nodes whose reports have changed, where a heartbeat counts only if
    it makes a service alive again (see `seen_since`). ``structure`` rises when caches must begin anew: a node
    came or went, or changed its cell or its service, a metadata key came or went, or `has` of a column that
    is NaN where not reported changed.
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
    free_pci_devices: Int64

    def __init__(self, reports: Iterable[NodeReport] = ()) -> None:
        self.invalidations = InvalidationLog()
        self.structure = 0
        self.version: int | None = None
        self._seen_in_journal: dict[str, float] = {}
        self.transitions: list[ServiceTransition] | None = None
        self.cells: list[str] = []
        self.hosts: list[str] = []
        self.nodes: list[str] = []
        self.nodenames: list[str] = []
        self.hypervisor_type = Labels("")
        self.host_ip: Labels[str | None] = Labels(None)
        self.supported_instances: Labels[tuple[SupportedInstance, ...]] = Labels(())
        for name, (dtype, _) in _COLUMNS.items():
            setattr(self, name, np.zeros(0, dtype=dtype))
        self._heartbeats = Heartbeats(self._set_alive)
        self._failing = 0
        self._having: Counter[str] = Counter()
        self._reports: list[NodeReport] = []
        self._free = FreeRows()
        self._service_versions = Counter[int]()
        self._at_nodename: dict[str, tuple[int, ...]] = {}
        self._index: dict[str, int] = {}
        self._index_named: dict[tuple[str, str], int] = {}
        self._number_of_cell: dict[str, int] = {}
        self._services = _Services()
        self._in_cell: Counter[str] = Counter()
        self._claims = OutstandingClaims()
        # Whether somebody has read the numbers that claims change: before, no cache depends on them.
        self._counts_read = False
        self._amounts_read = False
        self._at_instance: dict[str, tuple[int, ...]] = {}
        self._with_image: dict[str, set[int]] = {}
        self._metrics = MetricColumns()
        self._labels: dict[str, Labels[Values]] = {}
        self._aggregates: dict[tuple[str, str], Counter[str]] = {}
        self._at_row: Rows = np.zeros(0, dtype=np.intp)
        self._fleet: weakref.ref[Fleet] | None = None
        self._roster = 0
        self.update(reports)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def size(self) -> int:
        """The number of rows, free ones included."""
        return len(self._reports)

    def reading(self) -> AbstractContextManager[None]:
        """While this lasts, an index stands for the same node, or for one that was removed meanwhile."""
        return self._free.reading()

    # Lookups

    def index_of_node(self, node: str) -> int | None:
        """The index of the node with a root provider, None if there is none."""
        return self._index.get(node)

    def index(self, host: str, nodename: str = "") -> int | None:
        """The index of a node by the names of its service and its own; None if there is none.

        Without ``nodename``: the node that has its service's name, else the first that was reported.
        """
        found = self._index_named.get((host, nodename or host))
        if found is None and not nodename:
            found = next(iter(self.indexes_of_host(host)), None)
        return found

    def indexes_of_host(self, host: str) -> Collection[int]:
        """The indexes of all nodes of a compute service, in the order in which they were reported."""
        return self._services.nodes_of(host)

    def nodes_of_cell(self, cell: str) -> set[str]:
        """The root providers of the nodes of a cell."""
        return {node for node, index in self._index.items() if self._reports[index].cell == cell}

    def count_of_cell(self, cell: str) -> int:
        """How many nodes a cell has."""
        return self._in_cell[cell]

    def indexes_of_nodename(self, nodename: str) -> tuple[int, ...]:
        """The indexes of the nodes with a name of their own; one mostly, several if services share the
        name."""
        return self._at_nodename.get(nodename, ())

    def indexes_of_instance(self, instance: str) -> tuple[int, ...]:
        """The indexes of the nodes that report an instance: mostly one, two during a move."""
        return self._at_instance.get(instance, ())

    def indexes_with_image(self, image: str) -> Collection[int]:
        """The indexes of the nodes that have an image in their cache."""
        return self._with_image.get(image, ())

    def indexes_of_rows(self, fleet: Fleet, rows: Rows) -> Rows:
        """The node at each row of the fleet: intp[len(rows)], -1 where no node has that root provider."""
        if self._fleet is None or self._fleet() is not fleet or self._roster != fleet.provider_set_version:
            self._at_row = np.full(fleet.n_rows, -1, dtype=np.intp)
            for node, index in self._index.items():
                if node in fleet:
                    self._at_row[fleet.row(node)] = index
            self._fleet, self._roster = weakref.ref(fleet), fleet.provider_set_version
        return self._at_row.take(rows)

    def report(self, index: int) -> NodeReport:
        """What a node last reported. Of a free row: what its last node reported."""
        return self._reports[index]

    # Changes

    def update(self, reports: Iterable[NodeReport]) -> list[NodeReported]:
        """Take in reports; a node reported before is updated. Returns the events but for transitions.

        A node with the names of another one (host and nodename) replaces it: the host was made anew.
        """
        events = []
        for report in reports:
            index = self._index.get(report.node)
            old = None if index is None else self._reports[index]
            if index is not None and old is not None and not _changed(old, report):
                self._reports[index] = report
            else:
                if index is None or old is None:
                    self._add(report)
                else:
                    self._change(index, old, report)
                events.append(NodeReported(report))
            self._beat(self._index[report.node], old, report.last_seen)
        return events

    def apply(self, version: int, event: NodeEvent) -> None:
        """Take in an event of the journal: the table is at its version then."""
        if isinstance(event, NodeReported):
            seen = self._seen_in_journal.get(event.report.host, -math.inf)
            self.update([msgspec.structs.replace(event.report, last_seen=seen)])
        elif isinstance(event, NodeRemoved):
            self.remove([event.node])
        else:
            seen = self._seen_in_journal[event.host] = math.inf if event.up else -math.inf
            nodes = [self._reports[index] for index in self.indexes_of_host(event.host)]
            self.update([msgspec.structs.replace(report, last_seen=seen) for report in nodes])
        self.version = version

    def remove(self, nodes: Iterable[str]) -> None:
        """Remove nodes by root provider; one that is not known is left out."""
        for node in nodes:
            index = self._index.get(node)
            if index is not None:
                self._remove(index)

    # What claims take between two reports

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
    def outstanding(self) -> OutstandingClaims:
        """The claims that no report contains yet."""
        return self._claims

    def claim(self, instance: str, index: int, memory_mb: int = 0, disk_mb: int = 0) -> None:
        """An instance was claimed on a node: it counts there until a report lists it, or `release`.

        A claim of the same instance on another node counts no longer. Amounts are in MiB.
        """
        self.release(instance)
        if instance not in self._reports[index].instances:
            self._claims.put(instance, Taken(index, memory_mb, disk_mb))
            self._recount_claims(index)

    def built(self, instance: str) -> None:
        """An instance is built: its claim counts as an I/O operation no longer."""
        taken = self._claims.of(instance)
        if taken is not None and taken.building:
            self._claims.put(instance, Taken(taken.index, taken.memory_mb, taken.disk_mb, building=False))
            self._recount_claims(taken.index)

    def release(self, *instances: str) -> None:
        """The claims of instances have come back: their attempts failed, or they are gone."""
        for instance in instances:
            taken = self._claims.drop(instance)
            if taken is not None:
                self._recount_claims(taken.index)

    def _recount_claims(self, index: int) -> None:
        counts, amounts = self._counts_read, self._amounts_read
        free = self._free_ram_mb.item(index), self._free_disk_mb.item(index)
        self._set_counted(index, self._reports[index])
        # NaN stays NaN: then the amounts are as they were.
        if counts or (amounts and not (math.isnan(free[0]) and math.isnan(free[1]))):
            self.invalidations.append(index)

    def _set_counted(self, index: int, report: NodeReport) -> None:
        """Set the columns that claims change: what is reported, and what claims took since."""
        self._num_instances[index] = report.num_instances
        self._num_io_ops[index] = report.num_io_ops
        self._free_ram_mb[index] = math.nan if report.free_ram_mb is None else report.free_ram_mb
        self._free_disk_mb[index] = math.nan if report.free_disk_mb is None else report.free_disk_mb
        sums = self._claims.sums(index)
        if sums is not None:
            self._num_instances[index] += sums.instances
            self._num_io_ops[index] += sums.io_ops
            self._free_ram_mb[index] -= sums.memory_mb
            self._free_disk_mb[index] -= sums.disk_mb

    # What nodes report

    @property
    def last_seen(self) -> Float64:
        """The last heartbeat of each compute service, by its number: float64 seconds since the epoch."""
        return self._heartbeats.last_seen

    def seen_since(self, oldest: float) -> Bools:
        """The nodes whose service was seen at ``oldest`` (seconds since the epoch) or after it: the column
        ``alive``."""
        self._heartbeats.look(oldest)
        return self.alive

    @property
    def any_failed_builds(self) -> bool:
        """Whether ``failed_builds`` is anything but 0 somewhere."""
        return self._failing > 0

    def has(self, column: str) -> bool:
        """Whether any node reports something in a column of numbers: neither 0 nor NaN, for those columns
        that are NaN where not reported also 0."""
        return self._having[column] > 0

    def metric(self, name: str) -> Float64:
        """A metric of every node: float64[size], NaN where a node does not report it."""
        return self._metrics.of(name, self.size)

    def metadata(self, key: str) -> Labels[Values] | None:
        """The values of an aggregate metadata key by node; None if no node is in an aggregate that has it."""
        return self._labels.get(key)

    def metadata_keys(self, prefix: str) -> Collection[str]:
        """The aggregate metadata keys with a prefix that some node has."""
        return [key for key in self._labels if key.startswith(prefix)]

    def aggregates_with(self, key: str, value: str) -> frozenset[str]:
        """The uuids of the aggregates whose metadata has ``key`` equal to ``value``."""
        return frozenset(self._aggregates.get((key, value), ()))

    def aggregates_by_metadata(self) -> Iterator[tuple[str, str, Collection[str]]]:
        """Each metadata key and value, and the uuids of the aggregates that have them."""
        return ((key, value, found) for (key, value), found in self._aggregates.items())

    @property
    def oldest_service_version(self) -> int:
        """The lowest version that a node's service reports; 0 without nodes."""
        return min(self._service_versions, default=0)

    def _add(self, report: NodeReport) -> None:
        self._make_room_for(report)
        index = self._free.take()
        if index is None:
            index = len(self._reports)
            self._reports.append(report)
            for names in (self.hosts, self.nodes, self.nodenames):
                names.append("")
            if index >= len(self.cell):
                for name, (_, fill) in _COLUMNS.items():
                    setattr(self, name, grown(getattr(self, name), index + 1, fill))
        self._index[report.node] = index
        self.nodes[index] = report.node
        self._fleet = None
        self.structure += 1
        self._join(index, report)
        self._set(index, None, report)

    def _change(self, index: int, old: NodeReport, report: NodeReport) -> None:
        if (report.host, report.nodename, report.cell) != (old.host, old.nodename, old.cell):
            self._leave(index, old)
            self._make_room_for(report)
            self._join(index, report)
            self.structure += 1
        self.invalidations.append(index)
        self._set(index, old, report)

    def _remove(self, index: int) -> None:
        old = self._reports[index]
        del self._index[old.node]
        self._leave(index, old)
        self._claims.drop_all(index)
        nothing = NodeReport(node=old.node, host=old.host, cell=old.cell, last_seen=-math.inf, enabled=False)
        self._set(index, old, nothing)
        self._count_version(nothing.service_version, -1)
        # Who holds the index still reads names and report of the node that was here.
        self._reports[index] = old
        self.alive[index] = False
        self._fleet = None
        self.structure += 1
        self._free.free(index)

    def _make_room_for(self, report: NodeReport) -> None:
        namesake = self._index_named.get(_name(report))
        if namesake is not None:
            self._remove(namesake)

    def _join(self, index: int, report: NodeReport) -> None:
        """Put a node under its names, its cell and its service."""
        self.hosts[index], self.nodenames[index] = _name(report)
        self._index_named[_name(report)] = index
        name = self.nodenames[index]
        self._at_nodename[name] = (*self._at_nodename.get(name, ()), index)
        number = self._number_of_cell.setdefault(report.cell, len(self.cells))
        if number == len(self.cells):
            self.cells.append(report.cell)
        self.cell[index] = number
        self._in_cell[report.cell] += 1
        service = self._services.join(report.host, index)
        self.service[index] = service
        self.alive[index] = self._heartbeats.is_alive(service)

    def _leave(self, index: int, old: NodeReport) -> None:
        del self._index_named[_name(old)]
        self._in_cell[old.cell] -= 1
        name = _name(old)[1]
        others = tuple(each for each in self._at_nodename[name] if each != index)
        if others:
            self._at_nodename[name] = others
        else:
            del self._at_nodename[name]
        if self._services.leave(old.host, index):
            self._heartbeats.forget(self.service.item(index))
        else:
            self._recount(index, old.host, old.last_seen)

    def _beat(self, index: int, old: NodeReport | None, at: float) -> None:
        """Take in a heartbeat: the latest one of a service's nodes counts."""
        service, host = self.service.item(index), self.hosts[index]
        if len(self._services.nodes_of(host)) == 1 or at >= self._heartbeats.last_seen.item(service):
            self._heartbeats.put(service, at)
        elif old is not None and old.host == host:
            self._recount(index, host, old.last_seen)

    def _recount(self, index: int, host: str, had: float) -> None:
        """The heartbeat of a node of a service no longer counts; it was the latest one if it is ``had``."""
        service = self.service.item(index)
        if had >= self._heartbeats.last_seen.item(service):
            nodes = self._services.nodes_of(host)
            self._heartbeats.put(service, max(self._reports[each].last_seen for each in nodes))

    def _set_alive(self, service: int, alive: bool) -> None:
        if self.transitions is not None:
            self.transitions.append(ServiceTransition(self._services.host(service), alive))
        for index in self._services.members(service):
            self.alive[index] = alive
            self.invalidations.append(index)

    def _set(self, index: int, old: NodeReport | None, new: NodeReport) -> None:
        """Set all columns of a node that depend on its own report alone."""
        self._reports[index] = new
        self._count_reported(old, new)
        self.enabled[index] = new.enabled
        self.service_version[index] = new.service_version
        self.hypervisor_version[index] = new.hypervisor_version
        self.failed_builds[index] = new.failed_builds
        self._claims.reported(index, new)
        self._set_counted(index, new)
        if old is None or new.pci_device_pools != old.pci_device_pools:
            self.free_pci_devices[index] = _free_devices(new)
        self.hypervisor_type.put(index, new.hypervisor_type)
        self.host_ip.put(index, new.host_ip)
        self.supported_instances.put(index, new.supported_instances)
        before = _NOTHING if old is None else old
        if old is None or old.service_version != new.service_version:
            self._count_version(new.service_version, 1)
            if old is not None:
                self._count_version(old.service_version, -1)
        self._failing += (new.failed_builds != 0) - (before.failed_builds != 0)
        if new.metrics != before.metrics:
            self._metrics.put(index, before.metrics, new.metrics)
        if new.aggregates != before.aggregates:
            self._set_aggregates(index, before.aggregates, new.aggregates)
        if new.instances != before.instances:
            self._set_instances(index, before.instances, new.instances)
        if new.images != before.images:
            self._set_images(index, before.images, new.images)

    def _count_reported(self, old: NodeReport | None, new: NodeReport) -> None:
        for column, has in _HAS.items():
            change = has(new) - (old is not None and has(old))
            if change:
                before = self.has(column)
                self._having[column] += change
                self.structure += column in _OPTIONAL and self.has(column) != before

    def _count_version(self, version: int, by: int) -> None:
        self._service_versions[version] += by
        if not self._service_versions[version]:
            del self._service_versions[version]

    def _set_instances(self, index: int, old: Collection[str], new: Collection[str]) -> None:
        for instance in old:
            if instance not in new:
                others = tuple(each for each in self._at_instance[instance] if each != index)
                if others:
                    self._at_instance[instance] = others
                else:
                    del self._at_instance[instance]
        for instance in new:
            if instance not in old:
                self._at_instance[instance] = (*self._at_instance.get(instance, ()), index)

    def _set_images(self, index: int, old: frozenset[str], new: frozenset[str]) -> None:
        for image in old - new:
            there = self._with_image[image]
            there.remove(index)
            if not there:
                del self._with_image[image]
        for image in new - old:
            self._with_image.setdefault(image, set()).add(index)

    def _set_aggregates(
        self, index: int, old: tuple[HostAggregate, ...], new: tuple[HostAggregate, ...]
    ) -> None:
        before, after = _values(old), _values(new)
        for key in before.keys() | after.keys():
            labels = self._labels.get(key)
            if labels is None:
                labels = self._labels[key] = Labels[Values](())
                self.structure += 1
            labels.put(index, after.get(key, ()))
            if not labels.labelled:
                del self._labels[key]
                self.structure += 1
        for aggregate in old:
            for named in aggregate.metadata.items():
                members = self._aggregates[named]
                members[aggregate.uuid] -= 1
                if not members[aggregate.uuid]:
                    del members[aggregate.uuid]
                    if not members:
                        del self._aggregates[named]
        for aggregate in new:
            for named in aggregate.metadata.items():
                self._aggregates.setdefault(named, Counter())[aggregate.uuid] += 1


_NOTHING = NodeReport(node="", host="", cell="", last_seen=-math.inf)


class _Services:
    """The nodes of each compute service, and the number of each service that has nodes."""

    def __init__(self) -> None:
        self._nodes: dict[str, dict[int, None]] = {}
        self._number: dict[str, int] = {}
        self._hosts: list[str] = []
        self._free: list[int] = []

    def nodes_of(self, host: str) -> Collection[int]:
        return self._nodes.get(host, ())

    def host(self, service: int) -> str:
        return self._hosts[service]

    def members(self, service: int) -> Collection[int]:
        return self._nodes[self._hosts[service]]

    def join(self, host: str, index: int) -> int:
        """Add a node; returns the number of its service."""
        number = self._number.get(host)
        if number is None:
            self._nodes[host] = {}
            if self._free:
                number = self._free.pop()
                self._hosts[number] = host
            else:
                number = len(self._hosts)
                self._hosts.append(host)
            self._number[host] = number
        self._nodes[host][index] = None
        return number

    def leave(self, host: str, index: int) -> bool:
        """Remove a node; returns whether its service has none any more."""
        nodes = self._nodes[host]
        del nodes[index]
        if nodes:
            return False
        del self._nodes[host]
        self._free.append(self._number.pop(host))
        return True


def _name(report: NodeReport) -> tuple[str, str]:
    return report.host, report.nodename or report.host


def _free_devices(report: NodeReport) -> int:
    """The free devices of all PCI pools; a count that is no number is none."""
    counts = (pool.get("count") for pool in report.pci_device_pools)
    return sum(count for count in counts if isinstance(count, int))


def _changed(old: NodeReport, new: NodeReport) -> bool:
    """Whether anything but the heartbeat is different."""
    if new.last_seen == old.last_seen:
        return new != old
    return any(getattr(new, name) != getattr(old, name) for name in _COMPARED)


def _values(aggregates: Iterable[HostAggregate]) -> dict[str, Values]:
    """The values of each metadata key, in the order of the aggregates."""
    values: dict[str, Values] = {}
    for aggregate in aggregates:
        for key, value in aggregate.metadata.items():
            values[key] = (*values.get(key, ()), value)
    return values
