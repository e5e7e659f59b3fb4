"""Events of hosts, processes and cells that come and go, each written once.

Several conductors observe the same leases, each at its own times, and each event is to be written once. So an
event has a mark, made of facts that all observers see alike. A lease that stands still has one counter for
all, and keeps it when it is vacated; each holder has a nonce, and a start (``since``) that its lease keeps
too.

Conductors have no common facts of a cell's database that is away, to tell two outages apart. So the mapping
of the cell has the begin of the outage, and a conductor writes an event only if it changes that.
"""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.state.api_database.event_types import CloudEvent, EventKind
from roost.state.api_database.events import MarkedEvent, append_events
from roost.state.api_database.tables import cell_mappings
from roost.state.cell_database.host_work import SESSION
from roost.state.leases import Lease
from roost.storage import transaction


class LeaseLook(msgspec.Struct, frozen=True):
    """One look at the leases of a database, by name, and the names of the leases whose holders were up."""

    leases: Mapping[str, Lease]
    up: AbstractSet[str]


def transitions(
    before: LeaseLook, now: LeaseLook, *, cell: str | None, tasks: Collection[str], at: float
) -> list[MarkedEvent]:
    """Return the events between two looks at one database.

    ``cell``: the cell of the database; None: the API database. ``tasks``: kinds of leases of tasks that one
    process at a time has, not of processes. ``at``: seconds since the epoch.
    """
    found = []
    for name in _changed(before, now):
        lease = now.leases.get(name) or before.leases[name]
        if lease.kind in tasks:
            change, kind = _of_task(name, before, now), "task_taken"
        else:
            change = _of_process(name, before, now)
            kind = f"{'host' if lease.kind == SESSION else 'service'}_{'up' if name in now.up else 'down'}"
        if change is not None:
            event = CloudEvent(
                at=at,
                kind=msgspec.convert(kind, EventKind),
                cell=cell,
                host=lease.host,
                name=None if lease.kind == SESSION else name,
            )
            found.append(MarkedEvent("\n".join((cell or "", name, kind, change)), event))
    return found


def _changed(before: LeaseLook, now: LeaseLook) -> list[str]:
    """Return the leases that came, went, or have another holder or state, in order: few of thousands."""
    leases, earlier = now.leases, before.leases
    names = {
        name
        for name, lease in leases.items()
        if (old := earlier.get(name)) is None or old.holder != lease.holder
    }
    return sorted(names | (now.up ^ before.up) | (earlier.keys() - leases.keys()))


def _of_process(name: str, before: LeaseLook, now: LeaseLook) -> str | None:
    """Return the mark of a change of a process, equal for all observers; None if it has not changed."""
    old, new = before.leases.get(name), now.leases.get(name)
    was_up = name in before.up
    if new is None:
        # An orderly end removes the lease, at a counter that nobody has seen.
        return f"ended {old.since!r}" if old is not None and was_up else None
    if name in now.up:
        if old is None or old.holder != new.holder:
            return f"began {new.since!r} {new.holder}"
        # It stood still at the counter that was seen last, and goes on.
        return None if was_up else f"{new.since!r} {old.counter}"
    return f"{new.since!r} {new.counter}" if was_up else None


def _of_task(name: str, before: LeaseLook, now: LeaseLook) -> str | None:
    """Return the mark of the start of a task in another process; None if there is none."""
    old, new = before.leases.get(name), now.leases.get(name)
    if new is None or new.vacant or (old is not None and old.holder == new.holder):
        return None
    return f"{new.since!r} {new.holder}"


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
