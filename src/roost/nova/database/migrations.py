"""The migrations of instances that have not ended."""

from collections.abc import Collection
from typing import Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.nova.database.states import ACCEPTED
from roost.nova.database.tables import migrations
from roost.storage import in_batches, transaction

ENDED: Final = ("confirmed", "reverted", "error", "failed", "completed", "cancelled", "done")
"""The statuses of migrations that have ended. Source: ``migration_get_in_progress_by_host_and_node`` of Nova,
which has ``finished`` too: there a resize waits to be confirmed."""


class MigrationRow(NamedTuple):
    """A migration. ``kind`` is its ``migration_type``; ``host`` and ``nodename`` are its destination.

    ``claimed``: the compute of the destination has begun to count it.
    """

    uuid: str
    instance: str
    kind: str
    status: str
    source_host: str | None
    source_nodename: str | None
    host: str | None
    nodename: str | None
    claimed: bool


@transaction
def read_unfinished(connection: Connection, instances: Collection[str]) -> list[MigrationRow]:
    """Return the migrations of some instances that have not ended, the newest first."""
    return [
        _row(*row)
        for some in in_batches(instances)
        for row in connection.execute(_UNFINISHED.where(migrations.c.instance_uuid.in_(some)))
    ]


_UNFINISHED = (
    sa.select(
        migrations.c.uuid,
        migrations.c.instance_uuid,
        migrations.c.migration_type,
        migrations.c.status,
        migrations.c.source_compute,
        migrations.c.source_node,
        migrations.c.dest_compute,
        migrations.c.dest_node,
        migrations.c.dest_compute_id,
    )
    .where(migrations.c.deleted == 0, migrations.c.status.not_in(ENDED))
    .order_by(migrations.c.id.desc())
)


def _row(
    uuid: str,
    instance: str,
    kind: str | None,
    status: str | None,
    source_host: str | None,
    source_nodename: str | None,
    host: str | None,
    nodename: str | None,
    compute_id: int | None,
) -> MigrationRow:
    # A conductor names the destination of a live migration and of an evacuation before its compute does.
    # Source: ``_claim_existing_migration`` of Nova's resource tracker.
    claimed = host is not None and (compute_id is not None or status != ACCEPTED)
    return MigrationRow(
        uuid, instance, kind or "", status or "", source_host, source_nodename, host, nodename, claimed
    )
