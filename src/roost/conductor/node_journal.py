"""The node journal: the events of the node table in the API database, each with a version.

The scheduler's table is at a version, which each run's record names. The events up to a version, applied in
order to an empty table, give the table at that version.
"""

from collections.abc import Iterable

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.conductor.tables import node_events
from roost.model.node_event import NodeEvent, leaves_nothing
from roost.storage import Database

_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[NodeEvent] = msgspec.json.Decoder(NodeEvent)


class NodeJournal:
    """The journal in a database. Raises `StorageError` if the database cannot be used."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, events: Iterable[NodeEvent], at: float) -> int:
        """Append events that happened at ``at`` (seconds since the epoch). Returns the newest version."""
        rows = [
            {
                "subject": event.subject,
                "leaves_nothing": leaves_nothing(event),
                "at": at,
                "event": _ENCODER.encode(event).decode(),
            }
            for event in events
        ]

        def write(connection: Connection) -> int:
            version = _newest(connection)
            if rows:
                numbered = [{"version": version + n, **row} for n, row in enumerate(rows, 1)]
                connection.execute(sa.insert(node_events), numbered)
            return version + len(rows)

        return await self._database.write(write)

    async def events(self, after: int = 0, until: int | None = None) -> list[tuple[int, NodeEvent]]:
        """The events with a version greater than ``after``, up to and with ``until``, in order."""
        query = sa.select(node_events).where(node_events.c.version > after).order_by(node_events.c.version)
        if until is not None:
            query = query.where(node_events.c.version <= until)

        def read(connection: Connection) -> list[tuple[int, NodeEvent]]:
            return [(row.version, _DECODER.decode(row.event)) for row in connection.execute(query)]

        return await self._database.read(read)

    async def trim(self, keep: int, older_than: float) -> int:
        """Remove events that are not among the newest ``keep``, or were made before ``older_than``, and that
        a later one of these has replaced. Returns their number.

        What is left still gives the table at each version from the first that is not to be removed.
        """

        def write(connection: Connection) -> int:
            newest = _newest(connection)
            young = sa.select(sa.func.min(node_events.c.version)).where(node_events.c.at >= older_than)
            first_young = connection.execute(young).scalar()
            first_kept = max(newest - keep + 1, newest if first_young is None else first_young)
            old = (
                sa.select(node_events.c.version, node_events.c.subject, node_events.c.leaves_nothing)
                .where(node_events.c.version < first_kept)
                .order_by(node_events.c.version.desc())
            )
            rows = connection.execute(old)
            goes = _replaced((row.version, row.subject, row.leaves_nothing) for row in rows)
            this = sa.delete(node_events).where(node_events.c.version == sa.bindparam("gone"))
            if goes:
                connection.execute(this, [{"gone": version} for version in goes])
            return len(goes)

        return await self._database.write(write)


def _replaced(rows: Iterable[tuple[int, str, bool]]) -> list[int]:
    """The versions, of rows from the newest to the oldest, that the others make superfluous."""
    seen: set[str] = set()
    goes = []
    for version, subject, nothing in rows:
        if subject in seen or nothing:
            goes.append(version)
        seen.add(subject)
    return goes


def _newest(connection: Connection) -> int:
    return connection.execute(sa.select(sa.func.max(node_events.c.version))).scalar() or 0
