"""Which conductor works on which instance: each instance that wants work has one owner at a time."""

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.cells.arriving import INSTANCES
from roost.cells.cell_work import CellWork
from roost.cells.rows import instance_of
from roost.cells.tables import instances
from roost.model.instance import ABANDONED, DESTROYED, FAILED, Instance

FOR_CONDUCTORS = (FAILED, ABANDONED, DESTROYED)
"""States in which an instance wants work of a conductor."""


class Ownership(msgspec.Struct, frozen=True):
    """Under which lease a conductor works: the holder of the lease, and the owner's number."""

    holder: str
    epoch: int


class TakeWork(CellWork, frozen=True):
    """Take instances that want work: free ones, and those whose owners are ``dead``.

    Returns at most ``most`` of them, each with its new owner.
    """

    owner: str
    most: int
    dead: tuple[str, ...] = ()
    states: tuple[str, ...] = FOR_CONDUCTORS

    def __call__(self, connection: Connection) -> list[Instance]:
        free: sa.ColumnElement[bool] = instances.c.owner.is_(None)
        if self.dead:
            free = free | instances.c.owner.in_(self.dead)
        wanted = INSTANCES.where(instances.c.state.in_(self.states), free).limit(self.most)
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


class OwnersOfWork(msgspec.Struct, frozen=True):
    """The holders of leases that own instances which want work."""

    states: tuple[str, ...] = FOR_CONDUCTORS

    def __call__(self, connection: Connection) -> frozenset[str]:
        owned = sa.select(instances.c.owner).where(
            instances.c.state.in_(self.states), instances.c.owner.is_not(None)
        )
        return frozenset(connection.execute(owned.distinct()).scalars())


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
