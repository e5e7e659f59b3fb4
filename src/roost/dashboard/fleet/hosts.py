"""The hosts of the fleet as they are now, in the order of the map.

All arrays of a `HostsNow` are in the order of the map's layout: by zone, rack, cell and name.
"""

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from roost.dashboard.fleet.flavor_fits import FlavorFits
from roost.fleet import Fleet
from roost.fleet.columns import Bools, Int64, Rows
from roost.fleet.host_levels import ClassAmounts, amounts_of_tree, largest_free
from roost.ledger import Ledger
from roost.scheduler.nodes.host_layout import HostGroup, HostLayout, HostLayouts
from roost.scheduler.nodes.host_states import States, host_states
from roost.scheduler.nodes.node_amounts import TreeAmounts, by_node, node_amounts
from roost.scheduler.nodes.table import NodeTable

MOST_CLASSES: Final = 24
"""Resource classes whose amounts are kept for one commit at most."""

_ROUNDS: Final = 3
"""Times that the names of nodes are sorted beside other tasks, while nodes come and go."""

_NAMES_AT_ONCE: Final = 4_000
"""Names that are made ready for searches before other tasks may run."""

PREFERRED: Final = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")
"""The classes that lists of classes begin with."""


class _Kept(NamedTuple):
    """The counts of one commit and layout. ``amounts`` and ``largest``: by resource class."""

    version: int
    layout: str
    amounts: dict[str, TreeAmounts]
    largest: dict[str, Int64]


_NOTHING: Final = _Kept(-1, "", {}, {})


class HostsNow:
    """All hosts at one moment. Use it before the next ``await``: the fleet changes with later commits.

    ``fleet``: None: placement is reached over HTTP, and nothing is known of amounts. ``at``: seconds since
    the epoch. ``states``: numbers of `roost.scheduler.nodes.host_states.STATES`. ``states_known``: False for
    a moment whose states are not kept.
    """

    states_known = True

    def __init__(
        self,
        fleet: Fleet | None,
        table: NodeTable,
        layout: HostLayout,
        by_name: Rows,
        states: States,
        at: float,
        kept: _Kept,
    ) -> None:
        self.fleet = fleet
        self.table = table
        self.layout = layout
        self._by_name = by_name
        self.states = states
        self.at = at
        self._kept = kept

    def __len__(self) -> int:
        return len(self.layout.nodes)

    @property
    def version(self) -> int | None:
        """The commit; None without a ledger."""
        return None if self.fleet is None else self.fleet.version

    @property
    def classes(self) -> list[str]:
        """The resource classes that some provider has, the common ones first."""
        if self.fleet is None:
            return []
        return sorted(self.fleet.inventoried_classes(), key=class_rank)

    def amounts(self, resource_class: str) -> TreeAmounts:
        """Return the amounts of a class on each host. Without a ledger they are 0."""
        found = self._kept.amounts.get(resource_class)
        if found is None:
            nodes = self.layout.nodes
            if self.fleet is None:
                found = TreeAmounts(*(np.zeros(len(nodes), dtype=np.int64) for _ in range(4)))
            else:
                found = node_amounts(self.table, self.fleet, resource_class, nodes)
            if len(self._kept.amounts) < MOST_CLASSES:
                self._kept.amounts[resource_class] = found
        return found

    def largest(self, resource_class: str) -> Int64:
        """Return the most units of a class that one provider of each host has free: int64[n]."""
        found = self._kept.largest.get(resource_class)
        if found is None:
            if self.fleet is None:
                found = np.zeros(len(self), dtype=np.int64)
            else:
                roots, free = largest_free(self.fleet, resource_class)
                [by_index] = by_node(self.table, self.fleet, roots, free)
                found = by_index[self.layout.nodes]
            if len(self._kept.largest) < MOST_CLASSES:
                self._kept.largest[resource_class] = found
        return found

    def amounts_of(self, position: int) -> dict[str, ClassAmounts] | None:
        """Return the amounts of the host at a position, by class; None: placement has no provider of it."""
        node = self.table.nodes[self.layout.nodes.item(position)]
        row = -1 if self.fleet is None else self.fleet.find_row(node)
        return None if self.fleet is None or row < 0 else amounts_of_tree(self.fleet, row)

    def at_roots(self, rows: Rows) -> Bools:
        """Return the hosts whose root provider is at one of these rows of the fleet: bool[n]."""
        found: Bools = np.zeros(self.table.size, dtype=np.bool_)
        if self.fleet is not None and len(rows):
            nodes = self.table.indexes_of_rows(self.fleet, rows)
            found[nodes[nodes >= 0]] = True
        return found[self.layout.nodes]

    def at_nodes(self, nodes: Rows) -> Bools:
        """Return the hosts with these indexes of the node table: bool[n]."""
        found: Bools = np.zeros(self.table.size, dtype=np.bool_)
        found[nodes] = True
        return found[self.layout.nodes]

    def group_at(self, position: int) -> HostGroup:
        """Return the group of the host at a position."""
        starts = [each.first for each in self.layout.groups]
        return self.layout.groups[int(np.searchsorted(starts, position, side="right")) - 1]

    @cached_property
    def positions(self) -> Rows:
        """The position of each node by its index in the node table: intp[size], -1 for a free row."""
        found = np.full(self.table.size, -1, dtype=np.intp)
        found[self.layout.nodes] = np.arange(len(self))
        return found

    @property
    def in_name_order(self) -> Rows:
        """The positions of all hosts by their names: intp[n]."""
        return self.positions[self._by_name]


class FleetHosts:
    """The hosts of the fleet, for pages.

    ``rack_key``: the metadata key of racks. ``down_seconds``: seconds after the last heartbeat of a host
    after which it is down. ``clock``: seconds since the epoch. ``fits``: finds the hosts that flavors fit on;
    None: there is no ledger.
    """

    def __init__(
        self,
        ledger: Ledger | None,
        table: NodeTable,
        *,
        default_zone: str,
        rack_key: str,
        down_seconds: float,
        clock: Callable[[], float],
        fits: FlavorFits | None = None,
    ) -> None:
        self.table = table
        self._ledger = ledger
        self._layouts = HostLayouts(table, default_zone)
        self._rack_key = rack_key
        self._down_seconds = down_seconds
        self._clock = clock
        self._fits = fits
        self._kept = _NOTHING
        self._names: tuple[str, list[str]] = ("", [])

    async def now(self, *, searched: bool = False, flavor: str = "") -> HostsNow:
        """Return the hosts with every commit that was durable before this call. Raises `StorageError`.

        ``searched``: `names` is going to be called. ``flavor``: so is `fitting`, for this flavor.
        """
        if flavor and self._fits is not None:
            await self._fits.prepare(flavor)
        for _ in range(_ROUNDS):
            await self._layouts.prepare()
            if searched:
                await self._prepare_names()
            fleet = None if self._ledger is None else await self._ledger.current()
            if self._layouts.prepared:
                break
        return self._at(fleet)

    def known(self) -> HostsNow:
        """Return the hosts with the commits that this process has followed, without reading the database."""
        return self._at(None if self._ledger is None else self._ledger.known())

    def _at(self, fleet: Fleet | None) -> HostsNow:
        layout = self._layouts.layout(self._rack_key)
        at = self._clock()
        states = host_states(self.table, layout.nodes, at - self._down_seconds, fleet)
        version = -1 if fleet is None else fleet.version
        if (self._kept.version, self._kept.layout) != (version, layout.version):
            self._kept = _Kept(version, layout.version, {}, {})
        by_name = self._layouts.by_name()
        return HostsNow(fleet, self.table, layout, by_name, states, at, self._kept)

    async def flavors(self) -> list[str]:
        """Return the names of the flavors that `fitting` knows."""
        return [] if self._fits is None else await self._fits.names()

    async def misfit(self, flavor: str) -> str | None:
        """Return why a flavor fits nowhere, whatever is in use; None if it may fit somewhere."""
        if not flavor:
            return None
        if self._fits is None:
            return "Placement is reached over HTTP: hosts that a flavor fits on are not known here."
        return await self._fits.prepare(flavor)

    def fitting(self, now: HostsNow, flavor: str) -> Bools:
        """Return the hosts that one more instance of a flavor fits on: bool[n]."""
        if self._fits is None or now.fleet is None:
            return np.zeros(len(now), dtype=np.bool_)
        return self._fits.fits(now.fleet, flavor)[now.layout.nodes]

    def names(self, now: HostsNow) -> list[str]:
        """Return the names of all hosts in lower case, in the order of the map, for searches."""
        if self._names[0] != now.layout.version:
            self._names = now.layout.version, self._lower(now.layout.nodes)
        return self._names[1]

    async def _prepare_names(self) -> None:
        layout = self._layouts.layout(self._rack_key)
        if self._names[0] == layout.version:
            return
        names: list[str] = []
        for first in range(0, len(layout.nodes), _NAMES_AT_ONCE):
            names += self._lower(layout.nodes[first : first + _NAMES_AT_ONCE])
            await asyncio.sleep(0)
        self._names = layout.version, names

    def _lower(self, nodes: Rows) -> list[str]:
        hosts, nodenames = self.table.hosts, self.table.nodenames
        return [
            hosts[index].lower()
            if nodenames[index] in ("", hosts[index])
            else f"{hosts[index]}\0{nodenames[index]}".lower()
            for index in nodes.tolist()
        ]


def class_rank(name: str) -> tuple[int, str]:
    """Return the key that sorts resource classes: the common ones first, then by name."""
    return (PREFERRED.index(name) if name in PREFERRED else len(PREFERRED), name)
