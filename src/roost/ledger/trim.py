"""Forgetting old commits."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger.load import head
from roost.ledger.tables import commits

TRIM_AT_ONCE = 1000
"""Commits removed in one transaction, so that much to trim holds up no write for long."""


def trim(connection: Connection, keep: int, older_than: float) -> int:
    """Remove the oldest of the commits that are not among the newest ``keep`` or were all made before
    ``older_than`` (seconds since the epoch), at most `TRIM_AT_ONCE`; return how many.

    What goes is always a beginning: clocks of several writers differ, and a commit that goes from between
    two that stay would break the sequence for every replica that is behind. The newest stays.
    """
    newest = head(connection)
    recent = sa.select(commits.c.seq).where(commits.c.committed_at >= older_than)
    first_recent = connection.execute(recent.order_by(commits.c.seq).limit(1)).scalar()
    first_kept = max(newest - max(keep, 1) + 1, newest if first_recent is None else first_recent)
    oldest = connection.execute(sa.select(sa.func.min(commits.c.seq))).scalar() or 0
    goes = commits.c.seq < min(first_kept, oldest + TRIM_AT_ONCE)
    return connection.execute(sa.delete(commits).where(goes)).rowcount
