"""The end of outstanding claims, by the rows of their instances in Nova's databases."""

import asyncio
import math
from collections.abc import Callable, Collection, Mapping, Sequence

from roost.nova.arrivals import Arrivals
from roost.nova.cell_feed import CellFeed
from roost.nova.database.cells import CELL0
from roost.nova.database.instances import NovaPlace, read_places
from roost.nova.database.migrations import MigrationRow, read_unfinished
from roost.nova.database.states import BUILDING, FAULTY, OFFLOADED
from roost.nova.database.traces import ApiTraces, read_api_traces
from roost.scheduler.nodes.outstanding import TakenAmounts
from roost.scheduler.nodes.table import NodeTable
from roost.storage import Database

SETTLE_SECONDS = 5.0
"""Seconds between two reads of the instances whose claims are outstanding."""

LOST_SECONDS = 300.0
"""Seconds that a claim counts while nothing in Nova's databases says that its instance is on its way."""


class ClaimSettlement:
    """Ends the claims of a node table that are outstanding.

    The claim of an instance counts

    - until the instance is listed on the node, by a row of the node that counts it: `CellFeed` sees to that;
    - until the node's compute counts a migration of it to the node;
    - while the instance is on its way there: its build request is there, or it is being built and on no host
      yet, however long it waits for its compute, or it has a migration that has not ended.

    Else it ends, if it is seen so twice: the build failed, or went to an alternate, or the instance is gone.
    """

    def __init__(
        self, api: Database, table: NodeTable, arrivals: Arrivals, monotonic: Callable[[], float]
    ) -> None:
        self._api = api
        self._table = table
        self._arrivals = arrivals
        self._monotonic = monotonic
        self._settled = -math.inf
        # By instance: since when nothing says that it is on its way; the claim that this is about.
        self._idle: dict[str, tuple[float, TakenAmounts]] = {}

    async def settle(self, feeds: Mapping[str, CellFeed]) -> None:
        """End claims on the nodes of cells that can be read. ``feeds``: of these cells, by uuid.

        A claim stays while its instance is in none of these cells and mapped to another one, where it may be.
        If a cell fails during the reads, no claim ends. Raises `StorageError`.
        """
        began = self._monotonic()
        if began - self._settled < SETTLE_SECONDS:
            return
        due = {
            instance: taken
            for instance, taken in self._table.outstanding
            if self._table.cells[self._table.cell.item(taken.index)] in feeds
        }
        self._arrivals.keep(due)
        self._idle = {name: idle for name, idle in self._idle.items() if due.get(name) == idle[1]}
        if due:
            databases = [feed.cell.database for feed in feeds.values()]
            read = await asyncio.gather(*(each.read(read_places(tuple(due))) for each in databases))
            moving = await self._migrations(databases, read)
            places = {instance: place for found in read for instance, place in found.items()}
            missing = [instance for instance in due if instance not in places]
            traces = await self._api.read(read_api_traces(missing)) if missing else ApiTraces(frozenset(), {})
            away = {name for name, cell in traces.mapped.items() if cell != CELL0 and cell not in feeds}
            for instance, taken in due.items():
                if instance in away:
                    self._idle.pop(instance, None)
                elif self._table.outstanding.of(instance) == taken:
                    place = places.get(instance)
                    self._settle(instance, taken, place, moving.get(instance, ()), traces.requested, feeds)
        self._settled = began

    async def _migrations(
        self, databases: Sequence[Database], read: Sequence[Mapping[str, NovaPlace]]
    ) -> Mapping[str, list[MigrationRow]]:
        """Return the unfinished migrations of the instances that were found and are not being built."""
        moving: dict[str, list[MigrationRow]] = {}
        for database, found in zip(databases, read, strict=True):
            names = tuple(each for each, place in found.items() if place.state != BUILDING)
            for row in await database.read(read_unfinished(names)) if names else ():
                moving.setdefault(row.instance, []).append(row)
        return moving

    def _settle(
        self,
        instance: str,
        taken: TakenAmounts,
        place: NovaPlace | None,
        moving: Sequence[MigrationRow],
        requested: Collection[str],
        feeds: Mapping[str, CellFeed],
    ) -> None:
        table, index = self._table, taken.index
        host, nodename = table.hosts[index], table.nodenames[index]
        feed = feeds[table.cells[table.cell.item(index)]]
        if place is not None and place.host == host and place.nodename in (nodename, None):
            feed.read_soon(host, table.nodes[index])
            return
        arriving = [each for each in moving if each.host == host and each.nodename in (nodename, None)]
        if any(each.claimed for each in arriving):
            if feed.counts(table.nodes[index], instance):
                table.release(instance)
            else:
                feed.read_soon(host, table.nodes[index])
            return
        if arriving or any(each.host is None for each in moving):
            self._idle.pop(instance, None)
            return
        if place is not None and place.host is None and place.state == BUILDING:
            self._idle.pop(instance, None)
            return
        since, _ = self._idle.setdefault(instance, (self._monotonic(), taken))
        ended = _has_ended(place) if place is not None else instance not in requested
        if self._monotonic() - since >= (SETTLE_SECONDS if ended else LOST_SECONDS):
            table.release(instance)


def _has_ended(place: NovaPlace) -> bool:
    """Return whether nothing more can come of the claim of an instance that is not on the claimed node."""
    return place.host is not None or place.state == FAULTY or (place.state == OFFLOADED and not place.task)
