"""Events of cells whose databases are away, written once, even if many conductors see it.

Conductors have no common facts of a database that is away, to tell two outages apart. So the mapping of the
cell has the begin of the outage, and a conductor writes an event only if it changes that.
"""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.state.api_database.event_types import CloudEvent, EventKind
from roost.state.api_database.events import append_events
from roost.state.api_database.tables import cell_mappings
from roost.storage import transaction


class SeenOutage(msgspec.Struct, frozen=True):
    """The database of a cell is ``away``, for a reason, or answers. ``at``: seconds since the epoch."""

    cell: str
    away: bool
    at: float
    why: str | None = None


@transaction
def note_outages_now(connection: Connection, seen: tuple[SeenOutage, ...]) -> None:
    """Write events of cells that are away, and of those that answer again, unless they are written."""
    events = []
    for each in seen:
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
