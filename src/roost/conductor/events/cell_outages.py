"""Cells whose databases are away, as events that are written once, however many conductors see it.

What conductors see of a database that is away is not alike: nothing in it moves. So the mapping of the cell
says since when it is away, and a conductor tells only what changes that.
"""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.state.api_database.event_types import CloudEvent, EventKind
from roost.state.api_database.events import append_events
from roost.state.api_database.tables import cell_mappings


class SeenOutage(msgspec.Struct, frozen=True):
    """The database of a cell is ``away``, for a reason, or answers. ``at``: seconds since the epoch."""

    cell: str
    away: bool
    at: float
    why: str | None = None


class NoteOutages(msgspec.Struct, frozen=True):
    """Tell the cells that are away, and those that answer again, unless it was told."""

    seen: tuple[SeenOutage, ...]

    def __call__(self, connection: Connection) -> None:
        events = []
        for each in self.seen:
            this = cell_mappings.c.name == each.cell
            since = connection.execute(sa.select(cell_mappings.c.away_since).where(this)).scalar()
            if (since is not None) == each.away:
                continue
            told = cell_mappings.c.away_since.is_(None) == each.away
            new = sa.update(cell_mappings).where(this, told)
            if connection.execute(new.values(away_since=each.at if each.away else None)).rowcount:
                detail = each.why if since is None else f"after {max(0.0, each.at - since):,.0f} s"
                kind: EventKind = "cell_down" if each.away else "cell_up"
                events.append(CloudEvent(at=each.at, kind=kind, cell=each.cell, detail=detail))
        append_events(connection, events)
