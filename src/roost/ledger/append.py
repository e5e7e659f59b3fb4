"""The append: one transaction that makes a draft durable, on top of the commit that it was drafted after."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from roost.ledger.commit_steps import Position
from roost.ledger.errors import SequenceTaken
from roost.ledger.projection import Statement
from roost.ledger.tables import commits
from roost.ledger.turn_requests import withdraw
from roost.storage import deferred_exists, is_duplicate_key, pipelined, table_refusing

_PREDECESSOR = sa.select(commits.c.seq).where(
    commits.c.seq == sa.bindparam("seq", type_=sa.BigInteger), commits.c.writer == sa.bindparam("token")
)
_SUCCESSOR = (
    sa.select(commits.c.seq)
    .where(commits.c.seq > sa.bindparam("after_seq", type_=sa.BigInteger))
    .order_by(commits.c.seq)
    .limit(sa.literal_column("1"))
)
"""Queried instead of the predecessor for the first commit, which has none: no later commit may exist."""


class NewCommit(NamedTuple):
    """A row of `roost.ledger.tables.commits`. ``committed_at``: seconds since the epoch."""

    seq: int
    writer: str
    committed_at: float
    changes: str


def append(
    connection: Connection,
    after: Position,
    commit: NewCommit,
    statements: Sequence[Statement],
    withdrawn: Sequence[str],
) -> None:
    """Insert a commit, bring the tables up to date with it, and withdraw turn requests.

    ``after``: the commit that the draft was made on. ``withdrawn``: the turn requests to delete.

    Raises: `SequenceTaken` if the database has another commit with the same number, or lacks the commit
    ``after``; `sqlalchemy.exc.IntegrityError` if the statements violate a constraint of the tables.
    """
    try:
        with pipelined(connection):
            try:
                connection.execute(sa.insert(commits), commit._asdict())
            except IntegrityError as error:
                if is_duplicate_key(error):
                    raise SequenceTaken from error
                raise
            # A free number is not enough: other writers may have used it and trimmed it since, or a standby
            # with another history may have taken over.
            if after.seq:
                found = deferred_exists(connection, _PREDECESSOR, after._asdict())
            else:
                found = deferred_exists(connection, _SUCCESSOR, {"after_seq": commit.seq})
            for statement, rows in statements:
                statement.run(connection, rows)
            withdraw(connection, withdrawn)
        if found() != (after.seq > 0):
            raise SequenceTaken
    except IntegrityError as error:
        # In a pipeline the error of the first statement is raised only at the end.
        if is_duplicate_key(error) and table_refusing(error) == commits.name:
            raise SequenceTaken from error
        raise
