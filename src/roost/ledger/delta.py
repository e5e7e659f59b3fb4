"""The head of the database, and the delta: what a replica lacks to be at the head.

A delta is read in pages, so that a replica that is far behind never holds up the event loop for long: each
page is read and decoded in the reader thread, and applied between two steps of the loop. A replica that
is so far behind that loading takes less time than following is loaded anew.
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
"""Characters that following a commit costs at least, in time. If following all commits up to the head would
pass the limit by this measure alone, the replica is loaded anew at once."""

_FETCHED = 32
"""Commits fetched together. A page passes its limit of characters by these at most before it is cut."""


class PageLimits(NamedTuple):
    """When a page of a delta ends; the next commits wait for the next page."""

    commits: int = 256
    characters: int = 256 * 1024
    """Of changes. The event loop needs about 10 ms to apply as many. A single commit may have more."""


DEFAULT_LIMITS = PageLimits()


class Head(NamedTuple):
    """The head and what some consumers hold, in one snapshot. ``turn_requested``: by any writer."""

    position: Position
    turn_requested: bool
    holdings: Holdings


class Followed(NamedTuple):
    """A commit of a delta, decoded. ``at``: seconds since the epoch; ``size``: characters of its changes."""

    seq: int
    token: str
    at: float
    size: int
    changes: Sequence[Change]


class Delta(NamedTuple):
    """One page of what a replica lacks.

    ``position``: where the replica is with it. ``commits``: the next ones; or ``fleet``: the head's, loaded
    anew, with ``tokens`` of the commits that the replica has not followed, as far as they are kept. Only if
    ``complete``, which means up to the head: ``holdings`` of those of the named consumers that there are, and
    ``turn_requests``, the oldest first.
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


class Snapshot(Protocol):
    """One snapshot of the ledger's tables."""

    def head(self) -> tuple[Position, bool]:
        """The head, and whether any turn is requested."""

    def commits_from(self, seq: int, count: int) -> Sequence[CommitRow]:
        """The first ``count`` commits from ``seq`` on, in their order."""

    def turn_requests(self) -> Sequence[str]:
        """The turn requests, the oldest first."""

    def holdings(self, uuids: Sequence[str]) -> Holdings:
        """Those of the named consumers that exist."""

    def load(self) -> Fleet:
        """The fleet at the head. Raises: `roost.ledger.errors.Damaged`."""


NOWHERE = Position(0, None)
"""Before the first commit."""

_NEWEST = sa.select(commits.c.seq, commits.c.writer).order_by(commits.c.seq.desc()).limit(1)
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
    """The snapshot of a connection's transaction, which must see one."""

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
    """The position of the head."""
    row = connection.execute(_NEWEST).one_or_none()
    return NOWHERE if row is None else Position(row.seq, row.writer)


def check_head(connection: Connection, uuids: Sequence[str]) -> Head:
    """The head and consumers, at most `roost.storage.AT_ONCE`; in one statement, which sees one snapshot."""
    rows = _head_and_named(connection, uuids)
    if not rows:
        return Head(NOWHERE, False, Holdings({}, {}))
    seq, token, requests = rows[0][:3]
    holdings = holdings_from_rows(row[3:] for row in rows if row[3] is not None)
    return Head(Position(seq, token), requests > 0, holdings)


def check_head_of_many(connection: Connection, uuids: Sequence[str]) -> Head:
    """The same for any number of consumers. The connection's transaction must see one snapshot."""
    snapshot = DatabaseSnapshot(connection)
    return Head(*snapshot.head(), snapshot.holdings(uuids))


def read_delta(
    snapshot: Snapshot,
    since: Position,
    uuids: Sequence[str],
    follow: int,
    limits: PageLimits = DEFAULT_LIMITS,
) -> Delta:
    """What a replica at ``since`` lacks: the next commits, or a fleet loaded anew.

    The fleet is loaded anew if following does not lead to the head (commits were trimmed, or the replica has
    commits that the database has not), or would pass ``follow`` characters of changes.
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


def _page(snapshot: Snapshot, since: Position, limits: PageLimits) -> list[Followed]:
    """The commits that follow ``since``, up to the limits; none if they do not follow from it."""
    at, size = since, 0
    page: list[Followed] = []
    # The commit that the replica is at comes along, to see that it is the same one.
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
            page.append(Followed(row.seq, row.writer, row.committed_at, len(row.changes), changes))
            if size >= limits.characters or len(page) >= limits.commits:
                return page
        rows = snapshot.commits_from(at.seq + 1, _FETCHED)
    return page
