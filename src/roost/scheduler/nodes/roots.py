"""The hosts of placement: all root providers that share nothing with other trees."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from roost.fleet import Fleet
from roost.ledger import Ledger
from roost.model.node import NodeReport
from roost.placement.client import HttpPlacement
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.selection.claim_result import translated

Roots = Mapping[str, str]
"""The name of each host by the uuid of its root provider."""


class RootSource(Protocol):
    """Reads the hosts of placement."""

    async def changed(self) -> Roots | None:
        """Return all hosts, None if they have not changed since the last call. Raises placement's errors."""


class LedgerRoots:
    """The hosts of a ledger in this process, at its head.

    They are read when providers have come or gone. A trait makes a provider a sharing one, and traits may
    change alone: so hosts are also read each ``every_seconds``, if anything was committed. ``monotonic``:
    seconds.
    """

    def __init__(
        self, ledger: Ledger, every_seconds: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._ledger = ledger
        self._every_seconds = every_seconds
        self._monotonic = monotonic
        self._fleet: Fleet | None = None
        self._providers = self._version = -1
        self._due = 0.0
        self._last: Roots | None = None

    async def changed(self) -> Roots | None:
        fleet = await self._ledger.current()
        now = self._monotonic()
        same = fleet is self._fleet and fleet.provider_set_version == self._providers
        if same and (fleet.version == self._version or now < self._due):
            return None
        self._fleet, self._providers, self._version = fleet, fleet.provider_set_version, fleet.version
        self._due = now + self._every_seconds
        sharing = fleet.sharing()
        rows = fleet.rows()
        found = {
            fleet.uuid(row): fleet.name(row)
            for row in rows[fleet.parent[rows] < 0].tolist()
            if row not in sharing
        }
        if found == self._last:
            return None
        self._last = found
        return found


class HttpRoots:
    """The hosts of a placement service over HTTP, read every ``every_seconds``. ``monotonic``: seconds."""

    def __init__(
        self,
        placement: HttpPlacement,
        every_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._placement = placement
        self._every_seconds = every_seconds
        self._monotonic = monotonic
        self._due = -float("inf")
        self._last: Roots | None = None

    async def changed(self) -> Roots | None:
        if self._monotonic() < self._due:
            return None
        found = await translated(self._placement.hosts())
        self._due = self._monotonic() + self._every_seconds
        if found == self._last:
            return None
        self._last = found
        return found


NO_CELL = ""
"""The cell of nodes without an agent."""


class UnreportedNodes:
    """Puts the hosts of placement into a node table, and takes those away that placement has no longer.

    A platform without agents has its hosts in placement alone. Such a node has the name of its root provider,
    is enabled and alive, and is in no cell. Filters and weighers see its data in placement only. If an agent
    reports the node later, the node is that agent's.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table

    def take(self, hosts: Roots) -> None:
        """Take in all hosts that placement has."""
        table = self._table
        own = table.nodes_of_cell(NO_CELL)
        table.remove(sorted(own - hosts.keys()))
        table.update(
            NodeReport(node=uuid, host=name, cell=NO_CELL, last_seen=math.inf)
            for uuid, name in hosts.items()
            if uuid in own or (table.index_of_node(uuid) is None and table.index(name, name) is None)
        )

    def settle(self) -> None:
        """End the outstanding claims on these nodes: no report will ever list their instances.

        Placement has the amounts that they took from the inventories.
        """
        table = self._table
        cell = table.cells.index(NO_CELL) if NO_CELL in table.cells else -1
        for instance, taken in table.outstanding:
            if table.cell.item(taken.index) == cell:
                table.release(instance)
