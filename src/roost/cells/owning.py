"""Which conductor works on which instance: each instance that wants work has one owner at a time."""

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.cells.arriving import INSTANCES
from roost.cells.cell_work import CellWork
from roost.cells.rows import instance_of
from roost.cells.tables import instances
from roost.leases import holders
from roost.model.instance import ABANDONED, DESTROYED, FAILED, Instance

FOR_CONDUCTORS = (FAILED, ABANDONED, DESTROYED)
"""States in which an instance wants work of a conductor."""


def work_topic(cell: str) -> str:
    """Topic: an instance of a cell may want work of a conductor."""
    return f"cell/{cell}/work"


class Ownership(msgspec.Struct, frozen=True):
    """Under which lease a conductor works: the holder of the lease, and the owner's number."""

    holder: str
    epoch: int


class WantsWork(msgspec.Struct, frozen=True):
    """Whether there is an instance that wants work and has no owner who holds a lease."""

    def __call__(self, connection: Connection) -> bool:
        return connection.execute(sa.select(instances.c.uuid).where(*_free()).limit(1)).first() is not None


class TakeWork(CellWork, frozen=True):
    """Take instances that want work and have no owner, or one that holds no lease any more.

    Returns at most ``most`` of them, each with its new owner.
    """

    owner: str
    most: int

    def __call__(self, connection: Connection) -> list[Instance]:
        wanted = INSTANCES.where(*_free()).limit(self.most)
        taken = [instance_of(row) for row in connection.execute(wanted.with_for_update(skip_locked=True))]
        if taken:
            connection.execute(_TAKE, [{"key": each.uuid, "new_owner": self.owner} for each in taken])
        return [
            msgspec.structs.replace(each, owner=self.owner, owner_epoch=each.owner_epoch + 1)
            for each in taken
        ]


_TAKE = (
    sa.update(instances)
    .where(instances.c.uuid == sa.bindparam("key"))
    .values(owner=sa.bindparam("new_owner"), owner_epoch=instances.c.owner_epoch + 1)
)


def _free() -> tuple[sa.ColumnElement[bool], ...]:
    return (
        instances.c.state.in_(FOR_CONDUCTORS),
        instances.c.owner.is_(None) | instances.c.owner.not_in(holders()),
    )


class ReleaseWork(CellWork, frozen=True):
    """Give instances back that an owner cannot finish, for any conductor to take."""

    owner: str
    uuids: Sequence[str]

    def __call__(self, connection: Connection) -> None:
        rows = [{"key": uuid, "of_owner": self.owner} for uuid in self.uuids]
        if rows:
            connection.execute(_RELEASE, rows)


_RELEASE = (
    sa.update(instances)
    .where(instances.c.uuid == sa.bindparam("key"), instances.c.owner == sa.bindparam("of_owner"))
    .values(owner=None)
)
