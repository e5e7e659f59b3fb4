"""The drains of operators' words: their state, and the events of drains that begin and end."""

import sys
from collections.abc import Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.operator_word import Subject
from roost.state.api_database.event_types import CloudEvent, EventKind
from roost.state.api_database.events import append_events
from roost.state.api_database.tables import build_requests, operator_words
from roost.storage import short_read, transaction

LATEST_SECONDS = 3600.0
"""Seconds before a word: a drain waits for no older request, as one that cannot be read stays for ever."""


BEGUN = "begun"


ENDED = "ended"


class Drain(msgspec.Struct, frozen=True):
    """A drain that has not ended, of the word with a ``version``.

    ``at``: when the word was said, in seconds since the epoch. ``begun``: the event of the begin is written.
    ``awaited``: requests that were accepted before the word are on their way to their cells.
    """

    subject: Subject
    version: int
    at: float
    begun: bool
    awaited: bool = False


@transaction
def read_open_drains(connection: Connection) -> list[Drain]:
    """Return the drains that have not ended."""
    rows = connection.execute(_OPEN).all()
    earliest = min((row.at for row in rows), default=0.0) - LATEST_SECONDS
    oldest = (
        connection.execute(_AWAITED, {"early": earliest, "late": sys.float_info.max}).scalar()
        if rows
        else None
    )
    found = []
    for row in rows:
        begun = row.drain == BEGUN and row.drain_version == row.version
        awaited = oldest is not None and oldest <= row.at
        early = row.at - LATEST_SECONDS
        if awaited and oldest <= early:
            awaited = connection.execute(_AWAITED, {"early": early, "late": row.at}).first() is not None
        subject = Subject(row.cell, row.host, row.node)
        found.append(Drain(subject, row.version, row.at, begun, awaited))
    return found


class MovingDrain(msgspec.Struct, frozen=True):
    """A drain whose instances are moved away, of the word with a ``version``.

    ``live``: they are moved while they run, if they can.
    """

    subject: Subject
    version: int
    live: bool = False


@short_read
def read_moving_drains(connection: Connection) -> list[MovingDrain]:
    """Return the drains that have not ended and whose instances are moved away, in order of their words."""
    rows = connection.execute(_MOVING)
    return [MovingDrain(Subject(row.cell, row.host, row.node), row.version, is_live(row)) for row in rows]


class DrainWord(msgspec.Struct, frozen=True):
    """The word on a subject, as far as it is about its drain.

    ``moves``: its instances are moved away. ``live``: while they run, if they can. ``since``: when it was
    disabled, in seconds since the epoch.
    """

    enabled: bool = True
    moves: bool = False
    since: float = 0.0
    live: bool = False


@short_read
def find_drain_word(connection: Connection, subject: Subject) -> DrainWord:
    """Return the word on a subject; that of an enabled one if nothing was said."""
    row = connection.execute(sa.select(operator_words).where(_of(subject))).one_or_none()
    if row is None or row.enabled:
        return DrainWord()
    return DrainWord(False, is_moving(row), row.at if row.since is None else row.since, is_live(row))


def is_moving(row: sa.Row[tuple[object, ...]]) -> bool:
    """Return whether the word of a row says that the instances of its subject are moved away."""
    return not row.enabled and row.moves_version == row.version


def is_live(row: sa.Row[tuple[object, ...]]) -> bool:
    """Return whether the word of a row says that they are moved while they run, if they can."""
    return is_moving(row) and row.live_version == row.version


@transaction
def note_drains(connection: Connection, seen: tuple[tuple[Drain, int], ...], at: float) -> None:
    """Note that drains have begun or ended, and write the events, once, unless there is a later word.

    ``seen``: each drain with the number of instances that are left. ``at``: seconds since the epoch.
    """
    events = []
    for drain, left in seen:
        state = BEGUN if left else ENDED
        still = _of(drain.subject), operator_words.c.version == drain.version, ~operator_words.c.enabled
        other = operator_words.c.drain_version.is_distinct_from(drain.version)
        new = other | operator_words.c.drain.is_distinct_from(state)
        noted = sa.update(operator_words).where(*still, new)
        values = {"drain": state, "drain_version": drain.version}
        if connection.execute(noted.values(values)).rowcount:
            there = "1 instance is there" if left == 1 else f"{left:,} instances are there"
            detail = there if left else "nothing is there any more"
            events.append(_event(drain.subject, state, at, detail))
    append_events(connection, events)


def end_early(
    connection: Connection, these: Sequence[sa.ColumnElement[bool]], at: float, why: str
) -> list[CloudEvent]:
    """Return the events of drains that have begun and end before all is empty.

    ``these``: the condition on the rows of their words.
    """
    columns = operator_words.c
    begun = ~columns.enabled, columns.drain == BEGUN, columns.drain_version == columns.version
    rows = connection.execute(sa.select(columns.cell, columns.host, columns.node).where(*these, *begun))
    return [_event(Subject(*row), ENDED, at, why) for row in rows]


def _event(subject: Subject, state: str, at: float, detail: str) -> CloudEvent:
    return CloudEvent(
        at=at,
        kind=msgspec.convert(f"drain_{state}", EventKind),
        cell=subject.cell,
        host=subject.host or None,
        node=subject.node or None,
        detail=detail,
    )


def _of(subject: Subject) -> sa.ColumnElement[bool]:
    columns = (operator_words.c.cell, operator_words.c.host, operator_words.c.node)
    return sa.and_(*(column == part for column, part in zip(columns, subject, strict=True)))


_OPEN = sa.select(operator_words).where(
    ~operator_words.c.enabled,
    operator_words.c.drain.is_distinct_from(ENDED)
    | operator_words.c.drain_version.is_distinct_from(operator_words.c.version),
)


_MOVING = _OPEN.where(operator_words.c.moves_version == operator_words.c.version).order_by(
    operator_words.c.version, operator_words.c.cell, operator_words.c.host, operator_words.c.node
)

_AWAITED = (
    sa.select(build_requests.c.accepted_at)
    .where(
        build_requests.c.accepted_at > sa.bindparam("early"),
        build_requests.c.accepted_at <= sa.bindparam("late"),
    )
    .order_by(build_requests.c.accepted_at)
    .limit(1)
)
