"""Events of the node table: all changes of what the scheduler knows of nodes that can change a decision.

Heartbeats are no events; a service that comes up or goes down is. A service that never came up is down.
"""

import msgspec

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


NodeEvent = NodeReported | NodeRemoved | ServiceTransition


def leaves_nothing(event: NodeEvent) -> bool:
    """Whether the state after an event is that of a subject without any event."""
    return isinstance(event, NodeRemoved) or (isinstance(event, ServiceTransition) and not event.up)
