"""The head of the database, and the delta: the commits that a replica lacks to be at the head.

A delta is read in pages, so that a replica that is far behind never blocks the event loop for long: each page
is read and decoded in the reader thread and applied in the event loop. A replica that is so far behind that
loading takes less time than following is loaded anew.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.fleet import Fleet
from roost.ledger.commit_steps import Position
from roost.ledger.feed import decode_changes
from roost.ledger.holdings import (
    HOLDING,
    Holdings,
    for_named,
    holdings_from_rows,
    holdings_of,
    with_allocations,
)
from roost.ledger.load import load
from roost.ledger.tables import commits, consumers
from roost.ledger.turn_requests import REQUEST_COUNT, turn_requests
from roost.model.change import Change

SMALL_COMMIT = 512
"""Least cost of following one commit, in characters of changes that take as long to follow. If the commits up
to the head exceed the limit by this cost alone, the replica is loaded anew at once."""

_FETCHED = 32
"""Commits fetched at once; a page that reaches a limit leaves the rest of them to the next page."""


class PageLimits(NamedTuple):
    """The limits of one page of a delta. The commit that reaches a limit is the last one of the page."""

    commits: int = 256
    characters: int = 256 * 1024
    """Characters of changes. The event loop takes about 10 ms to apply this many."""


DEFAULT_LIMITS = PageLimits()


class Head(NamedTuple):
    """The head and the holdings of some consumers, in one snapshot.

    ``turn_requested``: whether any writer requests its turn.
    """

    position: Position
    turn_requested: bool
    holdings: Holdings


class Followed(NamedTuple):
    """A commit of a delta. ``at``: seconds since the epoch; ``text``: its changes as its row holds them."""

    seq: int
    token: str
    at: float
    text: str
    changes: Sequence[Change]


class Delta(NamedTuple):
    """One page of a delta: commits to follow, or a fleet to replace the replica's with.

    ``position``: the replica's position after this page. ``commits``: the next commits, if ``fleet`` is None.
    ``tokens``: theirs. ``fleet``: the fleet at the head, loaded anew; then ``tokens`` are of the commits
    after the replica's old position, as far as they are kept. ``complete``: whether the page reaches the
    head. Only then there are ``holdings`` (of the named consumers that exist) and ``turn_requests`` (the
    oldest first).
    """

    position: Position
    commits: Sequence[Followed]
    tokens: Sequence[str]
    fleet: Fleet | None
    complete: bool
    holdings: Holdings
    turn_requests: Sequence[str]


class CommitRow(NamedTuple):
    """A row of `roost.ledger.tables.commits`. ``committed_at``: seconds since the epoch."""

    seq: int
    writer: str
    committed_at: float
    changes: str


class LedgerSnapshot(Protocol):
    """One snapshot of the ledger's tables."""

    def head(self) -> tuple[Position, bool]:
        """Return the head, and whether any turn is requested."""

    def commits_from(self, seq: int, count: int) -> Sequence[CommitRow]:
        """Return the first ``count`` commits from ``seq`` on, in their order."""

    def turn_requests(self) -> Sequence[str]:
        """Return the turn requests, the oldest first."""

    def holdings(self, uuids: Sequence[str]) -> Holdings:
        """Return the holdings of the named consumers that exist."""

    def load(self) -> Fleet:
        """Return the fleet at the head. Raises: `roost.ledger.errors.Damaged`."""


NOWHERE = Position(0, None)
"""The position before the first commit."""

_NEWEST = sa.select(commits.c.seq, commits.c.writer).order_by(commits.c.seq.desc()).limit(1)
_NEWEST_SQL = "SELECT seq, writer FROM commits ORDER BY seq DESC LIMIT 1"
_HEAD = _NEWEST.add_columns(REQUEST_COUNT.label("requests"))
_AT_HEAD = _HEAD.subquery("head")
_head_and_named = for_named(
    lambda named: sa.select(*_AT_HEAD.c, *HOLDING).select_from(
        with_allocations(_AT_HEAD.outerjoin(consumers, named))
    )
)
_FROM = (
    sa.select(commits.c.seq, commits.c.writer, commits.c.committed_at, commits.c.changes)
    .where(commits.c.seq >= sa.bindparam("seq", type_=sa.BigInteger))
    .order_by(commits.c.seq)
    .limit(sa.bindparam("count", type_=sa.Integer))
)


class DatabaseSnapshot:
    """The snapshot that a connection's transaction sees."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def head(self) -> tuple[Position, bool]:
        row = self._connection.execute(_HEAD).one_or_none()
        return (NOWHERE, False) if row is None else (Position(row.seq, row.writer), row.requests > 0)

    def commits_from(self, seq: int, count: int) -> Sequence[CommitRow]:
        return [CommitRow(*row) for row in self._connection.execute(_FROM, {"seq": seq, "count": count})]

    def turn_requests(self) -> Sequence[str]:
        return turn_requests(self._connection)

    def holdings(self, uuids: Sequence[str]) -> Holdings:
        return holdings_of(self._connection, uuids)

    def load(self) -> Fleet:
        return load(self._connection)


def newest(connection: Connection) -> Position:
    """Return the position of the head."""
    # Each read asks for it, and SQLAlchemy takes three times as long as SQLite.
    cursor = connection.connection.cursor()
    try:
        cursor.execute(_NEWEST_SQL)
        row = cursor.fetchone()
    except connection.dialect.loaded_dbapi.Error:
        # SQLAlchemy finds the same error, and knows what it means for the connection.
        row = connection.exec_driver_sql(_NEWEST_SQL).one_or_none()
    finally:
        cursor.close()
    return NOWHERE if row is None else Position(*row)


def check_head(connection: Connection, uuids: Sequence[str]) -> Head:
    """Return the head and the holdings of at most `NAMES_PER_STATEMENT` consumers, by a single statement."""
    rows = _head_and_named(connection, uuids)
    if not rows:
        return Head(NOWHERE, False, Holdings({}, {}))
    seq, token, requests = rows[0][:3]
    holdings = holdings_from_rows(row[3:] for row in rows if row[3] is not None)
    return Head(Position(seq, token), requests > 0, holdings)


def check_head_of_many(connection: Connection, uuids: Sequence[str]) -> Head:
    """Do as `check_head`, for any number of consumers. The transaction must see one snapshot."""
    snapshot = DatabaseSnapshot(connection)
    return Head(*snapshot.head(), snapshot.holdings(uuids))


def read_delta(
    snapshot: LedgerSnapshot,
    since: Position,
    uuids: Sequence[str],
    follow: int,
    limits: PageLimits = DEFAULT_LIMITS,
) -> Delta:
    """Read the next page of the delta of a replica at ``since``, with the consumers ``uuids``.

    The fleet is loaded anew if following does not lead to the head (commits were trimmed, or the replica has
    commits that the database has not), or if the commits cost more than ``follow`` characters of changes,
    counted as `SMALL_COMMIT` each.

    Raises: `roost.ledger.errors.Damaged` if the fleet must be loaded and cannot be; `msgspec.MsgspecError` if
    a commit cannot be decoded.
    """
    head, requested = snapshot.head()
    requests = snapshot.turn_requests() if requested else ()
    if head == since:
        return Delta(head, (), (), None, True, snapshot.holdings(uuids), requests)
    page: list[Followed] = []
    if 0 < head.seq - since.seq <= follow // SMALL_COMMIT:
        page = _page(snapshot, since, limits)
    if not page:
        tokens = [row.writer for row in snapshot.commits_from(since.seq + 1, limits.commits)]
        return Delta(head, (), tokens, snapshot.load(), True, snapshot.holdings(uuids), requests)
    at = Position(page[-1].seq, page[-1].token)
    tokens = [each.token for each in page]
    if at != head:
        return Delta(at, page, tokens, None, False, Holdings({}, {}), ())
    return Delta(at, page, tokens, None, True, snapshot.holdings(uuids), requests)


def _page(snapshot: LedgerSnapshot, since: Position, limits: PageLimits) -> list[Followed]:
    """Read the commits after ``since``, up to the limits; none if the history lacks ``since``."""
    at, size = since, 0
    page: list[Followed] = []
    # The commit at the replica's position is read as well, to compare its token.
    rows = snapshot.commits_from(max(since.seq, 1), _FETCHED)
    if since.seq:
        if not rows or Position(rows[0].seq, rows[0].writer) != since:
            return []
        rows = rows[1:]
    while rows:
        for row in rows:
            if row.seq != at.seq + 1:
                return []
            at = Position(row.seq, row.writer)
            size += len(row.changes)
            changes = decode_changes(row.changes)
            page.append(Followed(row.seq, row.writer, row.committed_at, row.changes, changes))
            if size >= limits.characters or len(page) >= limits.commits:
                return page
        rows = snapshot.commits_from(at.seq + 1, _FETCHED)
    return page
