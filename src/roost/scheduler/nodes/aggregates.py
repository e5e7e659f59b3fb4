"""The host aggregates of nodes, and their metadata by key and by node."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet

from roost.model.aggregate import Aggregate, HostAggregate
from roost.model.node_event import AggregateEvent, AggregateRemoved, AggregateSet, MembershipsSet
from roost.scheduler.nodes.labels import Labels, Values


class NodeAggregates:
    """Host aggregates by uuid, the nodes in each, and the values that nodes have for each metadata key.

    Nodes are named by the uuid of their root provider, and may be members before they are in the node table.
    A membership may come before its aggregate: it counts from then on.
    """

    def __init__(self) -> None:
        self._by_uuid: dict[str, HostAggregate] = {}
        self._members: dict[str, set[str]] = {}
        self._of_node: dict[str, tuple[str, ...]] = {}
        self._labels: dict[str, Labels[Values]] = {}
        self._having: dict[tuple[str, str], set[str]] = {}

    def of(self, node: str) -> tuple[HostAggregate, ...]:
        """Return the aggregates of a node, in order of their uuids."""
        known = self._by_uuid
        return tuple(known[uuid] for uuid in self._of_node.get(node, ()) if uuid in known)

    def all(self) -> list[HostAggregate]:
        """Return all aggregates, by name."""
        return sorted(self._by_uuid.values(), key=lambda each: (each.name, each.uuid))

    def name(self, uuid: str) -> str | None:
        """Return the name of an aggregate; None if there is none."""
        found = self._by_uuid.get(uuid)
        return None if found is None else found.name

    def members(self, any_of: frozenset[str]) -> set[str]:
        """Return the nodes in one of some aggregates."""
        known = self._by_uuid
        return set[str]().union(*(self._members.get(uuid, ()) for uuid in any_of if uuid in known))

    def labels(self, key: str) -> Labels[Values] | None:
        """Return the values of a key by index of the node; None if no node is in an aggregate that has it."""
        return self._labels.get(key)

    def keys(self, prefix: str) -> Collection[str]:
        """Return the keys with a prefix that some node has."""
        return [key for key in self._labels if key.startswith(prefix)]

    def having(self, key: str, value: str) -> frozenset[str]:
        """Return the uuids of all aggregates that have ``key`` equal to ``value``, even without members."""
        return frozenset(self._having.get((key, value), ()))

    def by_metadata(self) -> Iterator[tuple[str, str, Collection[str]]]:
        """Yield each key and value, and the uuids of the aggregates that have them."""
        return ((key, value, found) for (key, value), found in self._having.items())

    def state(self) -> list[AggregateEvent]:
        """Return the events that give these aggregates and memberships, applied to none."""
        return [
            *(AggregateSet(self._by_uuid[uuid]) for uuid in sorted(self._by_uuid)),
            *(MembershipsSet(node, self._of_node[node]) for node in sorted(self._of_node)),
        ]

    def differences(self, changed: Iterable[Aggregate], every: AbstractSet[str]) -> list[AggregateEvent]:
        """Return the events that apply ``changed`` and remove aggregates whose uuid is not in ``every``."""
        events: list[AggregateEvent] = []
        joined, left = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for new in changed:
            if self._by_uuid.get(new.uuid) != new.named:
                events.append(AggregateSet(new.named))
            members = self._members.get(new.uuid, set())
            for node in new.members - members:
                joined[node].add(new.uuid)
            for node in members - new.members:
                left[node].add(new.uuid)
        gone = sorted(self._by_uuid.keys() - every)
        for uuid in gone:
            for node in self._members.get(uuid, ()):
                left[node].add(uuid)
        for node in sorted(joined.keys() | left.keys()):
            there = set(self._of_node.get(node, ())) - left[node] | joined[node]
            events.append(MembershipsSet(node, tuple(sorted(there))))
        return [*events, *map(AggregateRemoved, gone)]

    def affected(self, event: AggregateEvent) -> Collection[str]:
        """Return the nodes whose aggregates an event may change."""
        if isinstance(event, MembershipsSet):
            return (event.node,)
        uuid = event.aggregate.uuid if isinstance(event, AggregateSet) else event.uuid
        return self._members.get(uuid, ())

    def apply(self, event: AggregateEvent) -> int:
        """Take in an event. Returns 1 if queries made before it may be out of date now, else 0.

        The caller then calls `put` for each affected node that is in the table.
        """
        if isinstance(event, MembershipsSet):
            self._set_memberships(event.node, event.aggregates)
            return 0
        uuid = event.aggregate.uuid if isinstance(event, AggregateSet) else event.uuid
        old = self._by_uuid.pop(uuid, None)
        for named in old.metadata.items() if old is not None else ():
            self._having[named].remove(uuid)
            if not self._having[named]:
                del self._having[named]
        if isinstance(event, AggregateSet):
            self._by_uuid[uuid] = event.aggregate
            for named in event.aggregate.metadata.items():
                self._having.setdefault(named, set()).add(uuid)
        return 1

    def put(self, index: int, old: tuple[HostAggregate, ...], new: tuple[HostAggregate, ...]) -> int:
        """Set the values of a node that was in ``old``. Returns how many keys came or went."""
        before, after = _values(old), _values(new)
        came_or_went = 0
        for key in before.keys() | after.keys():
            labels = self._labels.get(key)
            if labels is None:
                labels = self._labels[key] = Labels[Values](())
                came_or_went += 1
            labels.put(index, after.get(key, ()))
            if not labels.labelled:
                del self._labels[key]
                came_or_went += 1
        return came_or_went

    def _set_memberships(self, node: str, aggregates: tuple[str, ...]) -> None:
        for uuid in self._of_node.pop(node, ()):
            members = self._members[uuid]
            members.remove(node)
            if not members:
                del self._members[uuid]
        if aggregates:
            self._of_node[node] = aggregates
            for uuid in aggregates:
                self._members.setdefault(uuid, set()).add(node)


def _values(aggregates: Iterable[HostAggregate]) -> dict[str, Values]:
    """Return the values of each metadata key, in the order of the aggregates."""
    values: dict[str, Values] = {}
    for aggregate in aggregates:
        for key, value in aggregate.metadata.items():
            values[key] = (*values.get(key, ()), value)
    return values
