"""A copy of the host aggregates in memory, kept up to date by version, and how placement differs from it."""

from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

from roost.model.aggregate import Aggregate
from roost.state.api_database.aggregates.store import AggregateChanges


class AggregateSource(Protocol):
    """The source of changes: see `roost.state.api_database.aggregates.store.AggregateStore.changes`."""

    async def changes(self, after: int | None = None) -> AggregateChanges | None: ...


class KnownAggregates:
    """All aggregates by uuid, of which `refresh` reads only those that have changed."""

    def __init__(self, source: AggregateSource) -> None:
        self.by_uuid: dict[str, Aggregate] = {}
        self._source = source
        self._version: int | None = None

    async def refresh(self) -> AggregateChanges | None:
        """Read and return the changes since the last call; None if there are none."""
        changes = await self._source.changes(self._version)
        if changes is not None:
            for gone in self.by_uuid.keys() - changes.all:
                del self.by_uuid[gone]
            self.by_uuid.update({each.uuid: each for each in changes.changed})
            self._version = changes.version
        return changes


class AggregateDifference(NamedTuple):
    """The aggregates that a provider is to join and those that it is to leave."""

    join: frozenset[str]
    leave: frozenset[str]


def differences(
    wanted: Mapping[str, AbstractSet[str]],
    present: Mapping[str, AbstractSet[str]],
    nodes: AbstractSet[str],
) -> dict[str, AggregateDifference]:
    """Return the aggregates that providers have to join and leave, by provider.

    ``wanted``: the members of each aggregate. ``present``: the providers that each aggregate has in
    placement, for all wanted aggregates and for deleted ones. Only ``nodes``, the root providers of compute
    nodes, leave an aggregate: an operator may have put another provider into it, such as a shared disk.
    """
    join: defaultdict[str, set[str]] = defaultdict(set)
    leave: defaultdict[str, set[str]] = defaultdict(set)
    for aggregate, providers in present.items():
        members = wanted.get(aggregate, frozenset())
        for provider in members - providers:
            join[provider].add(aggregate)
        for provider in (providers - members) & nodes:
            leave[provider].add(aggregate)
    return {
        provider: AggregateDifference(frozenset(join[provider]), frozenset(leave[provider]))
        for provider in sorted(join.keys() | leave.keys())
    }
