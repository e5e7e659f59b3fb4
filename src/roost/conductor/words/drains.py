"""Tells when what an operator has disabled begins to be emptied, and when it is empty.

A drain belongs to a word: its row has how far it is, with the version of the word. So each drain is told
once, whichever process sees it, and a later word begins anew. A drain has ended when nothing can come any
more: requests that were accepted before the word are in their cells, and no instance that failed before it is
on its way to another host.
"""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.cells.left_instances import CountRemaining, Remaining
from roost.conductor.events.store import append_events
from roost.conductor.events.types import CloudEvent, EventKind
from roost.conductor.tables import API, build_requests, operator_words
from roost.machine import Clock, Log, Machine, Read, Sleep, Together, Write
from roost.model.operator_word import Subject
from roost.scheduler.claim_result import one_line
from roost.storage import StorageError

EVERY_SECONDS = 5.0
"""Seconds between two looks at the drains that have not ended."""

LATEST_SECONDS = 3600.0
"""Seconds before a word of which a request is waited for: one that cannot be read stays for ever."""

BEGUN = "begun"
ENDED = "ended"


class Drain(msgspec.Struct, frozen=True):
    """A drain that has not ended, of the word at a ``version``. ``at``: when it was said, in seconds since
    the epoch. ``awaited``: requests that were accepted before it are on their way to their cells."""

    subject: Subject
    version: int
    at: float
    begun: bool
    awaited: bool = False


class OpenDrains(msgspec.Struct, frozen=True):
    """Answers the drains that have not ended."""

    def __call__(self, connection: Connection) -> list[Drain]:
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


class NoteDrains(msgspec.Struct, frozen=True):
    """Note that drains have begun or ended, and tell it, unless it was told or there is a later word.

    ``seen``: each drain with the number of instances that are left. ``at``: seconds since the epoch.
    """

    seen: tuple[tuple[Drain, int], ...]
    at: float

    def __call__(self, connection: Connection) -> None:
        events = []
        for drain, left in self.seen:
            state = BEGUN if left else ENDED
            still = _of(drain.subject), operator_words.c.version == drain.version, ~operator_words.c.enabled
            other = operator_words.c.drain_version.is_distinct_from(drain.version)
            new = other | operator_words.c.drain.is_distinct_from(state)
            noted = sa.update(operator_words).where(*still, new)
            values = {"drain": state, "drain_version": drain.version}
            if connection.execute(noted.values(values)).rowcount:
                there = "1 instance is there" if left == 1 else f"{left:,} instances are there"
                detail = there if left else "nothing is there any more"
                events.append(_event(drain.subject, state, self.at, detail))
        append_events(connection, events)


def end_early(
    connection: Connection, these: Sequence[sa.ColumnElement[bool]], at: float, why: str
) -> list[CloudEvent]:
    """The events of drains that have begun and end before all is empty, of the rows of ``these`` words."""
    columns = operator_words.c
    begun = ~columns.enabled, columns.drain == BEGUN, columns.drain_version == columns.version
    rows = connection.execute(sa.select(columns.cell, columns.host, columns.node).where(*these, *begun))
    return [_event(Subject(*row), ENDED, at, why) for row in rows]


def watch_drains(cells: Callable[[], Collection[str]]) -> Machine[None]:
    """Look at the drains of the cells that answer, for ever. Several processes may."""
    while True:
        try:
            yield from look_at_drains(cells())
        except StorageError as error:
            yield from Log("drains are looked at later", {"error": one_line(error)}, "debug").do()
        yield from Sleep(EVERY_SECONDS).do()


def look_at_drains(cells: Collection[str]) -> Machine[None]:
    """Tell the drains that have begun or ended since the last look. Raises: `StorageError` of the API
    database."""
    # What was on its way before this read is in its cell at the next ones.
    open_ = yield from Read(API, OpenDrains()).do()
    by_cell: dict[str, list[Drain]] = {}
    for drain in open_:
        if drain.subject.cell in cells:
            by_cell.setdefault(drain.subject.cell, []).append(drain)
    found = yield from Together([_remaining(cell, drains) for cell, drains in by_cell.items()]).do()
    seen = [
        (drain, left)
        for drains, remaining in zip(by_cell.values(), found, strict=True)
        if remaining is not None
        for drain in drains
        if (left := _left(drain, remaining)) is not None
    ]
    if seen:
        yield from Write(API, NoteDrains(tuple(seen), (yield from Clock().do()))).do()


def _left(drain: Drain, remaining: Remaining) -> int | None:
    """The instances that a drain has left; None if there is nothing to tell."""
    if left := remaining.instances.get(drain.subject, 0):
        return None if drain.begun else left
    moving = remaining.moving_since is not None and remaining.moving_since <= drain.at
    return None if drain.awaited or moving else 0


def _remaining(cell: str, drains: Sequence[Drain]) -> Machine[Remaining | None]:
    subjects = tuple(drain.subject for drain in drains)
    try:
        return (yield from Read(f"cell/{cell}", CountRemaining(subjects)).do())
    except StorageError as error:
        values: Mapping[str, object] = {"cell": cell, "error": one_line(error)}
        yield from Log("drains of a cell are looked at later", values, "debug").do()
        return None


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
_AWAITED = (
    sa.select(build_requests.c.accepted_at)
    .where(
        build_requests.c.accepted_at > sa.bindparam("early"),
        build_requests.c.accepted_at <= sa.bindparam("late"),
    )
    .order_by(build_requests.c.accepted_at)
    .limit(1)
)
