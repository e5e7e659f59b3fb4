"""The nodes whose availability zone a change of an aggregate changes."""

from collections.abc import Mapping
from typing import NamedTuple

from roost.model.aggregate import Aggregate
from roost.state.api_database.aggregates.errors import SeveralZones


class ZoneChange(NamedTuple):
    """The zone of a node before and after a change; None: it is in no zone."""

    before: str | None
    after: str | None

    def __str__(self) -> str:
        before, after = ("none" if zone is None else repr(zone) for zone in self)
        return f"from {before} to {after}"


def affected_nodes(old: Aggregate, new: Aggregate) -> frozenset[str]:
    """Return the nodes whose zone may change when ``old`` becomes ``new``."""
    if old.zone != new.zone:
        return old.members | new.members
    return old.members ^ new.members if new.zone is not None else frozenset()


def zone_changes(old: Aggregate, new: Aggregate, elsewhere: Mapping[str, str]) -> dict[str, ZoneChange]:
    """Return the nodes whose zone changes when ``old`` becomes ``new``, in order of their uuids.

    ``elsewhere``: the zones that affected nodes have from other aggregates.

    Raises:
        SeveralZones: a node would be in two zones.

    Source: ``AggregateAPI.is_safe_to_update_az`` of Nova.
    """
    changes = {}
    for node in sorted(affected_nodes(old, new)):
        other = elsewhere.get(node)
        after = new.zone if node in new.members else None
        if after is not None and other is not None and after != other:
            raise SeveralZones(
                f"node {node} is in availability zone {other!r} by another aggregate, "
                f"and cannot be in {after!r} as well"
            )
        before = old.zone if node in old.members and old.zone is not None else other
        after = other if after is None else after
        if before != after:
            changes[node] = ZoneChange(before, after)
    return changes
