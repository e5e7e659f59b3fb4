"""The log of events in the API database."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import NamedTuple, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.secrets import redacted_text
from roost.model.text import clean_text
from roost.state.api_database.event_types import INSTANCE, CloudEvent
from roost.state.api_database.tables import events, events_position
from roost.state.newest_rows import NewestRows, newest_rows
from roost.storage import in_batches, one_of, short_read, transaction

T = TypeVar("T")

LOOKED_AT_ONCE = 10_000
"""Positions of the log that one read examines at most: a filter may let none of them pass."""

MOST_SKEWED = 1000
"""Events of a time or later among which the first by position is looked for: the clocks of the processes that
wrote them differ, so the first by time need not be the first by position."""

PRUNED_AT_ONCE = 1000
"""Events that one transaction removes at most."""

MOST_OF_DETAIL = 1000
"""Characters of the detail of an event; the rest is cut off."""

_JSON = msgspec.json.Encoder()
_EVENT = msgspec.json.Decoder(CloudEvent)


class MarkedEvent(NamedTuple):
    """An event that several observers see. Events with the same mark are one; the first is kept."""

    mark: str
    event: CloudEvent


def append_events(connection: Connection, new: Sequence[CloudEvent]) -> None:
    """Append events, as the last statements of the transaction that makes the change.

    The position of the log, one row, is raised first, and so is locked until the transaction ends. So a
    transaction with a higher position begins to append after one with a lower position has ended, and a
    reader that has seen a position has seen all before it. Why not the ids that a database draws itself: a
    lower one may be committed after a higher one was read, and a reader would miss it.
    """
    if new:
        _insert(connection, [(None, each) for each in new])


@transaction
def observe_events(connection: Connection, observed: tuple[MarkedEvent, ...]) -> int:
    """Append the events whose marks are new. Returns their number.

    The marks are looked up after the position is locked, so that two observers do not both write.
    """
    by_mark = {sha256(each.mark.encode()).hexdigest(): each.event for each in reversed(observed)}
    _raise_position(connection, 0)
    there = {
        mark for some in in_batches(by_mark) for mark in connection.execute(_MARKS, {"marks": some}).scalars()
    }
    new = [(mark, event) for mark, event in reversed(by_mark.items()) if mark not in there]
    if new:
        _insert(connection, new)
    return len(new)


@transaction
def with_events(
    connection: Connection, work: Callable[[Connection], T], events: Callable[[T], Sequence[CloudEvent]]
) -> T:
    """A transaction with the events of its change, which are made from its result."""
    result = work(connection)
    append_events(connection, events(result))
    return result


class EventFilter(NamedTuple):
    """The conditions on the events that a reader asks for; None: any."""

    since: float | None = None
    kind: str | None = None
    cell: str | None = None
    host: str | None = None
    instance: str | None = None


ANY_EVENT = EventFilter()


class ReadEvents(NamedTuple):
    """Events after a position, in order.

    ``position``: up to which the log was examined. ``last``: the last position of the log. ``until``: the
    time of the event at ``position`` (seconds since the epoch), None if there is none. ``ids``: the positions
    of the events.
    """

    events: list[CloudEvent]
    position: int
    last: int
    until: float | None = None
    ids: Sequence[int] = ()

    @property
    def numbered(self) -> list[tuple[int, CloudEvent]]:
        """The events with their positions."""
        return list(zip(self.ids, self.events, strict=True))


@transaction
def events_after(
    connection: Connection, after: int | None, most: int, wanted: EventFilter = ANY_EVENT
) -> ReadEvents | None:
    """Read up to ``most`` of the wanted events after a position; without one, from the first event on.

    Returns None if the position is beyond the log: the database was restored to an earlier state.
    """
    last: int = connection.execute(_POSITION).scalar_one()
    if after is not None and after > last:
        return None
    if wanted.kind is not None and wanted.kind.startswith(INSTANCE):
        # The cells have them.
        return ReadEvents([], last, last)
    first = sa.select(sa.func.min(events.c.id))
    if after is None and wanted.since is not None:
        early = sa.select(events.c.id).where(events.c.at >= wanted.since)
        some = early.order_by(events.c.at).limit(MOST_SKEWED).subquery()
        first = sa.select(sa.func.min(some.c.id))
    oldest: int | None = connection.execute(first).scalar()
    # Events that are appended after the first statement are left to the next read.
    start = last if oldest is None else min(last, max(after or 0, oldest - 1))
    end = min(last, start + LOOKED_AT_ONCE)
    query = sa.select(events.c.id, events.c.body).where(events.c.id > start, events.c.id <= end)
    for name in ("kind", "cell", "host", "instance"):
        if (value := getattr(wanted, name)) is not None:
            query = query.where(events.c[name] == value)
    if wanted.since is not None:
        query = query.where(events.c.at >= wanted.since)
    rows = connection.execute(query.order_by(events.c.id).limit(most)).all()
    position = rows[-1].id if len(rows) == most else end
    until = None if position == last else time_of(connection, position)
    found = [_EVENT.decode(row.body) for row in rows]
    return ReadEvents(found, position, last, until, [row.id for row in rows])


@transaction
def newest_events(
    connection: Connection,
    *,
    until: float,
    since: float | None,
    most: int,
    kinds: tuple[str, ...] | None = None,
    cell: str | None = None,
    host: str | None = None,
    instance: str | None = None,
) -> NewestRows:
    """Return up to ``most`` of the wanted events, the newest first, each row with ``at`` and ``body``."""
    columns = events.c
    conditions: list[sa.ColumnElement[bool]] = [
        column == value
        for column, value in ((columns.cell, cell), (columns.host, host), (columns.instance, instance))
        if value is not None
    ]
    if kinds is not None:
        conditions.append(columns.kind.in_(kinds))
    return newest_rows(
        connection, events, [columns.body], until=until, since=since, most=most, wanted=conditions
    )


@short_read
def log_end(connection: Connection) -> int:
    """Return the last position of the log."""
    position: int = connection.execute(_POSITION).scalar_one()
    return position


def event_of(body: str) -> CloudEvent:
    """Return the event that a row has."""
    return _EVENT.decode(body)


def time_of(connection: Connection, position: int) -> float | None:
    """Return the time of the event at a position, or of the last one before it: seconds since the epoch."""
    before = sa.select(events.c.at).where(events.c.id <= position)
    found: float | None = connection.execute(before.order_by(events.c.id.desc()).limit(1)).scalar()
    return found


@transaction
def prune_events(connection: Connection, older_than: float) -> int:
    """Remove events from before ``older_than`` (seconds since the epoch).

    Returns their number; if it is `PRUNED_AT_ONCE` there may be more.
    """
    old = connection.execute(_OLD, {"before": older_than}).scalars().all()
    if old:
        connection.execute(sa.delete(events).where(events.c.id.in_(old)))
    return len(old)


def _insert(connection: Connection, new: Sequence[tuple[str | None, CloudEvent]]) -> None:
    last = _raise_position(connection, len(new))
    rows = []
    for number, (mark, event) in enumerate(new, last - len(new) + 1):
        detail = None if event.detail is None else clean_text(redacted_text(event.detail), MOST_OF_DETAIL)
        rows.append(
            {
                "id": number,
                "at": event.at,
                "kind": event.kind,
                "cell": event.cell,
                "host": event.host,
                "instance": event.instance,
                "mark": mark,
                "body": _JSON.encode(msgspec.structs.replace(event, detail=detail)).decode(),
            }
        )
    connection.execute(sa.insert(events), rows)


def _raise_position(connection: Connection, by: int) -> int:
    """Raise the last position and return it; its row is locked until the transaction ends."""
    connection.execute(sa.update(events_position).values(position=events_position.c.position + by))
    position: int = connection.execute(_POSITION).scalar_one()
    return position


_POSITION = sa.select(events_position.c.position)
_MARKS = sa.select(events.c.mark).where(one_of(events.c.mark, "marks"))
_OLD = (
    sa.select(events.c.id)
    .where(events.c.at < sa.bindparam("before"))
    .order_by(events.c.at)
    .limit(PRUNED_AT_ONCE)
)
