"""The cell of each added host: no two cells have hosts of one name."""

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.history import Requester
from roost.model.names import look_of
from roost.state.api_database.cell_mappings import hold_cell
from roost.state.api_database.event_types import CloudEvent
from roost.state.api_database.events import WithEvents
from roost.state.api_database.host_errors import NoSuchCell
from roost.state.api_database.node_names import ReleaseNames
from roost.state.api_database.tables import host_mappings
from roost.storage import in_batches, insert_missing


class MapHosts(msgspec.Struct, frozen=True):
    """Map hosts to a cell. Answers the cells of hosts in other cells; if there are any, nothing is written.

    Raises `NoSuchCell`: the cell has been removed meanwhile.
    """

    hosts: tuple[str, ...]
    cell: str

    def __call__(self, connection: Connection) -> dict[str, str]:
        if not hold_cell(connection, self.cell):
            raise NoSuchCell(self.cell)
        there = CellsOfHosts(self.hosts)(connection)
        elsewhere = {host: cell for host, cell in there.items() if cell != self.cell}
        new = [
            {"host": host, "cell": self.cell, "look": look_of(host)}
            for host in self.hosts
            if host not in there
        ]
        if new and not elsewhere:
            insert_missing(connection, sa.insert(host_mappings), new)
        return elsewhere


class CellsOfHosts(msgspec.Struct, frozen=True):
    """Answers the cells of hosts that are mapped: host -> cell."""

    hosts: tuple[str, ...]

    def __call__(self, connection: Connection) -> dict[str, str]:
        found: dict[str, str] = {}
        for some in in_batches(self.hosts):
            query = sa.select(host_mappings).where(host_mappings.c.host.in_(some))
            found.update((row.host, row.cell) for row in connection.execute(query))
        return found


class MappedHostsAfter(msgspec.Struct, frozen=True):
    """Answers the first ``most`` mapped hosts after one, in order, with their cells; or those of ``cell``."""

    most: int
    after: str = ""
    cell: str | None = None

    def __call__(self, connection: Connection) -> list[tuple[str, str]]:
        query = sa.select(host_mappings).where(host_mappings.c.host > self.after)
        if self.cell is not None:
            query = query.where(host_mappings.c.cell == self.cell)
        query = query.order_by(host_mappings.c.host).limit(self.most)
        return [(row.host, row.cell) for row in connection.execute(query)]


class UnmapHost(msgspec.Struct, frozen=True):
    """Remove the mapping of a host to a cell, and the names of its nodes. Answers whether it was mapped."""

    host: str
    cell: str

    def __call__(self, connection: Connection) -> bool:
        ReleaseNames(self.host, self.cell)(connection)
        mine = host_mappings.c.host == self.host, host_mappings.c.cell == self.cell
        return bool(connection.execute(sa.delete(host_mappings).where(*mine)).rowcount)


class RemapHost(msgspec.Struct, frozen=True):
    """Map a host that has left a cell to another one. Answers as `MapHosts`."""

    host: str
    source: str
    target: str

    def __call__(self, connection: Connection) -> dict[str, str]:
        UnmapHost(self.host, self.source)(connection)
        return MapHosts((self.host,), self.target)(connection)


def map_hosts(
    hosts: Sequence[str], cell: str, at: float, by: Requester | None = None
) -> WithEvents[dict[str, str]]:
    """Return `MapHosts` with the event that hosts were added at ``at`` (seconds since the epoch)."""

    def told(elsewhere: dict[str, str]) -> list[CloudEvent]:
        added = () if elsewhere else hosts
        return [CloudEvent(at=at, kind="host_added", cell=cell, host=host, by=by) for host in added]

    return WithEvents(MapHosts(tuple(hosts), cell), told)


def remap_host(
    host: str, source: str, target: str, at: float, by: Requester | None = None
) -> WithEvents[dict[str, str]]:
    """Return `RemapHost` with the event that the host was moved at ``at`` (seconds since the epoch)."""
    detail = f"from cell {source}"
    moved = CloudEvent(at=at, kind="host_moved", cell=target, host=host, detail=detail, by=by)
    return WithEvents(RemapHost(host, source, target), lambda elsewhere: [] if elsewhere else [moved])


def unmap_host(
    host: str, cell: str, at: float, by: Requester | None = None, *, was_there: bool
) -> WithEvents[bool]:
    """Return `UnmapHost` with the event that the host was removed at ``at`` (seconds since the epoch).

    ``was_there``: its cell had it until now, mapped or not.
    """
    removed = CloudEvent(at=at, kind="host_removed", cell=cell, host=host, by=by)
    return WithEvents(UnmapHost(host, cell), lambda mapped: [removed] if mapped or was_there else [])
