"""The consumers of a ledger's tables, page by page: there are too many for one list."""

from collections.abc import Iterator

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.ledger import Held
from roost.ledger.holdings import held_by
from roost.ledger.tables import consumers

PAGE = 1000


def consumers_after(connection: Connection, after: str | None) -> list[str]:
    """The next consumers' uuids, in the database's own order; from the first, after None."""
    query = sa.select(consumers.c.uuid).order_by(consumers.c.uuid).limit(PAGE)
    if after is not None:
        query = query.where(consumers.c.uuid > after)
    return list(connection.execute(query).scalars())


def holdings(connection: Connection) -> Iterator[list[Held]]:
    """All consumers with what they hold, some at a time."""
    after = None
    while uuids := consumers_after(connection, after):
        yield list(held_by(connection, uuids).values())
        after = uuids[-1]
