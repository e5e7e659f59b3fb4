"""The node table: the reports of all compute nodes, as columns; its journal."""

import math
from collections.abc import Iterable

import msgspec

from roost.model.node import NodeReport
from roost.model.node_event import (
    ClaimBuilt,
    ClaimCounted,
    ClaimReleased,
    ColumnsReported,
    NodeEvent,
    NodeRemoved,
    NodeReported,
    ServiceTransition,
    WordSaid,
)
from roost.scheduler.nodes.reported_nodes import ReportedNodes


class NodeTable(ReportedNodes):
    """All compute nodes that agents have reported, whose changes may be recorded as events.

    ``journal`` is the id of this table's journal and ``version`` the number of the last event in it, None
    without a journal: see `record`.
    """

    def __init__(self, reports: Iterable[NodeReport] = ()) -> None:
        super().__init__(reports)
        self.journal: str | None = None
        self._journalled: list[NodeEvent] = []

    def record(self, journal: str) -> None:
        """Record every change from now on as an event of ``journal``, to be read by `take_events`."""
        self.journal, self.version = journal, 0
        self.ignore(self._journalled)
        self._journalled = self.listen()

    def take_events(self) -> list[NodeEvent]:
        """Return the events of the journal since the last call, up to ``version``."""
        events = [*self._journalled]
        self._journalled.clear()
        return events

    def listen(self) -> list[NodeEvent]:
        """Return a list that gets every change from now on as an event, until `ignore`. The caller may clear
        it."""
        events: list[NodeEvent] = []
        self._listening.append(events)
        return events

    def ignore(self, events: list[NodeEvent]) -> None:
        """End a `listen`; the list gets no further events."""
        self._listening = [each for each in self._listening if each is not events]

    def become_copy(self) -> None:
        """Become a copy in another process, which only `apply` changes.

        Lists of `listen` get no more events, and a service stays up or down until an event says otherwise.
        """
        self._listening = []
        for index, report in enumerate(self._reports):
            up = self._heartbeats.is_alive(self.service.item(index))
            self._reports[index] = msgspec.structs.replace(report, last_seen=math.inf if up else -math.inf)
        self._heartbeats.hold()

    def state(self) -> list[NodeEvent]:
        """Return the events that give the present state, applied to an empty table."""
        nodes = sorted(index for _, index in self._names)
        alive = {self.hosts[index]: None for index in nodes if self.alive[index]}
        claims = [*self._claims]
        return [
            ColumnsReported(tuple(sorted(self._had))),
            *(WordSaid(*subject, False) for subject in sorted(self._disabled)),
            *(NodeReported(self._reports[index]) for index in nodes),
            *(ServiceTransition(host, True) for host in alive),
            *self._aggregates.state(),
            *(
                ClaimCounted(
                    instance, self.nodes[taken.index], taken.memory_mb, taken.disk_mb, taken.assignment
                )
                for instance, taken in claims
            ),
            *(ClaimBuilt(instance) for instance, taken in claims if not taken.building),
        ]

    def apply(self, event: NodeEvent) -> None:
        """Take in an event of a journal. The table must not record one itself."""
        match event:
            case NodeReported(report):
                seen = math.inf if self._is_up(report.host) else -math.inf
                self.update([msgspec.structs.replace(report, last_seen=seen)])
            case NodeRemoved(node):
                self.remove([node])
            case ServiceTransition(host, up):
                self.set_up(host, up)
            case ClaimCounted(instance, node, memory_mb, disk_mb, assignment):
                index = self.index_of_node(node)
                if index is not None:
                    self.claim(instance, index, memory_mb, disk_mb, assignment)
            case ClaimBuilt(instance):
                self.built(instance)
            case ClaimReleased(instance):
                self.release(instance)
            case ColumnsReported(columns):
                self.set_reported(columns)
            case WordSaid():
                self.hear(event)
            case _:
                self.apply_to_aggregates(event)

    def _is_up(self, host: str) -> bool:
        index = next(iter(self._services.nodes_of(host)), None)
        return index is not None and self._heartbeats.is_alive(self.service.item(index))
