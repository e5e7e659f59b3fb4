"""The compute nodes that agents have reported: takes in reports, heartbeats, aggregates and claims."""

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager

import msgspec

from roost.fleet.columns import Bools, Float64
from roost.model.aggregate import Aggregate
from roost.model.assignment import Assignment
from roost.model.node import NodeReport, SupportedInstance
from roost.model.node_event import (
    AggregateEvent,
    NodeRemoved,
    NodeReported,
    ServiceTransition,
)
from roost.scheduler.nodes.directory import NodeDirectory
from roost.scheduler.nodes.heartbeats import Heartbeats
from roost.scheduler.nodes.labels import Labels
from roost.scheduler.nodes.lookups import names_of

_COMPARED = [name for name in NodeReport.__struct_fields__ if name not in ("node", "last_seen")]
_NOTHING = NodeReport(node="", host="", cell="", last_seen=-math.inf)


class FreeRows:
    """Rows without a node.

    A run of the scheduler holds indexes of nodes while it waits for placement. So a row is reused only when
    every run that began before the row was freed has ended; until then it stays as its node left it.
    """

    def __init__(self) -> None:
        self._free: deque[tuple[int, int]] = deque()
        self._begun = 0
        self._reading: dict[int, None] = {}

    def __len__(self) -> int:
        return len(self._free)

    def free(self, row: int) -> None:
        """Add the row of a removed node."""
        self._free.append((row, self._begun))

    def take(self) -> int | None:
        """Return a row for a new node, None if none can be reused now."""
        if not self._free:
            return None
        row, freed_after = self._free[0]
        if self._reading and next(iter(self._reading)) <= freed_after:
            return None
        self._free.popleft()
        return row

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep rows that are freed from now on from being reused until the end of the context."""
        self._begun += 1
        reader = self._begun
        self._reading[reader] = None
        try:
            yield
        finally:
            del self._reading[reader]


class ReportedNodes(NodeDirectory):
    """All compute nodes that agents have reported, by root provider, with their host aggregates.

    A node's *index* is its row. Ties between equal nodes go to the lower `tie_rank`. ``len`` is the number of
    nodes; ``size`` is the number of rows. Some rows may be free: no lookup finds a free row, and it is
    neither enabled nor alive.

    Numbers by index: see `NodeColumns`. Names by index, and lookups: see `NodeDirectory`. Labels by index:
    ``hypervisor_type``, ``host_ip``, ``supported_instances``. ``stats_reported``: the number of nodes that
    report each key in their ``stats``.
    """

    def __init__(self, reports: Iterable[NodeReport] = ()) -> None:
        super().__init__()
        self.hypervisor_type = Labels("")
        self.host_ip: Labels[str | None] = Labels(None)
        self.supported_instances: Labels[tuple[SupportedInstance, ...]] = Labels(())
        self.stats_reported = Counter[str]()
        self._heartbeats = Heartbeats(self._set_alive)
        self._free = FreeRows()
        self.update(reports)

    def reading(self) -> AbstractContextManager[None]:
        """Keep each index for its node until the end of the context, even if the node is removed."""
        return self._free.reading()

    # Heartbeats

    @property
    def last_seen(self) -> Float64:
        """The last heartbeat of each compute service, by its number: float64 seconds since the epoch."""
        return self._heartbeats.last_seen

    def seen_since(self, oldest: float) -> Bools:
        """Return the nodes whose service was seen at ``oldest`` (seconds since the epoch) or later: the
        column ``alive``."""
        self._heartbeats.look(oldest)
        return self.alive

    def silent(self) -> dict[str, float]:
        """Return the last heartbeat of each compute service that is down: seconds since the epoch by name."""
        return {self._services.host(service): at for service, at in self._heartbeats.silent()}

    def set_silent(self, seen: Mapping[str, float]) -> None:
        """Set the last heartbeats of compute services that are down, in a copy of a table."""
        for host, at in seen.items():
            index = next(iter(self._services.nodes_of(host)), None)
            if index is not None:
                self.last_seen[self.service.item(index)] = at

    # Changes

    def claim(
        self,
        instance: str,
        index: int,
        memory_mb: int = 0,
        disk_mb: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        """As `NodeColumns.claim`.

        A run may hold the row of a node that was removed meanwhile. Then the claim counts on the row that the
        node has now, and nowhere if it has none.
        """
        there = self.index_of_node(self.nodes[index])
        if there is None:
            self.release(instance)
        else:
            super().claim(instance, there, memory_mb, disk_mb, assignment)

    def update(self, reports: Iterable[NodeReport]) -> None:
        """Take in reports; a node reported before is updated.

        A node with the host and nodename of another one replaces it: the host was installed anew.
        """
        for report in reports:
            index = self._names.index_of_node(report.node)
            old = None if index is None else self._reports[index]
            if index is None or old is None:
                self._note(NodeReported(report))
                index = self._add(report)
            elif _changed(old, report):
                self._note(NodeReported(report))
                self._change(index, old, report)
            else:
                self._reports[index] = report
            self._beat(index, old, report.last_seen)

    def set_up(self, host: str, up: bool) -> None:
        """Set a compute service up or down, regardless of its last heartbeat."""
        seen = math.inf if up else -math.inf
        nodes = [self._reports[index] for index in self.indexes_of_host(host)]
        self.update([msgspec.structs.replace(report, last_seen=seen) for report in nodes])

    def set_aggregates(self, changed: Iterable[Aggregate], every: AbstractSet[str]) -> list[AggregateEvent]:
        """Take in changed host aggregates, and remove all that are not in ``every``. Returns the events.

        ``every``: the uuids of all aggregates. A member need not be in the table: it may come later.
        """
        events = self._aggregates.differences(changed, every)
        self.apply_to_aggregates(*events)
        return events

    def apply_to_aggregates(self, *events: AggregateEvent) -> None:
        """Take in events of host aggregates, in order."""
        for event in events:
            self._apply_to_aggregates(event)

    def remove(self, nodes: Iterable[str]) -> None:
        """Remove nodes by root provider; unknown ones are ignored."""
        for node in nodes:
            index = self._names.index_of_node(node)
            if index is not None:
                self._note(NodeRemoved(node))
                self._remove(index)

    def _apply_to_aggregates(self, event: AggregateEvent) -> None:
        self._note(event)
        self._in_aggregates.clear()
        affected = [
            (node, index)
            for node in self._aggregates.affected(event)
            if (index := self._names.index_of_node(node)) is not None
        ]
        before = [self._aggregates.of(node) for node, _ in affected]
        self.structure += self._aggregates.apply(event)
        for (node, index), old in zip(affected, before, strict=True):
            new = self._aggregates.of(node)
            if new != old:
                self.structure += self._aggregates.put(index, old, new)
                self.invalidations.append(index)

    def _add(self, report: NodeReport) -> int:
        self._make_room_for(report)
        index = self._free.take()
        if index is None:
            index = self._append(report)
        self._names.put(index, report.node)
        self._in_aggregates.clear()
        self._tie_order.forget()
        self._at_rows.forget()
        self.structure += 1
        self._join(index, report)
        self._set(index, None, report)
        self.structure += self._aggregates.put(index, (), self._aggregates.of(report.node))
        return index

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
        self._in_aggregates.clear()
        self._names.drop(old.node)
        self._leave(index, old)
        self._claims.drop_all(index)
        nothing = NodeReport(node=old.node, host=old.host, cell=old.cell, last_seen=-math.inf, enabled=False)
        self._set(index, old, nothing)
        self.structure += self._aggregates.put(index, self._aggregates.of(old.node), ())
        self._count_version(nothing.service_version, -1)
        # A run that still holds the index reads names and report of the removed node.
        self._reports[index] = old
        self.alive[index] = False
        self._at_rows.forget()
        self.structure += 1
        self._free.free(index)

    def _make_room_for(self, report: NodeReport) -> None:
        namesake = self._names.named(*names_of(report))
        if namesake is not None:
            self._remove(namesake)

    def _join(self, index: int, report: NodeReport) -> None:
        """Put a node under its names, its cell and its service."""
        self._names.join(index, report)
        self.cell[index] = self._in_cells.join(report.cell)
        service = self._services.join(report.host, index)
        self.service[index] = service
        self.alive[index] = self._heartbeats.is_alive(service)

    def _leave(self, index: int, old: NodeReport) -> None:
        self._names.leave(index, old)
        self._in_cells.leave(old.cell)
        if self._services.leave(old.host, index):
            service = self.service.item(index)
            if self._heartbeats.is_alive(service):
                # A later node of the service may come with an old heartbeat, and the journal has none.
                self._note(ServiceTransition(old.host, False))
            self._heartbeats.forget(service)
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
        """Drop the heartbeat ``had`` of a service's node; find the latest again if that was it."""
        service = self.service.item(index)
        if had >= self._heartbeats.last_seen.item(service):
            nodes = self._services.nodes_of(host)
            self._heartbeats.put(service, max(self._reports[each].last_seen for each in nodes))

    def _set_alive(self, service: int, alive: bool) -> None:
        self._note(ServiceTransition(self._services.host(service), alive))
        for index in self._services.members(service):
            self.alive[index] = alive
            self.invalidations.append(index)

    def _set(self, index: int, old: NodeReport | None, new: NodeReport) -> None:
        """Set all columns and labels that depend on a node's own report alone."""
        self._set_columns(index, old, new)
        self.hypervisor_type.put(index, new.hypervisor_type)
        self.host_ip.put(index, new.host_ip)
        self.supported_instances.put(index, new.supported_instances)
        before = _NOTHING if old is None else old
        if new.stats.keys() != before.stats.keys():
            self.stats_reported.subtract(before.stats.keys() - new.stats.keys())
            self.stats_reported.update(new.stats.keys() - before.stats.keys())
        if new.instances != before.instances:
            self._with_instance.put(index, before.instances, new.instances)
        if new.images != before.images:
            self._with_image.put(index, before.images, new.images)


def _changed(old: NodeReport, new: NodeReport) -> bool:
    """Return whether two reports differ in anything but the heartbeat."""
    if new.last_seen == old.last_seen:
        return new != old
    return any(getattr(new, name) != getattr(old, name) for name in _COMPARED)
