"""The ownership of instances: each instance that wants work of a conductor has one owner at a time."""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ABANDONED, DESTROYED, FAILED, Instance
from roost.state.cell_database.arrivals import INSTANCES
from roost.state.cell_database.rows import instance_of
from roost.state.cell_database.tables import instances
from roost.state.leases import holders
from roost.storage import in_batches, one_of, one_of_constants, short_read, transaction

FOR_CONDUCTORS = (FAILED, ABANDONED, DESTROYED)
"""States in which an instance wants work of a conductor."""


def work_topic(cell: str) -> str:
    """Return the topic: an instance of a cell may want work of a conductor."""
    return f"cell/{cell}/work"


class Ownership(msgspec.Struct, frozen=True):
    """The ownership of an instance: the holder of the owner's lease, and the owner's epoch."""

    holder: str
    epoch: int


@short_read
def find_wanting_work(connection: Connection, owner: str, most: int) -> list[str]:
    """Return the uuids of at most ``most`` instances that want work and that ``owner`` may take.

    They have no owner, or one that holds no lease any more, or are owned by ``owner`` itself: it may have
    taken some by a write whose answer was lost.
    """
    values = {"me": owner, "most": most}
    return [*connection.execute(_WANTING, values).scalars()]


@transaction
def take_work(connection: Connection, owner: str, uuids: tuple[str, ...]) -> list[Instance]:
    """Take the named instances, except those that others have taken; returns them with their new owner.

    See `find_wanting_work`.
    """
    taken = [
        instance_of(row)
        for some in in_batches(uuids)
        for row in connection.execute(_TAKEABLE, {"me": owner, "uuids": some})
    ]
    if taken:
        connection.execute(_TAKE, [{"key": each.uuid, "new_owner": owner} for each in taken])
    return [msgspec.structs.replace(each, owner=owner, owner_epoch=each.owner_epoch + 1) for each in taken]


_FREE = (
    one_of_constants(instances.c.state, FOR_CONDUCTORS),
    instances.c.owner.is_(None)
    | instances.c.owner.not_in(holders())
    | (instances.c.owner == sa.bindparam("me")),
)
_WANTING = sa.select(instances.c.uuid).where(*_FREE).limit(sa.bindparam("most"))
_TAKEABLE = INSTANCES.where(one_of(instances.c.uuid, "uuids"), *_FREE).with_for_update(skip_locked=True)
_TAKE = (
    sa.update(instances)
    .where(instances.c.uuid == sa.bindparam("key"))
    .values(owner=sa.bindparam("new_owner"), owner_epoch=instances.c.owner_epoch + 1)
)
