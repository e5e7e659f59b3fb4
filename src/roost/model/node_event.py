"""Events of the node table: all changes of nodes that can change a decision of the scheduler.

A heartbeat is no event; a service that comes up or goes down is one. A service that never came up is down.
Events are stored as MessagePack arrays of these types: the order of fields and the tags are a storage format.
"""

from typing import Any

import msgspec

from roost.model.aggregate import HostAggregate
from roost.model.assignment import Assignment
from roost.model.node import NodeInstance, NodeReport


class NodeReported(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A node is new, or its report differs from the one before."""

    report: NodeReport


class ReportChanged(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The form in which the journal stores `NodeReported` for a node whose report it has already.

    ``fields``: the changed fields except ``instances``, as plain data. ``came``: instances that are new or
    have changed. ``went``: instances that are gone.
    """

    node: str
    fields: dict[str, Any]
    came: dict[str, NodeInstance] = {}
    went: tuple[str, ...] = ()


class NodeRemoved(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A node is gone."""

    node: str


class ServiceTransition(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A compute service came up or went down."""

    host: str
    up: bool


class AggregateSet(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A host aggregate is new, or has another name or metadata than before."""

    aggregate: HostAggregate


class AggregateRemoved(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A host aggregate is gone."""

    uuid: str


class MembershipsSet(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A node is in other host aggregates than before: the uuids of all that it is in, sorted."""

    node: str
    aggregates: tuple[str, ...]


class WordSaid(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """An operator has disabled or enabled a cell, a host of it or a node of a host.

    ``host`` and ``node`` are empty for a word about more: see `roost.model.operator_word.Subject`.
    """

    cell: str
    host: str
    node: str
    enabled: bool


class ClaimCounted(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A claim counts on a node until the node's reports list the instance. Amounts are in MiB."""

    instance: str
    node: str
    memory_mb: int = 0
    disk_mb: int = 0
    assignment: Assignment | None = None


class ClaimBuilt(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The instance of a claim is built: it no longer counts as an I/O operation."""

    instance: str


class ClaimReleased(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """The claim of an instance counts no longer."""

    instance: str


class ColumnsReported(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Columns of the node table in which some node has ever reported a value.

    A weigher is neutral until some node has reported the column that it weighs by, and never becomes neutral
    again.
    """

    columns: tuple[str, ...]


AggregateEvent = AggregateSet | AggregateRemoved | MembershipsSet
ClaimEvent = ClaimCounted | ClaimBuilt | ClaimReleased
NodeEvent = (
    NodeReported | NodeRemoved | ServiceTransition | AggregateEvent | WordSaid | ClaimEvent | ColumnsReported
)
