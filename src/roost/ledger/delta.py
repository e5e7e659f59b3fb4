"""The head of the database, and the delta: what a replica lacks to be at the head.

A delta is read in pages, so that a replica that is far behind never holds up the event loop for long: each
page is read and decoded in the reader thread, and applied between two steps of the loop. A replica that
is so far behind that loading takes less time than following is loaded anew.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.fleet import Fleet
from roost.ledger.commit_steps import Position
from roost.ledger.feed import decode_changes
from roost.ledger.holdings import HOLDING, Holdings, for_named, holdings_of, together, with_allocations
from roost.ledger.load import load
from roost.ledger.tables import commits, consumers
from roost.ledger.turn_requests import REQUEST_COUNT, turn_requests
from roost.model.change import Change

PAGE_COMMITS = 256
"""Commits in one page of a delta. The next ones wait for the next page."""

PAGE_BYTES = 256 * 1024
"""Characters of changes after which a page of a delta ends. The event loop needs about 10 ms for as many.
A single commit may have more."""

SMALL_COMMIT = 512
"""Characters that a commit costs at least to be followed, in time. So many commits behind the head are not
even begun to be followed that would cost more than loading."""


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


_NOTHING = Position(0, None)
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
_FETCHED = 32
"""Commits fetched together, so that a page passes `PAGE_BYTES` by these at most before it is cut."""


def newest(connection: Connection) -> Position:
    """The position of the head."""
    row = connection.execute(_NEWEST).one_or_none()
    return _NOTHING if row is None else Position(row.seq, row.writer)


def check_head(connection: Connection, uuids: Sequence[str]) -> Head:
    """The head and consumers, at most `roost.storage.AT_ONCE`; in one statement, which sees one snapshot."""
    rows = _head_and_named(connection, uuids)
    if not rows:
        return Head(_NOTHING, False, Holdings({}, {}))
    seq, token, requests = rows[0][:3]
    holdings = together(row[3:] for row in rows if row[3] is not None)
    return Head(Position(seq, token), requests > 0, holdings)


def check_head_of_many(connection: Connection, uuids: Sequence[str]) -> Head:
    """The same for any number of consumers. The connection's transaction must see one snapshot."""
    row = connection.execute(_HEAD).one_or_none()
    if row is None:
        return Head(_NOTHING, False, Holdings({}, {}))
    return Head(Position(row.seq, row.writer), row.requests > 0, holdings_of(connection, uuids))


def read_delta(connection: Connection, since: Position, uuids: Sequence[str], follow_bytes: int) -> Delta:
    """What a replica at ``since`` lacks: the next commits, or a fleet loaded anew.

    Loaded anew if following does not lead to the head (commits were trimmed, or the replica has commits that
    the database has not), or would pass ``follow_bytes`` characters of changes. The connection's transaction
    must see one snapshot.
    """
    row = connection.execute(_HEAD).one_or_none()
    head = _NOTHING if row is None else Position(row.seq, row.writer)
    requests = turn_requests(connection) if row is not None and row.requests else ()
    if head == since:
        return Delta(head, (), (), None, True, holdings_of(connection, uuids), requests)
    page: list[Followed] = []
    if 0 < head.seq - since.seq <= follow_bytes // SMALL_COMMIT:
        page = _page(connection, since)
    if not page:
        tokens = [row.writer for row in _rows(connection, since.seq + 1, PAGE_COMMITS)]
        return Delta(head, (), tokens, load(connection), True, holdings_of(connection, uuids), requests)
    at = Position(page[-1].seq, page[-1].token)
    tokens = [each.token for each in page]
    if at != head:
        return Delta(at, page, tokens, None, False, Holdings({}, {}), ())
    return Delta(at, page, tokens, None, True, holdings_of(connection, uuids), requests)


def _page(connection: Connection, since: Position) -> list[Followed]:
    """The commits that follow ``since``, up to a page's limits; none if they do not follow from it."""
    at, size = since, 0
    page: list[Followed] = []
    # The commit that the replica is at comes along, to see that it is the same one.
    rows = _rows(connection, max(since.seq, 1), _FETCHED)
    if since.seq and (not rows or Position(rows[0].seq, rows[0].writer) != since):
        return []
    rows = rows[1:] if since.seq else rows
    while rows:
        for row in rows:
            if row.seq != at.seq + 1:
                return []
            at = Position(row.seq, row.writer)
            size += len(row.changes)
            page.append(
                Followed(row.seq, row.writer, row.committed_at, len(row.changes), decode_changes(row.changes))
            )
            if size >= PAGE_BYTES or len(page) == PAGE_COMMITS:
                return page
        rows = _rows(connection, at.seq + 1, _FETCHED)
    return page


def _rows(connection: Connection, seq: int, count: int) -> Sequence[sa.Row[*tuple[Any, ...]]]:
    return connection.execute(_FROM, {"seq": seq, "count": count}).all()
