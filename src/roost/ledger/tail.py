"""Reading what is newer than a replica: the commits to follow, or everything anew."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.fleet import Fleet
from roost.ledger.holdings import HOLDING, Holdings, for_named, holdings_of, together, with_allocations
from roost.ledger.load import load
from roost.ledger.tables import commits, consumers
from roost.ledger.turns import ANYBODY, asking


class Position(NamedTuple):
    """A commit, by number and by the token of the append that made it; None: before the first one.

    The number alone does not tell one history from another: a standby that takes over may lack the newest
    commits and soon have others with their numbers.
    """

    seq: int
    token: str | None


class News(NamedTuple):
    """What there is at the head, in one snapshot.

    ``newer``: the commits that the replica has not seen. ``fleet``: loaded anew, if following them would not
    lead there: some were trimmed away, or the replica has commits that the database has not. ``holdings``: of
    those of the named consumers that there are. ``asking``: the writers that ask to go first.
    """

    at: Position
    newer: Sequence[sa.Row[*tuple[Any, ...]]]
    fleet: Fleet | None
    holdings: Holdings
    asking: Sequence[str]


class Look(NamedTuple):
    """The head, and what some consumers hold, in one snapshot. ``asked``: whether any writer
    asks to go first."""

    at: Position
    asked: bool
    holdings: Holdings


_NEWEST = sa.select(commits.c.seq, commits.c.writer).order_by(commits.c.seq.desc()).limit(1)
_HEAD = _NEWEST.add_columns(ANYBODY.label("asked"))
_AT_HEAD = _HEAD.subquery("head")
_look = for_named(
    lambda named: sa.select(*_AT_HEAD.c, *HOLDING).select_from(
        with_allocations(_AT_HEAD.outerjoin(consumers, named))
    )
)
_SINCE = (
    sa.select(commits.c.seq, commits.c.writer, commits.c.committed_at, commits.c.changes)
    # The commit that the replica is at comes along: to see that it is the same one.
    .where(commits.c.seq >= sa.bindparam("since", type_=sa.BigInteger))
    .order_by(commits.c.seq)
)


def newest(connection: Connection) -> Position:
    """The head."""
    row = connection.execute(_NEWEST).one_or_none()
    return Position(0, None) if row is None else Position(row.seq, row.writer)


def look(connection: Connection, uuids: Sequence[str]) -> Look:
    """The head and consumers, at most `roost.storage.AT_ONCE`; in one statement, which sees one snapshot."""
    rows = _look(connection, uuids)
    if not rows:
        return Look(Position(0, None), False, Holdings({}, {}))
    seq, writer, asked = rows[0][:3]
    return Look(Position(seq, writer), asked > 0, together(row[3:] for row in rows if row[3] is not None))


def read_news(connection: Connection, since: Position, consumers: Sequence[str]) -> News:
    """What is newer than ``since``. The connection's transaction must see one snapshot."""
    head = connection.execute(_HEAD).one_or_none()
    at = Position(0, None) if head is None else Position(head.seq, head.writer)
    names = asking(connection) if head is not None and head.asked else ()
    holdings = holdings_of(connection, consumers)
    if at == since:
        return News(at, (), None, holdings, names)
    rows = connection.execute(_SINCE, {"since": since.seq}).all()
    newer = [row for row in rows if row.seq > since.seq]
    follows = since.seq == 0 or (rows and rows[0][:2] == since)
    if follows and newer and newer[-1].seq == since.seq + len(newer):
        return News(at, newer, None, holdings, names)
    return News(at, newer, load(connection), holdings, ())
