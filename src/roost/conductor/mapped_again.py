"""The audit's repair of a mapping: an instance is mapped again to the one cell that has it."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import Instance
from roost.state.api_database.mappings import InstanceMapping
from roost.state.api_database.past import find_past
from roost.state.api_database.tables import instance_mappings
from roost.storage import insert_missing, transaction


@transaction
def map_again(connection: Connection, instance: Instance, cell: str, seen: InstanceMapping | None) -> bool:
    """Map an instance to the cell that has it, unless its mapping has changed; returns whether it was mapped.

    ``seen``: the mapping that the audit has read, None if there was none. ``instance``: the row in the cell.
    An instance that has ended in the meantime gets no mapping.
    """
    of = instance
    here = instance_mappings.c.instance_uuid == of.uuid
    row = connection.execute(sa.select(instance_mappings).where(here).with_for_update()).one_or_none()
    if (row and InstanceMapping(*row)) != seen or find_past((of.uuid,))(connection):
        return False
    if row is not None:
        epoch = max(row.epoch, of.epoch)
        connection.execute(sa.update(instance_mappings).where(here).values(cell=cell, epoch=epoch))
        return True
    values = {
        "instance_uuid": of.uuid,
        "cell": cell,
        "epoch": of.epoch,
        "request_id": of.request_id,
        "project_id": of.project_id,
        "user_id": of.user_id,
        "deleted": False,
        "accepted_at": None,
    }
    insert_missing(connection, sa.insert(instance_mappings), values)
    return True
