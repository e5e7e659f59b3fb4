"""The change feed: commits read in their order, forwards from a version and backwards from one."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger.tables import commits
from roost.model.change import Change

ROWS_AT_ONCE = 50
"""Commits fetched together, so that a limit of bytes is passed by these at most."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Change]).decode


def encode_changes(changes: Sequence[Change]) -> str:
    """The changes of a commit as its row holds them: a JSON array.

    Raises: `UnicodeEncodeError` for text with a lone surrogate.
    """
    return _encode(changes).decode()


def decode_changes(text: str) -> list[Change]:
    """The changes of a commit, from its row. Raises: `msgspec.MsgspecError`."""
    return _decode(text)


class Commit(NamedTuple):
    """A commit as it is kept. ``at``: seconds since the epoch; ``changes``: JSON, an array of changes."""

    seq: int
    at: float
    changes: str


class Stretch(NamedTuple):
    """Commits that follow each other, and what is kept: from ``oldest`` to ``head`` (0: nothing)."""

    commits: list[Commit]
    oldest: int
    head: int


def commits_after(connection: Connection, seq: int, most: int, most_bytes: int) -> Stretch:
    """The commits after ``seq``, at most ``most`` and no more once they have ``most_bytes``; never a gap.

    Empty if the next one has been trimmed away: then ``oldest`` is more than ``seq + 1``. The
    connection's transaction must see one snapshot.
    """
    ends = sa.select(sa.func.min(commits.c.seq), sa.func.max(commits.c.seq))
    oldest, head = connection.execute(ends).one()
    found: list[Commit] = []
    size = 0
    at = seq
    while len(found) < most and size < most_bytes:
        newer = sa.select(commits.c.seq, commits.c.committed_at, commits.c.changes).where(commits.c.seq > at)
        rows = connection.execute(newer.order_by(commits.c.seq).limit(min(ROWS_AT_ONCE, most - len(found))))
        before = at
        for row in rows:
            # Every database shows commits in their order; should one not, its gap is waited out, not passed.
            if row.seq != at + 1 or size >= most_bytes:
                break
            at = row.seq
            size += len(row.changes)
            found.append(Commit(*row))
        if at == before:
            break
    return Stretch(found, oldest or 0, head or 0)


def commits_before(connection: Connection, seq: int, down_to: int) -> list[Commit]:
    """The commits from ``seq`` down to ``down_to``, newest first, at most `ROWS_AT_ONCE` of them."""
    older = sa.select(commits.c.seq, commits.c.committed_at, commits.c.changes).where(
        commits.c.seq <= seq, commits.c.seq >= down_to
    )
    return [
        Commit(*row) for row in connection.execute(older.order_by(commits.c.seq.desc()).limit(ROWS_AT_ONCE))
    ]


def token_at(connection: Connection, seq: int) -> str | None:
    """The token of the append that made a commit, known to nobody outside; None if it is not kept."""
    return connection.execute(sa.select(commits.c.writer).where(commits.c.seq == seq)).scalar()
