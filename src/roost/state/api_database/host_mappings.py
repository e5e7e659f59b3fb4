"""The cell of each added host: no two cells have hosts of one name."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import Requester
from roost.model.names import look_of
from roost.state.api_database.cell_mappings import hold_cell
from roost.state.api_database.event_types import CloudEvent
from roost.state.api_database.events import append_events
from roost.state.api_database.node_names import release_names
from roost.state.api_database.tables import host_mappings
from roost.storage import in_batches, insert_missing, transaction
from roost.web.errors import Conflict, NotFound, Unavailable


class NoSuchHost(NotFound):
    """No cell has the host."""

    def __init__(self, host: str) -> None:
        super().__init__(f"no host {host!r}")


class NoSuchNode(NotFound):
    """The host has no such node."""


class NoSuchCell(NotFound):
    """There is no such cell."""

    def __init__(self, cell: str) -> None:
        super().__init__(f"no cell {cell!r}")


class HostElsewhere(Conflict):
    """Another cell has a host of this name, or several have one."""


class HostInUse(Conflict):
    """The host has instances, claims or orders."""


class CellInUse(Conflict):
    """The cell has hosts or instances."""


class HostIsUp(Conflict):
    """The host's agent shows signs of life."""


class CellUnavailable(Unavailable):
    """The cell's database cannot be asked."""


@transaction
def add_host_mappings(connection: Connection, hosts: tuple[str, ...], cell: str) -> dict[str, str]:
    """Map hosts to a cell. Returns the cells of hosts in other cells; if there are any, nothing is written.

    Raises `NoSuchCell`: the cell has been removed meanwhile.
    """
    if not hold_cell(connection, cell):
        raise NoSuchCell(cell)
    there = cells_of_hosts(hosts)(connection)
    elsewhere = {host: other for host, other in there.items() if other != cell}
    new = [{"host": host, "cell": cell, "look": look_of(host)} for host in hosts if host not in there]
    if new and not elsewhere:
        insert_missing(connection, sa.insert(host_mappings), new)
    return elsewhere


@transaction
def cells_of_hosts(connection: Connection, hosts: tuple[str, ...]) -> dict[str, str]:
    """Return the cells of hosts that are mapped: host -> cell."""
    found: dict[str, str] = {}
    for some in in_batches(hosts):
        query = sa.select(host_mappings).where(host_mappings.c.host.in_(some))
        found.update((row.host, row.cell) for row in connection.execute(query))
    return found


@transaction
def mapped_hosts_after(
    connection: Connection, most: int, after: str = "", cell: str | None = None
) -> list[tuple[str, str]]:
    """Return the first ``most`` mapped hosts after one, in order, with their cells; or those of ``cell``."""
    query = sa.select(host_mappings).where(host_mappings.c.host > after)
    if cell is not None:
        query = query.where(host_mappings.c.cell == cell)
    query = query.order_by(host_mappings.c.host).limit(most)
    return [(row.host, row.cell) for row in connection.execute(query)]


@transaction
def map_hosts(
    connection: Connection, hosts: Sequence[str], cell: str, at: float, by: Requester | None = None
) -> dict[str, str]:
    """Map hosts as `add_host_mappings`, with the event that they were added at ``at``.

    ``at``: seconds since the epoch.
    """
    elsewhere = add_host_mappings(tuple(hosts), cell)(connection)
    if not elsewhere:
        added = [CloudEvent(at=at, kind="host_added", cell=cell, host=host, by=by) for host in hosts]
        append_events(connection, added)
    return elsewhere


@transaction
def remap_host(
    connection: Connection, host: str, source: str, target: str, at: float, by: Requester | None = None
) -> dict[str, str]:
    """Map a host that has left a cell to another one, with the event that it was moved at ``at``.

    ``at``: seconds since the epoch. Returns as `add_host_mappings`.
    """
    _remove(connection, host, source)
    elsewhere = add_host_mappings((host,), target)(connection)
    if not elsewhere:
        detail = f"from cell {source}"
        moved = CloudEvent(at=at, kind="host_moved", cell=target, host=host, detail=detail, by=by)
        append_events(connection, [moved])
    return elsewhere


@transaction
def unmap_host(
    connection: Connection, host: str, cell: str, at: float, by: Requester | None = None, *, was_there: bool
) -> bool:
    """Remove the mapping of a host, with the event of that at ``at``. Returns whether it was mapped.

    ``at``: seconds since the epoch. ``was_there``: its cell had it until now, mapped or not.
    """
    mapped = _remove(connection, host, cell)
    if mapped or was_there:
        removed = CloudEvent(at=at, kind="host_removed", cell=cell, host=host, by=by)
        append_events(connection, [removed])
    return mapped


def _remove(connection: Connection, host: str, cell: str) -> bool:
    """Remove the mapping of a host to a cell, and the names of its nodes. Returns whether it was mapped."""
    release_names(host, cell)(connection)
    mine = host_mappings.c.host == host, host_mappings.c.cell == cell
    return bool(connection.execute(sa.delete(host_mappings).where(*mine)).rowcount)
