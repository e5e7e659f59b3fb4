"""A cell, host or node as it is now: its state, what is there, and what it would still take."""

from collections.abc import Mapping

import msgspec
import numpy as np

from roost.conductor.hosts.watch import UNKNOWN
from roost.dashboard.actions.word import WordSubject
from roost.dashboard.service import CloudReads, DashboardService
from roost.fleet.columns import Rows
from roost.model.instance import ERROR
from roost.state.api_database.host_mappings import NoSuchNode
from roost.storage import StorageError

MAIN_CLASSES = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "VGPU")
"""Classes of which the free amounts are named."""


class FreeAmount(msgspec.Struct, frozen=True):
    """The amounts of a class that are free and that may be allocated at all, in units of the class."""

    resource_class: str
    free: int
    capacity: int


class PlaceNow(msgspec.Struct, frozen=True, kw_only=True):
    """A cell, host or node as it is now. Facts that its cell does not tell now are None.

    ``host``: None: it is the whole cell. ``node``: None: the whole host or cell; ``nodename``: its name.
    ``root``: the root provider of the node, or of the first node of the host.
    ``enabled``: an operator lets it have new instances; ``reason``: why not. ``hosts``, ``nodes``: their
    number; ``hosts_up``: of those that are up. ``instances``: their number, without those in error.
    ``within``: the cell or host around it that is disabled, so that nothing comes here anyhow.
    """

    cell: str
    host: str | None = None
    node: str | None = None
    nodename: str | None = None
    root: str | None = None
    state: str = UNKNOWN
    enabled: bool | None = None
    reason: str | None = None
    hosts: int | None = None
    hosts_up: int | None = None
    nodes: int | None = None
    instances: int | None = None
    within: str | None = None
    free: tuple[FreeAmount, ...] = ()

    @property
    def kind(self) -> str:
        """``cell``, ``host`` or ``node``."""
        return "node" if self.node is not None else "cell" if self.host is None else "host"

    @property
    def name(self) -> str:
        """The name that people call it."""
        return self.nodename or self.node or self.host or self.cell


async def place_now(service: DashboardService, cloud: CloudReads, subject: WordSubject) -> PlaceNow:
    """Return a place as it is now. Raises `NoSuchCell`, `NoSuchHost`, `NoSuchNode`, `HostElsewhere`."""
    if subject.host is None:
        place = await _cell(cloud, subject.cell or "")
    elif subject.node is None:
        place = await _host(cloud, subject.host, subject.cell)
    else:
        place = await _node(cloud, subject.host, subject.node, subject.cell)
    indexes = _indexes(service, place)
    root = place.node
    if place.host is not None and root is None and indexes:
        root = service.table.nodes[min(indexes)]
    return msgspec.structs.replace(place, root=root, free=await _free(service, indexes))


async def _cell(cloud: CloudReads, name: str) -> PlaceNow:
    seen = await cloud.registry.find(name)
    counts = None if seen.counts is None else _present(seen.counts.instances)
    return PlaceNow(
        cell=name,
        state=seen.state,
        enabled=seen.enabled,
        reason=seen.reason,
        hosts=seen.hosts,
        hosts_up=seen.hosts_up,
        instances=counts,
    )


async def _host(cloud: CloudReads, host: str, cell: str | None) -> PlaceNow:
    located = await cloud.hosts.find(host, cell)
    within = await _disabled_cell(cloud, located.cell)
    described, said = located.described, located.said
    if described is None:
        enabled, reason = (None, None) if said is None else (said.enabled, said.reason)
        return PlaceNow(cell=located.cell, host=host, enabled=enabled, reason=reason, within=within)
    return PlaceNow(
        cell=located.cell,
        host=host,
        state=cloud.watch.state_of(located.cell, described.session),
        enabled=described.enabled,
        reason=described.reason,
        hosts=1,
        nodes=described.nodes,
        instances=_present(described.instances),
        within=within,
    )


async def _node(cloud: CloudReads, host: str, node: str, cell: str | None) -> PlaceNow:
    around = await _host(cloud, host, cell)
    within = around.within
    if around.enabled is False:
        within = f"host {host}"
    try:
        _, nodes = await cloud.hosts.nodes(host, around.cell)
    except StorageError:
        return PlaceNow(cell=around.cell, host=host, node=node, within=within)
    found = next((each for each in nodes if each.node == node), None)
    if found is None:
        raise NoSuchNode(f"host {host!r} has no node {node!r}")
    return PlaceNow(
        cell=around.cell,
        host=host,
        node=node,
        nodename=found.nodename,
        state=around.state,
        enabled=found.word is None,
        reason=None if found.word is None else found.word.reason,
        hosts=1,
        nodes=1,
        instances=found.instances,
        within=within,
    )


async def _disabled_cell(cloud: CloudReads, name: str) -> str | None:
    seen = await cloud.registry.find(name)
    return f"cell {name}" if seen.enabled is False else None


def _present(instances: Mapping[str, int]) -> int:
    return sum(number for state, number in instances.items() if state != ERROR)


def _indexes(service: DashboardService, place: PlaceNow) -> list[int]:
    """The nodes of a place in the node table."""
    table = service.table
    if place.node is not None:
        index = table.index_of_node(place.node)
        return [] if index is None else [index]
    if place.host is not None:
        found = table.indexes_of_host(place.host)
        return [index for index in found if table.cells[table.cell[index]] == place.cell]
    nodes = sorted(table.nodes_of_cell(place.cell))
    return [index for node in nodes if (index := table.index_of_node(node)) is not None]


async def _free(service: DashboardService, indexes: list[int]) -> tuple[FreeAmount, ...]:
    if service.ledger is None or not indexes:
        return ()
    fleet = await service.ledger.current()
    found = [fleet.find_row(service.table.nodes[index]) for index in indexes]
    rows: Rows = np.array([row for row in found if row >= 0], dtype=np.intp)
    amounts = []
    for name in MAIN_CLASSES:
        capacity, used = fleet.tree_totals(name, rows)
        if capacity.any():
            free = int(np.maximum(capacity - used, 0).sum())
            amounts.append(FreeAmount(name, free, int(capacity.sum())))
    return tuple(amounts)
