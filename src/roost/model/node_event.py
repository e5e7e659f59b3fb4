"""Events of the node table: all changes of what the scheduler knows of nodes that can change a decision.

Heartbeats are no events; a service that comes up or goes down is. A service that never came up is down.
"""

import msgspec

from roost.model.aggregate import HostAggregate
from roost.model.node import NodeReport


class NodeReported(msgspec.Struct, frozen=True, tag=True):
    """A node is new, or its report differs from the one before. ``report.last_seen`` is 0."""

    report: NodeReport

    @property
    def subject(self) -> str:
        """What the event is about: a later event of the same subject replaces it."""
        return self.report.node


class NodeRemoved(msgspec.Struct, frozen=True, tag=True):
    """A node is gone."""

    node: str

    @property
    def subject(self) -> str:
        """See `NodeReported.subject`."""
        return self.node


class ServiceTransition(msgspec.Struct, frozen=True, tag=True):
    """A compute service came up or went down."""

    host: str
    up: bool

    @property
    def subject(self) -> str:
        """See `NodeReported.subject`."""
        return f"service {self.host}"


class AggregateSet(msgspec.Struct, frozen=True, tag=True):
    """A host aggregate is new, or has another name or metadata than before."""

    aggregate: HostAggregate

    @property
    def subject(self) -> str:
        """See `NodeReported.subject`."""
        return f"aggregate {self.aggregate.uuid}"


class AggregateRemoved(msgspec.Struct, frozen=True, tag=True):
    """A host aggregate is gone."""

    uuid: str

    @property
    def subject(self) -> str:
        """See `NodeReported.subject`."""
        return f"aggregate {self.uuid}"


class MembershipsSet(msgspec.Struct, frozen=True, tag=True):
    """A node is in other host aggregates than before: the uuids of all that it is in, sorted."""

    node: str
    aggregates: tuple[str, ...]

    @property
    def subject(self) -> str:
        """See `NodeReported.subject`."""
        return f"aggregates of {self.node}"


AggregateEvent = AggregateSet | AggregateRemoved | MembershipsSet
NodeEvent = NodeReported | NodeRemoved | ServiceTransition | AggregateEvent


def leaves_nothing(event: NodeEvent) -> bool:
    """Whether the state after an event is that of a subject without any event."""
    if isinstance(event, ServiceTransition):
        return not event.up
    if isinstance(event, MembershipsSet):
        return not event.aggregates
    return isinstance(event, NodeRemoved | AggregateRemoved)
