"""The metadata of host aggregates, by key and by node."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from roost.model.node import HostAggregate
from roost.scheduler.labels import Labels, Values


class AggregateMetadata:
    """The metadata of the aggregates that nodes are in."""

    def __init__(self) -> None:
        self._labels: dict[str, Labels[Values]] = {}
        self._aggregates: dict[tuple[str, str], Counter[str]] = {}

    def labels(self, key: str) -> Labels[Values] | None:
        """The values of a key by node; None if no node is in an aggregate that has it."""
        return self._labels.get(key)

    def keys(self, prefix: str) -> Collection[str]:
        """The keys with a prefix that some node has."""
        return [key for key in self._labels if key.startswith(prefix)]

    def aggregates_with(self, key: str, value: str) -> frozenset[str]:
        """The uuids of the aggregates that have ``key`` equal to ``value``."""
        return frozenset(self._aggregates.get((key, value), ()))

    def aggregates(self) -> Iterator[tuple[str, str, Collection[str]]]:
        """Each key and value, and the uuids of the aggregates that have them."""
        return ((key, value, found) for (key, value), found in self._aggregates.items())

    def put(self, index: int, old: tuple[HostAggregate, ...], new: tuple[HostAggregate, ...]) -> int:
        """Set the aggregates of a node that was in ``old``. Returns how many keys came or went."""
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
        for aggregate in old:
            for named in aggregate.metadata.items():
                members = self._aggregates[named]
                members[aggregate.uuid] -= 1
                if not members[aggregate.uuid]:
                    del members[aggregate.uuid]
                    if not members:
                        del self._aggregates[named]
        for aggregate in new:
            for named in aggregate.metadata.items():
                self._aggregates.setdefault(named, Counter())[aggregate.uuid] += 1
        return came_or_went


def _values(aggregates: Iterable[HostAggregate]) -> dict[str, Values]:
    """The values of each metadata key, in the order of the aggregates."""
    values: dict[str, Values] = {}
    for aggregate in aggregates:
        for key, value in aggregate.metadata.items():
            values[key] = (*values.get(key, ()), value)
    return values
