"""Reading what is newer than a replica: the commits to follow, or everything anew."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.fleet import Fleet
from roost.ledger.holdings import held_by
from roost.ledger.load import load
from roost.ledger.state import Held
from roost.ledger.tables import commits
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
    lead there: some were trimmed away, or the replica has commits that the database has not. ``held``: those
    of the named consumers that there are. ``asking``: the writers that ask to go first.
    """

    at: Position
    newer: Sequence[sa.Row[*tuple[Any, ...]]]
    fleet: Fleet | None
    held: dict[str, Held]
    asking: Sequence[str]


_NEWEST = sa.select(commits.c.seq, commits.c.writer).order_by(commits.c.seq.desc()).limit(1)
_HEAD = _NEWEST.add_columns(ANYBODY.label("asked"))
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


def read_news(connection: Connection, since: Position, consumers: Sequence[str]) -> News:
    """What is newer than ``since``. The connection's transaction must see one snapshot."""
    head = connection.execute(_HEAD).one_or_none()
    at = Position(0, None) if head is None else Position(head.seq, head.writer)
    names = asking(connection) if head is not None and head.asked else ()
    held = held_by(connection, consumers)
    if at == since:
        return News(at, (), None, held, names)
    rows = connection.execute(_SINCE, {"since": since.seq}).all()
    newer = [row for row in rows if row.seq > since.seq]
    follows = since.seq == 0 or (rows and rows[0][:2] == since)
    if follows and newer and newer[-1].seq == since.seq + len(newer):
        return News(at, newer, None, held, names)
    return News(at, newer, load(connection), held, ())
