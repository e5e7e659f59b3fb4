"""Reads the consumers of a ledger's tables in pages."""

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger import Held
from roost.ledger.holdings import held_by
from roost.ledger.tables import consumers

CONSUMERS_PER_PAGE = 1000
"""Consumers that one query reads."""


def consumers_after(connection: Connection, after: str | None) -> list[str]:
    """Return the uuids of the page of consumers after a uuid, in the database's order; None is the start."""
    query = sa.select(consumers.c.uuid).order_by(consumers.c.uuid).limit(CONSUMERS_PER_PAGE)
    if after is not None:
        query = query.where(consumers.c.uuid > after)
    return list(connection.execute(query).scalars())


def holdings(connection: Connection) -> Iterator[list[Held]]:
    """Yield all consumers with their allocations, a page at a time."""
    after = None
    while uuids := consumers_after(connection, after):
        yield list(held_by(connection, uuids).values())
        after = uuids[-1]
