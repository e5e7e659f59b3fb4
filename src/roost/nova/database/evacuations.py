"""The evacuations of instances whose host is down."""

import datetime
from collections.abc import Collection
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.nova.database.states import ACCEPTED, EVACUATION, FAILED
from roost.nova.database.tables import migrations
from roost.storage import in_batches, transaction


class EvacuationRow(NamedTuple):
    """An evacuation. ``id`` is that of its row. ``nodename``: the node that has taken the instance."""

    id: int
    instance: str
    status: str
    source_host: str | None
    nodename: str | None
    created: datetime.datetime | None

    @property
    def untaken(self) -> bool:
        """True if no compute service has taken it. Source: ``ResourceTracker`` of Nova sets the node then."""
        return self.nodename is None and self.status in (ACCEPTED, FAILED)


@transaction
def read_untaken(connection: Connection, after: int, most: int) -> list[EvacuationRow]:
    """Return the latest evacuations with an id above ``after`` that no compute service has taken, at most
    ``most``, the newest first."""
    query = (
        _EVACUATIONS.where(
            migrations.c.id > after,
            migrations.c.dest_node.is_(None),
            migrations.c.status.in_((ACCEPTED, FAILED)),
        )
        .order_by(migrations.c.id.desc())
        .limit(most)
    )
    return [EvacuationRow(*row) for row in connection.execute(query)]


@transaction
def read_evacuations(connection: Connection, instances: Collection[str]) -> list[EvacuationRow]:
    """Return all evacuations of some instances, the oldest first."""
    return [
        EvacuationRow(*row)
        for some in in_batches(instances)
        for row in connection.execute(
            _EVACUATIONS.where(migrations.c.instance_uuid.in_(some)).order_by(migrations.c.id)
        )
    ]


_EVACUATIONS = sa.select(
    migrations.c.id,
    migrations.c.instance_uuid,
    migrations.c.status,
    migrations.c.source_compute,
    migrations.c.dest_node,
    migrations.c.created_at,
).where(
    migrations.c.deleted == 0,
    # A type of its own in PostgreSQL, which compares with no text.
    sa.cast(migrations.c.migration_type, sa.String(20)) == EVACUATION,
)
