"""Turn requests: rows by which a writer that lost several races asks the others to let it append first.

`roost.ledger.commit_protocol` says when a writer requests its turn, and for how long others honour it.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger.tables import waiting_writers

REQUEST_COUNT = sa.select(sa.func.count()).select_from(waiting_writers).scalar_subquery()
"""The number of turn requests, as a column of another query."""

_REQUESTS = sa.select(waiting_writers.c.writer).order_by(waiting_writers.c.asked_at, waiting_writers.c.writer)


def turn_requests(connection: Connection) -> Sequence[str]:
    """Return the turn requests in the database, the oldest first."""
    return connection.execute(_REQUESTS).scalars().all()


def request_turn(connection: Connection, request: str, at: float) -> None:
    """Add a turn request. ``at``: seconds since the epoch."""
    connection.execute(sa.insert(waiting_writers), {"writer": request, "asked_at": at})


def withdraw(connection: Connection, requests: Sequence[str]) -> None:
    """Delete turn requests. Requests that do not exist are ignored."""
    if requests:
        connection.execute(sa.delete(waiting_writers).where(waiting_writers.c.writer.in_(requests)))
