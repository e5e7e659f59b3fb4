"""The change feed: commits in their order, read forwards or backwards from a version."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger.tables import commits
from roost.model.change import Change
from roost.storage import read_identity

ROWS_AT_ONCE = 50
"""Commits fetched together. A limit of bytes is exceeded by these at most."""

ENDS = sa.select(
    sa.select(sa.func.min(commits.c.seq)).scalar_subquery(),
    sa.select(sa.func.max(commits.c.seq)).scalar_subquery(),
)
"""The numbers of the oldest and the newest kept commit. Two subqueries, because SQLite reads the whole table
for two aggregates of one query."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Change]).decode


def encode_changes(changes: Sequence[Change]) -> str:
    """Encode the changes of a commit as the JSON array that its row holds.

    Raises: `UnicodeEncodeError` for text with a lone surrogate.
    """
    return _encode(changes).decode()


def decode_changes(text: str) -> list[Change]:
    """Decode the changes of a commit from its row.

    Raises: `msgspec.MsgspecError` for any other text.
    """
    return _decode(text)


class Commit(NamedTuple):
    """A commit in the table. ``at``: seconds since the epoch; ``changes``: a JSON array of changes."""

    seq: int
    at: float
    changes: str


class Stretch(NamedTuple):
    """Consecutive commits, and the first and last commit of the table: ``oldest`` and ``head``; 0: none.

    ``history``: identity and incarnation of the database, within which a number names one commit.
    """

    commits: list[Commit]
    oldest: int
    head: int
    history: str


def commits_after(connection: Connection, seq: int, most: int, most_bytes: int) -> Stretch:
    """Read the commits after ``seq`` without a gap, at most ``most``, until they reach ``most_bytes``.

    ``most_bytes`` is compared with the changes in UTF-8. If the next commit was trimmed, none is returned:
    then ``oldest`` is more than ``seq + 1``. The connection's transaction must see one snapshot.
    """
    oldest, head = connection.execute(ENDS).one()
    found: list[Commit] = []
    size = 0
    at = seq
    while len(found) < most and size < most_bytes:
        newer = sa.select(commits.c.seq, commits.c.committed_at, commits.c.changes).where(commits.c.seq > at)
        rows = connection.execute(newer.order_by(commits.c.seq).limit(min(ROWS_AT_ONCE, most - len(found))))
        before = at
        for row in rows:
            # Databases show commits in their order. If one did not, the feed would wait for the missing one.
            if row.seq != at + 1 or size >= most_bytes:
                break
            at = row.seq
            size += len(row.changes.encode())
            found.append(Commit(*row))
        if at == before:
            break
    return Stretch(found, oldest or 0, head or 0, str(read_identity(connection)))


def commits_before(connection: Connection, seq: int, down_to: int) -> list[Commit]:
    """Return the commits from ``seq`` down to ``down_to``, newest first, at most `ROWS_AT_ONCE`."""
    older = sa.select(commits.c.seq, commits.c.committed_at, commits.c.changes).where(
        commits.c.seq <= seq, commits.c.seq >= down_to
    )
    return [
        Commit(*row) for row in connection.execute(older.order_by(commits.c.seq.desc()).limit(ROWS_AT_ONCE))
    ]


def token_at(connection: Connection, seq: int) -> str | None:
    """Return the token of a commit's append, which no client knows; None if the commit is trimmed."""
    return connection.execute(sa.select(commits.c.writer).where(commits.c.seq == seq)).scalar()
