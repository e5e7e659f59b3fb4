"""A copy of the host aggregates in memory, kept up to date by version."""

from typing import Protocol

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
