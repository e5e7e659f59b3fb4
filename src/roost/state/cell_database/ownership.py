"""The ownership of instances: each instance that wants work of a conductor has one owner at a time."""

from typing import ClassVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ABANDONED, DESTROYED, FAILED, Instance
from roost.state.cell_database.arrivals import INSTANCES
from roost.state.cell_database.cell_work import CellWork
from roost.state.cell_database.rows import instance_of
from roost.state.cell_database.tables import instances
from roost.state.leases import holders
from roost.storage import in_batches, one_of, one_of_constants

FOR_CONDUCTORS = (FAILED, ABANDONED, DESTROYED)
"""States in which an instance wants work of a conductor."""


def work_topic(cell: str) -> str:
    """Return the topic: an instance of a cell may want work of a conductor."""
    return f"cell/{cell}/work"


class Ownership(msgspec.Struct, frozen=True):
    """The ownership of an instance: the holder of the owner's lease, and the owner's epoch."""

    holder: str
    epoch: int


class WantingWork(msgspec.Struct, frozen=True):
    """Answers the uuids of at most ``most`` instances that want work and that ``owner`` may take.

    They have no owner, or one that holds no lease any more, or are owned by ``owner`` itself: it may have
    taken some by a write whose answer was lost.
    """

    is_short: ClassVar = True

    owner: str
    most: int

    def __call__(self, connection: Connection) -> list[str]:
        values = {"me": self.owner, "most": self.most}
        return [*connection.execute(_WANTING, values).scalars()]


class TakeWork(CellWork, frozen=True):
    """Take the named instances, except those that others have taken; answers them with their new owner.

    See `WantingWork`.
    """

    owner: str
    uuids: tuple[str, ...]

    def __call__(self, connection: Connection) -> list[Instance]:
        taken = [
            instance_of(row)
            for some in in_batches(self.uuids)
            for row in connection.execute(_TAKEABLE, {"me": self.owner, "uuids": some})
        ]
        if taken:
            connection.execute(_TAKE, [{"key": each.uuid, "new_owner": self.owner} for each in taken])
        return [
            msgspec.structs.replace(each, owner=self.owner, owner_epoch=each.owner_epoch + 1)
            for each in taken
        ]


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
