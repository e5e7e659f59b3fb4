"""Trimming: the removal of old commits."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger.load import head
from roost.ledger.tables import commits

TRIM_AT_ONCE = 1000
"""Commits that one transaction removes at most, so that it does not delay other writes for long."""


def trim(connection: Connection, keep: int, older_than: float, at_once: int = TRIM_AT_ONCE) -> int:
    """Delete the oldest commits, at most ``at_once``, and return their number.

    A commit may be deleted if it is not among the newest ``keep``, or if it and all commits before it were
    made before ``older_than`` (seconds since the epoch).

    Only a prefix of the history is removed: the clocks of writers differ, and a gap would break the sequence
    for every replica that is behind. The newest commit stays.
    """
    newest = head(connection)
    recent = sa.select(commits.c.seq).where(commits.c.committed_at >= older_than)
    first_recent = connection.execute(recent.order_by(commits.c.seq).limit(1)).scalar()
    first_kept = max(newest - max(keep, 1) + 1, newest if first_recent is None else first_recent)
    oldest = connection.execute(sa.select(sa.func.min(commits.c.seq))).scalar() or 0
    goes = commits.c.seq < min(first_kept, oldest + at_once)
    return connection.execute(sa.delete(commits).where(goes)).rowcount
