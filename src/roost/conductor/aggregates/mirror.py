"""Mirrors the members of host aggregates to placement, and repairs differences there."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

import structlog

from roost.conductor.aggregates.host_aggregates import KnownNodes
from roost.conductor.aggregates.provider_aggregates import MemberSource, MirrorPlacement, align
from roost.conductor.backoff import Backoff
from roost.ledger import LedgerError
from roost.model.text import error_text
from roost.placement.errors import PlacementError
from roost.state.api_database.aggregates.known import (
    AggregateDifference,
    AggregateSource,
    KnownAggregates,
    differences,
)
from roost.state.cell_database.cell import changed
from roost.storage import StorageError

EVERY_SECONDS = 60.0
"""Seconds between two comparisons with placement while nothing changes."""

_log = structlog.get_logger()


class MirroredSource(AggregateSource, MemberSource, Protocol):
    """The source of aggregates and deleted aggregates.

    `roost.state.api_database.aggregates.store.AggregateStore` is one.
    """

    async def deleted(self) -> frozenset[str]: ...

    async def forget(self, deleted: Collection[str]) -> None: ...


class AggregateMirror:
    """Keeps the root provider of each member in the aggregate of the same uuid in placement.

    It asks placement for the providers of each aggregate, and reads and writes only those that differ, each
    at its generation and by its members at that time: a round takes as long as the slowest cell, and members
    may change meanwhile. A lost answer is repaired in the next round like any other difference. Aggregates
    that are not Roost's own, and providers that are no compute nodes, are left alone. Several mirrors may
    run.

    ``nodes``: reads the root providers of all compute nodes; nodes of a cell that is away leave no aggregate
    until it is back. ``changed_event``: set when members have changed.
    """

    def __init__(
        self,
        source: MirroredSource,
        placement: MirrorPlacement,
        nodes: Callable[[], Awaitable[KnownNodes]],
        changed_event: asyncio.Event,
        every_seconds: float = EVERY_SECONDS,
        backoff: Backoff = Backoff(),  # noqa: B008 - it is frozen
    ) -> None:
        self._source = source
        self._known = KnownAggregates(source)
        self._placement = placement
        self._nodes = nodes
        self._changed = changed_event
        self._every_seconds = every_seconds
        self._backoff = backoff

    async def run(self) -> None:
        """Call `heal` after each change and every ``every_seconds``, until cancelled."""
        failures = 0
        while True:
            failures = 0 if await self.heal() else failures + 1
            pause = self._backoff.pause(failures) if failures else self._every_seconds
            await changed(self._changed, min(pause, self._every_seconds))

    async def heal(self) -> bool:
        """Bring placement in line once. Returns False if some of it failed, which is logged."""
        try:
            await self._known.refresh()
            deleted = await self._source.deleted()
            nodes = await self._nodes()
            wanted = {each.uuid: each.members for each in self._known.by_uuid.values()}
            present = {
                uuid: await self._placement.providers_in_aggregate(uuid) for uuid in (*wanted, *deleted)
            }
        except (StorageError, LedgerError, PlacementError) as error:
            _log.warning("host aggregates cannot be mirrored to placement", error=error_text(error))
            return False
        if nodes.away:
            _log.warning("what the nodes of cells are to leave in placement waits", cells=nodes.away)
        whole = not nodes.away
        for provider, difference in differences(wanted, present, nodes.uuids).items():
            whole &= await self._tried(provider, difference)
        if whole and deleted:
            try:
                await self._source.forget(deleted)
            except StorageError as error:
                _log.warning("deleted host aggregates cannot be forgotten", error=error_text(error))
                return False
        return whole

    async def _tried(self, provider: str, difference: AggregateDifference) -> bool:
        try:
            await align(self._source, self._placement, provider, difference.join | difference.leave)
        except (StorageError, LedgerError, PlacementError) as error:
            _log.warning(
                "the aggregates of a provider cannot be written", provider=provider, error=error_text(error)
            )
            return False
        return True
