"""The build requests of instances that no cell has yet."""

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.nova.database.tables import build_requests
from roost.storage import in_batches, transaction


@transaction
def read_requested(connection: Connection, instances: Collection[str]) -> frozenset[str]:
    """Return those of some instances whose build request is there: they are still to be put into a cell."""
    column = build_requests.c.instance_uuid
    return frozenset(
        instance
        for some in in_batches(instances)
        for instance in connection.execute(sa.select(column).where(column.in_(some))).scalars()
        if instance is not None
    )
