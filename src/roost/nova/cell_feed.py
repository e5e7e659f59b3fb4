"""Feeds the node table with the compute nodes of one cell of Nova."""

import asyncio
import math
import sys
from collections.abc import Callable, Collection, Iterator
from collections.abc import Set as AbstractSet
from itertools import islice

from msgspec.structs import replace

from roost.model.node import NodeInstance, NodeReport
from roost.nova.database.cells import NovaCell
from roost.nova.database.compute_nodes import Stamp, read_nodes, read_stamps
from roost.nova.database.instances import HostMark, InstanceRow, read_instances, read_marks
from roost.nova.database.services import read_services
from roost.nova.host_aggregates import NovaAggregates
from roost.nova.liveness import ServiceLiveness
from roost.nova.reports import report_of
from roost.scheduler.nodes.table import NodeTable

HOSTS_AT_ONCE = 200
"""Hosts whose rows are read by one transaction: a row has up to 40 KB."""

DECODED_AT_ONCE = 100
"""Nodes whose NUMA topologies and PCI pools are decoded before the event loop may run other tasks."""

LOOK_SECONDS = 5.0
"""Seconds between two reads of the signs of life of all services of a cell."""

SAME_SECOND = 2.0
"""Seconds after which a changed row is read again. Its stamp has whole seconds, so that a second change
within one of them leaves the same stamp."""


class CellFeed:
    """The nodes of one cell, as they were read last.

    ``read_at`` is when all due reads last succeeded, by the monotonic clock; None before. ``rows`` counts the
    rows read.
    """

    def __init__(
        self,
        cell: NovaCell,
        table: NodeTable,
        aggregates: NovaAggregates,
        *,
        down_seconds: float,
        nodes_seconds: float,
        monotonic: Callable[[], float],
    ) -> None:
        self.cell = cell
        self.read_at: float | None = None
        self.rows = 0
        self._table = table
        self._aggregates = aggregates
        self._monotonic = monotonic
        self._nodes_seconds = nodes_seconds
        self._look_seconds = min(LOOK_SECONDS, down_seconds / 12)
        self._liveness = ServiceLiveness(down_seconds)
        self._looked = self._stamped = -math.inf
        self._up: frozenset[str] = frozenset()
        self._versions: dict[str, int] = {}
        self._stamps: dict[str, Stamp] = {}
        self._hosts: dict[str, str] = {}
        self._marks: dict[str, HostMark] = {}
        # By host and name of the node.
        self._instances: dict[str, dict[str, dict[str, NodeInstance]]] = {}
        # When the rows of a host are to be read again, by the monotonic clock.
        self._again: dict[str, float] = {}

    @property
    def hosts(self) -> AbstractSet[str]:
        """The hosts that have nodes."""
        return set(self._hosts.values())

    async def refresh(self, nodes: AbstractSet[str], instances: AbstractSet[str]) -> None:
        """Take in the changes of the cell; raises `StorageError`.

        ``nodes`` and ``instances``: hosts of which they have changed, as a cast says. Hosts of other cells
        are ignored.
        """
        began = self._monotonic()
        if began - self._looked >= self._look_seconds:
            await self._look()
        here = self.hosts
        hosts, listed = set(nodes & here), set(instances & here)
        if began - self._stamped >= self._nodes_seconds:
            # The instances are read before the nodes: see `_read`.
            listed |= await self._changed_instances()
            hosts |= await self._changed_nodes()
            self._stamped = began
        hosts |= {host for host, at in self._again.items() if at <= began}
        for some in _slices(sorted(hosts | listed)):
            await self._read(some, hosts)
        self._tell_up()
        self.read_at = self._monotonic()

    def away(self) -> None:
        """Note that the cell cannot be read: after a while none of its hosts is up."""
        self._liveness.away(self._monotonic())
        self._tell_up()

    def leave(self) -> None:
        """Remove the cell's nodes from the table."""
        self._remove(self._stamps.keys())
        self._aggregates.apply()

    async def _look(self) -> None:
        """Read the signs of life of services, and their versions."""
        began = self._monotonic()
        rows = await self.cell.database.read(read_services())
        self.rows += len(rows)
        self._liveness.look(rows, began, self._monotonic())
        versions = {row.host: row.version for row in rows}
        changed = [
            replace(report, service_version=version)
            for host, version in versions.items()
            if self._versions.get(host) != version
            for report in self._reports(host)
        ]
        self._versions = versions
        self._table.update(changed)
        self._tell_up()
        self._looked = began

    async def _changed_instances(self) -> set[str]:
        """Return the hosts that an instance has come to or has left."""
        marks = await self.cell.database.read(read_marks())
        self.rows += len(marks)
        return {
            host for host in marks.keys() | self._marks.keys() if marks.get(host) != self._marks.get(host)
        }

    async def _changed_nodes(self) -> set[str]:
        """Remove the nodes that are gone. Returns the hosts of new and changed ones."""
        found = await self.cell.database.read(read_stamps())
        self.rows += len(found)
        stamps = {each.node: each for each in found}
        gone = self._stamps.keys() - stamps.keys()
        if gone:
            self._remove(gone)
            self._aggregates.apply()
        return {each.host for each in found if self._stamps.get(each.node) != each.stamp}

    async def _read(self, hosts: Collection[str], changed: AbstractSet[str]) -> None:
        """Read the instances of hosts and then the rows of those that have ``changed``."""
        found = await self.cell.database.read(read_instances(hosts))
        self.rows += len(found)
        self._list(hosts, found)
        rows = await self.cell.database.read(read_nodes(hosts))
        self.rows += len(rows)
        now = self._monotonic()
        reports: list[NodeReport] = []
        moved = False
        for row in rows:
            report = report_of(row, self.cell.uuid, self._versions.get(row.host, 0))
            stamp = (row.id, row.updated_at)
            if self._stamps.get(report.node) != stamp:
                self._stamps[report.node] = stamp
                self._again[report.host] = now + SAME_SECOND
            elif self._again.get(report.host, math.inf) <= now:
                del self._again[report.host]
            self._hosts[report.node] = report.host
            moved |= self._aggregates.place(report.node, report.host)
            reports.append(report)
        for host in set(hosts) - {report.host for report in reports}:
            self._again.pop(host, None)
        if moved:
            self._aggregates.apply()
        self._table.update([self._with_instances(report) for report in reports])
        # Otherwise the first request for hardware would decode all nodes while other decisions wait.
        while self._table.decode(DECODED_AT_ONCE):
            await asyncio.sleep(0)

    def _with_instances(self, report: NodeReport) -> NodeReport:
        listed = self._instances.get(report.host, {})
        up = report.host in self._liveness.up
        return replace(
            report,
            instances=listed.get(report.nodename, {}),
            last_seen=math.inf if up else -math.inf,
        )

    def _list(self, hosts: Collection[str], rows: Collection[InstanceRow]) -> None:
        """Take in the instances of hosts."""
        counts: dict[str, list[int]] = {}
        for host in hosts:
            self._instances.pop(host, None)
            self._marks.pop(host, None)
        for row in rows:
            names = self._instances.setdefault(row.host, {})
            names.setdefault(row.nodename, {})[row.uuid] = NodeInstance(
                project_id=sys.intern(row.project_id), image=row.image and sys.intern(row.image)
            )
            counts.setdefault(row.host, []).append(row.id)
        self._marks |= {host: HostMark(len(ids), sum(ids)) for host, ids in counts.items()}

    def _remove(self, nodes: Collection[str]) -> None:
        gone = sorted(nodes)
        self._table.remove(gone)
        for node in gone:
            self._aggregates.forget(node)
            self._stamps.pop(node, None)
            self._hosts.pop(node, None)

    def _reports(self, host: str) -> list[NodeReport]:
        """Return the reports in the table of a host's nodes."""
        return [self._table.report(index) for index in self._table.indexes_of_host(host)]

    def _tell_up(self) -> None:
        """Tell the table of the hosts that came up or went down."""
        before, up = self._up, self._liveness.up
        for host in sorted(before ^ up):
            self._table.set_up(host, host in up)
        self._up = up


def _slices(hosts: list[str]) -> Iterator[list[str]]:
    rest = iter(hosts)
    while some := list(islice(rest, HOSTS_AT_ONCE)):
        yield some
