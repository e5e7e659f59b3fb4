"""The hosts of a scheduler that is a service of its own: its node table, kept up to date."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from roost.ledger import LedgerError
from roost.placement.errors import PlacementError
from roost.scheduler.errors import SchedulerError
from roost.scheduler.nodes.roots import Roots, RootSource, UnreportedNodes
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.selection.claim_result import one_line
from roost.storage import StorageError

EVERY_SECONDS = 1.0
"""Seconds between two reads of the cells' databases and placement."""

_log = structlog.get_logger()


class HostFeed(Protocol):
    """Reads the nodes of cells into a node table, as `roost.scheduler.nodes.feed.NodeFeed` does."""

    async def refresh(self) -> None:
        """Bring the table up to date once."""


class ServiceHosts:
    """Keeps a node table up to date.

    ``feed`` reads the cells' databases, as in a conductor; None: there are no cells. ``roots`` reads the
    hosts of placement, for nodes without an agent; None: only nodes with an agent are hosts.
    """

    def __init__(
        self,
        table: NodeTable,
        feed: HostFeed | None,
        roots: RootSource | None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.table = table
        self._feed = feed
        self._roots = roots
        self._sleep = sleep
        self._unreported = UnreportedNodes(table)
        self._known: Roots | None = None
        self._structure = -1
        self.failure: str | None = None

    async def refresh(self) -> None:
        """Bring the table up to date with placement, as far as that is cheap.

        A failure is logged and stands in ``failure``; the table keeps the hosts that were read last.
        """
        if self._roots is None:
            return
        try:
            found = await self._roots.changed()
        except (StorageError, LedgerError, PlacementError, SchedulerError) as error:
            if self.failure is None:
                _log.warning("the hosts of placement cannot be read", error=one_line(error))
            self.failure = one_line(error)
            return
        self.failure = None
        self._known = self._known if found is None else found
        # A node that has lost its agent is a host of placement again.
        if self._known is not None and (found is not None or self._structure != self.table.structure):
            self._unreported.take(self._known)
            self._structure = self.table.structure

    async def refresh_all(self) -> None:
        """Bring the table up to date once, with the cells' databases too."""
        await self.refresh()
        if self._roots is not None:
            self._unreported.settle()
        if self._feed is not None:
            await self._feed.refresh()

    async def run(self) -> None:
        """Keep the table up to date until cancelled."""
        while True:
            await self._sleep(EVERY_SECONDS)
            await self.refresh_all()
