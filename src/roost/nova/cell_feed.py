"""Feeds the node table with the compute nodes of one cell of Nova."""

import asyncio
import datetime
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import islice

from msgspec.structs import replace

from roost.model.node import NodeInstance, NodeReport
from roost.nova.arrivals import Arrivals
from roost.nova.database.cells import NovaCell
from roost.nova.database.compute_nodes import NodeRow, Stamp, StampedNode, content_of, read_nodes, read_stamps
from roost.nova.database.services import read_seen, read_services
from roost.nova.host_aggregates import NovaAggregates
from roost.nova.instance_lists import InstanceLists, Named
from roost.nova.liveness import ServiceLiveness
from roost.nova.reports import report_of
from roost.process.metrics import nova_bridge as metrics
from roost.scheduler.nodes.table import NodeTable
from roost.storage import StorageError

READ_AT_ONCE = 200
"""Nodes, or hosts with their instances, that one transaction reads: the row of a node has up to 40 KB."""

DECODED_AT_ONCE = 100
"""Nodes whose NUMA topologies and PCI pools are decoded before the event loop may run other tasks."""

LOOK_SECONDS = 5.0
"""Seconds between two reads of the signs of life of all services of a cell."""

SAME_SECOND = 2.0
"""Seconds after which a row that was just changed is read again. Its stamp has whole seconds: another change
in the same second leaves the same stamp."""

JUST_CHANGED = datetime.timedelta(seconds=30)
"""Time before the newest stamp of a cell in which a row counts as just changed: writers' clocks may differ by
so much."""


class CellFeed:
    """The nodes of one cell, as they were read last.

    ``read_at`` is when all due reads last succeeded, by the monotonic clock; None before. ``made_at``: when
    the feed was made, by the same clock. ``changes`` rises with each change that a decision may depend on.
    """

    def __init__(
        self,
        cell: NovaCell,
        table: NodeTable,
        aggregates: NovaAggregates,
        arrivals: Arrivals,
        *,
        down_seconds: float,
        nodes_seconds: float,
        image_properties: bool,
        monotonic: Callable[[], float],
    ) -> None:
        self.cell = cell
        self.read_at: float | None = None
        self.made_at = monotonic()
        self._rows = self._counted = self.changes = 0
        self._table = table
        self._aggregates = aggregates
        self._arrivals = arrivals
        self._monotonic = monotonic
        self._nodes_seconds = nodes_seconds
        self._look_seconds = min(LOOK_SECONDS, down_seconds / 12)
        self._liveness = ServiceLiveness(down_seconds)
        self._looked = self._stamped = -math.inf
        self._up: frozenset[str] = frozenset()
        self._versions: dict[str, int] = {}
        self._stamps: dict[str, Stamp] = {}
        self._contents: dict[str, int] = {}
        self._hosts: dict[str, str] = {}
        self._lists = InstanceLists(cell.database, image_properties)
        self._newest: datetime.datetime | None = None
        self._heard: set[str] = set()
        self._heard_instances: set[str] = set()
        # When the row of a node is to be read again, by the monotonic clock.
        self._again: dict[str, float] = {}

    @property
    def rows(self) -> int:
        """The rows read so far."""
        return self._rows + self._lists.rows

    def count_rows(self) -> None:
        """Count the rows that were read since the last call in the metrics."""
        metrics.NOVA_ROWS.inc(self.rows - self._counted)
        self._counted = self.rows

    @property
    def hosts(self) -> AbstractSet[str]:
        """The hosts that have nodes."""
        return set(self._hosts.values())

    def hear(self, nodes: AbstractSet[str], instances: AbstractSet[str]) -> None:
        """Take note of hosts whose nodes or instances have changed, as casts say."""
        self._heard |= nodes
        self._heard_instances |= instances

    def hurry(self) -> None:
        """Let the next refresh read all that has changed, whatever is due."""
        self._looked = self._stamped = -math.inf

    async def refresh(self) -> None:
        """Take in the changes of the cell. Raises `StorageError`.

        Instances are read before nodes, so that no claim ends by a row that is older than its instance.
        """
        began = self._monotonic()
        if began - self._looked >= self._look_seconds:
            await self._look()
        heard, self._heard = self._heard, set()
        listed, self._heard_instances = self._heard_instances, set()
        due = {node for node, at in self._again.items() if at <= began}
        try:
            if began - self._stamped >= self._nodes_seconds:
                listed |= await self._lists.changed()
                due |= await self._changed_nodes()
                self._stamped = began
            elif heard:
                due |= self._differing(await self._read_stamps(heard))
            listed |= {self._hosts[node] for node in self._claims_on(heard)}
            for hosts in _slices(listed):
                await self._lists.read(hosts)
            # Also of claims that were made meanwhile.
            due |= self._claims_on(listed)
            for nodes in _slices(due):
                await self._read_nodes(nodes)
        except StorageError:
            self._heard |= heard
            self._heard_instances |= listed
            self._again |= dict.fromkeys(due, began)
            raise
        self.changes += len(listed)
        for hosts in _slices(listed):
            reports = [report for host in hosts for report in self._reports(host)]
            self._table.update([self._with_instances(report) for report in reports])
            await asyncio.sleep(0)
        self._tell_up()
        self.read_at = self._monotonic()

    def away(self) -> None:
        """Note that the cell cannot be read: after a while none of its hosts is up."""
        self._liveness.away(self._monotonic())
        self._tell_up()

    def leave(self) -> None:
        """Remove the cell's nodes from the table."""
        self._remove(self._table.nodes_of_cell(self.cell.uuid))
        self._aggregates.apply()

    def read_soon(self, host: str, node: str) -> None:
        """Read a host's instances and a node of it at the next refresh: an instance has arrived there."""
        self._heard_instances.add(host)
        self._again[node] = -math.inf

    def counts(self, node: str, instance: str) -> bool:
        """Return whether the row of a node that was read last counts an instance that has arrived there."""
        stamp = self._stamps.get(node)
        return stamp is None or self._arrivals.counted(instance, stamp)

    async def _look(self) -> None:
        """Read the signs of life of services, and their versions."""
        began = self._monotonic()
        rows = await self.cell.database.read(read_services())
        self._rows += len(rows)
        seen = {}
        if self._liveness.is_new(rows):
            seen = await self.cell.database.read(read_seen())
            self._rows += len(seen)
        self._liveness.look(rows, seen, began, self._monotonic())
        versions = {row.host: row.version for row in rows}
        changed = [
            replace(report, service_version=version)
            for host, version in versions.items()
            if self._versions.get(host) != version
            for report in self._reports(host)
        ]
        self._versions = versions
        # A compute writes the row of its service before that of its first node.
        self._heard |= versions.keys() - self.hosts
        self._table.update(changed)
        self._tell_up()
        self._looked = began

    async def _changed_nodes(self) -> set[str]:
        """Remove the nodes that are gone. Returns the new and changed ones."""
        found = await self._read_stamps(None)
        times = [each.stamp[1] for each in found if each.stamp[1] is not None]
        self._newest = max(times, default=None)
        before = self._stamps.keys() if self._stamps else self._table.nodes_of_cell(self.cell.uuid)
        gone = before - {each.node for each in found}
        if gone:
            self._remove(gone)
            self._aggregates.apply()
        return self._differing(found)

    async def _read_stamps(self, hosts: Collection[str] | None) -> list[StampedNode]:
        found = await self.cell.database.read(read_stamps(hosts))
        self._rows += len(found)
        return found

    def _differing(self, found: Iterable[StampedNode]) -> set[str]:
        return {each.node for each in found if self._stamps.get(each.node) != each.stamp}

    def _claims_on(self, hosts: AbstractSet[str]) -> set[str]:
        """Return the nodes of hosts on which claims are outstanding."""
        nodes = (self._table.nodes[taken.index] for _, taken in self._table.outstanding)
        return {node for node in nodes if self._hosts.get(node) in hosts}

    async def _read_nodes(self, nodes: Collection[str]) -> None:
        """Read the rows of nodes."""
        rows = await self.cell.database.read(read_nodes(nodes))
        self._rows += len(rows)
        now = self._monotonic()
        reports: list[NodeReport] = []
        moved = False
        for node in nodes:
            self._again.pop(node, None)
        for row in rows:
            report = self._report_of(row)
            stamp = (row.id, row.updated_at)
            if self._stamps.get(report.node) != stamp:
                self._stamps[report.node] = stamp
                if self._is_just_changed(row.updated_at):
                    self._again[report.node] = now + SAME_SECOND
            self._hosts[report.node] = report.host
            moved |= self._aggregates.place(report.node, report.host)
            reports.append(report)
        if moved:
            self._aggregates.apply()
        self._table.update([self._with_instances(report) for report in reports])
        # Otherwise the first request for hardware would decode all nodes while other decisions wait.
        while self._table.decode(DECODED_AT_ONCE):
            await asyncio.sleep(0)

    def _report_of(self, row: NodeRow) -> NodeReport:
        """Return the report of a row; the one in the table if nothing but the stamp is new.

        Most reads are such, and the JSON of a row with NUMA nodes costs more than all the rest.
        """
        content = content_of(row)
        index = self._table.index_of_node(row.uuid)
        if index is not None and self._contents.get(row.uuid) == content:
            return self._table.report(index)
        self._contents[row.uuid] = content
        self.changes += 1
        return report_of(row, self.cell.uuid, self._versions.get(row.host, 0))

    def _is_just_changed(self, at: datetime.datetime | None) -> bool:
        """Return whether a row may change again without another stamp."""
        if at is None:
            return False  # its first change gives it a stamp
        if self._newest is None or at > self._newest:
            self._newest = at
        return self._newest - at <= JUST_CHANGED

    def _with_instances(self, report: NodeReport) -> NodeReport:
        """Return a report with the node's instances that it counts, up or down as its service is."""
        names = self._lists.of(report.host)
        if len(self._aggregates.nodes_of(report.host)) == 1:
            listed = _together(names)
        else:
            listed = dict(names.get(report.nodename, {}))
        index = self._table.index_of_node(report.node)
        claimed = {} if index is None else self._table.outstanding.instances_on(index)
        early = {each for each in claimed if each in listed and not self.counts(report.node, each)}
        # The row's own number of instances may say that it counts them all: no wait for its next stamp then.
        if early and report.num_instances < len(listed):
            listed = {each: listed[each] for each in listed if each not in early}
            self._again[report.node] = -math.inf
        up = report.host in self._liveness.up
        return replace(report, instances=listed, last_seen=math.inf if up else -math.inf)

    def _remove(self, nodes: Collection[str]) -> None:
        gone = sorted(nodes)
        self.changes += len(gone)
        self._table.remove(gone)
        for node in gone:
            self._aggregates.forget(node)
            self._stamps.pop(node, None)
            self._contents.pop(node, None)
            self._hosts.pop(node, None)
            self._again.pop(node, None)

    def _reports(self, host: str) -> list[NodeReport]:
        """Return the reports in the table of a host's nodes in this cell."""
        reports = (self._table.report(index) for index in self._table.indexes_of_host(host))
        return [report for report in reports if report.cell == self.cell.uuid]

    def _tell_up(self) -> None:
        """Tell the table of the hosts that came up or went down."""
        before, up = self._up, self._liveness.up
        self.changes += len(before ^ up)
        for host in sorted(before ^ up):
            self._table.set_up(host, host in up)
        self._up = up


def _together(names: Named) -> dict[str, NodeInstance]:
    return {each: instance for listed in names.values() for each, instance in listed.items()}


def _slices(names: AbstractSet[str]) -> Iterator[list[str]]:
    rest = iter(sorted(names))
    while some := list(islice(rest, READ_AT_ONCE)):
        yield some
