"""The errors of changes of host aggregates.

    NotFound
    └── NoSuchAggregate     no aggregate has the uuid
    BadRequest
    └── UnknownNodeName     no compute node has the name, or several have it
    Conflict
    ├── AggregateChanged    the aggregate is at another generation
    ├── NameTaken           another aggregate has the name
    ├── AggregateNotEmpty   an aggregate that has members cannot be deleted
    ├── SeveralZones        a node would be in two availability zones
    └── ZoneInUse           a node with instances would change its availability zone

The statuses are those of `roost.web.errors`.
"""

from roost.web.errors import BadRequest, Conflict, NotFound


class NoSuchAggregate(NotFound):
    """No aggregate has the uuid."""

    def __init__(self, uuid: str) -> None:
        super().__init__(f"no aggregate {uuid}")


class UnknownNodeName(BadRequest):
    """No compute node has the name, or several have it."""


class AggregateChanged(Conflict):
    """The aggregate is at another generation."""


class NameTaken(Conflict):
    """Another aggregate has the name."""


class AggregateNotEmpty(Conflict):
    """An aggregate that has members cannot be deleted."""


class SeveralZones(Conflict):
    """A node would be in two availability zones."""


class ZoneInUse(Conflict):
    """A node with instances would change its availability zone."""
