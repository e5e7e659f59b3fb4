"""The ends of instances: deletion, destruction on the host, and what is forgotten after that."""

from collections.abc import Collection, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.cells.attempts import PRESENT, recorded_end
from roost.cells.building import UNDER_WAY, AttemptKey
from roost.cells.cell_work import GONE, CellWork
from roost.cells.fences import ABOVE_ALL, raise_fences
from roost.cells.orders import acknowledge, give_orders
from roost.cells.rows import Row
from roost.cells.tables import build_attempts, instances
from roost.model import record
from roost.model.instance import DELETING, DESTROYED, DestroyOrder
from roost.model.record import Attempt
from roost.storage import in_batches

DELETED = "the instance was deleted before its build had ended"
"""The reason of an attempt that is abandoned."""


class Deleted(msgspec.Struct, frozen=True):
    """What a deletion found.

    ``here`` are the instances that are in the cell: their hosts are to destroy them. ``ended``: the ends of
    attempts for the records.
    """

    here: frozenset[str]
    ended: list[Attempt]


class DeleteInstances(CellWork, frozen=True):
    """Mark instances for deletion. One that is on its way to the cell cannot arrive any more.

    An instance without a host counts as destroyed already.
    """

    uuids: tuple[str, ...]
    at: float
    cell: str

    @property
    def enters(self) -> Collection[str]:
        return (DELETING, DESTROYED)

    def __call__(self, connection: Connection) -> Deleted:
        rows = _rows_of(connection, self.uuids)
        missing = [uuid for uuid in self.uuids if uuid not in rows]
        if missing:
            raise_fences(connection, dict.fromkeys(missing, ABOVE_ALL), self.at)
            # Some may have come in before the fence was raised.
            rows |= _rows_of(connection, missing)
        for some in in_batches(rows):
            connection.execute(_MARK, {"uuids": some, "now": self.at})
        ended = [
            recorded_end(row, self.cell, record.ABANDONED, self.at, DELETED)
            for row in rows.values()
            if row.state in UNDER_WAY
        ]
        return Deleted(frozenset(rows), ended)


_UUIDS: sa.BindParameter[str] = sa.bindparam("uuids", expanding=True)
_ROWS = sa.select(*PRESENT).where(instances.c.uuid.in_(_UUIDS)).with_for_update()
_MARK = (
    sa.update(instances)
    .where(instances.c.uuid.in_(_UUIDS), instances.c.state.not_in((DELETING, DESTROYED)))
    .values(
        state=sa.case((instances.c.host.is_(None), DESTROYED), else_=DELETING),
        owner=None,
        changed_at=sa.bindparam("now"),
    )
)


def _rows_of(connection: Connection, uuids: Sequence[str]) -> dict[str, Row]:
    """The present attempts of those of the instances that are here, locked."""
    return {row.uuid: row for some in in_batches(uuids) for row in connection.execute(_ROWS, {"uuids": some})}


class Destroyed(CellWork, frozen=True):
    """A host has destroyed what it had of these attempts: orders are acknowledged, deletions go on.

    A host that is not the instance's, or an attempt that is not the present one, ends no deletion.
    """

    done: tuple[DestroyOrder, ...]
    at: float

    @property
    def enters(self) -> Collection[str]:
        return (DESTROYED,)

    def __call__(self, connection: Connection) -> None:
        acknowledge(connection, self.done)
        if self.done:
            connection.execute(
                _DESTROYED,
                [
                    {"key": each.instance, "of_attempt": each.attempt, "of_host": each.host, "now": self.at}
                    for each in self.done
                ],
            )


_DESTROYED = (
    sa.update(instances)
    .where(
        instances.c.uuid == sa.bindparam("key"),
        instances.c.attempt == sa.bindparam("of_attempt"),
        instances.c.host == sa.bindparam("of_host"),
        instances.c.state == DELETING,
    )
    .values(state=DESTROYED, owner=None, changed_at=sa.bindparam("now"))
)


class EndDeletions(CellWork, frozen=True):
    """Go on with deletions without their hosts, which do not answer; returns those that go on.

    The order to destroy stays: a host that comes back is not up before it has carried it out.
    """

    keys: tuple[AttemptKey, ...]
    at: float

    @property
    def enters(self) -> Collection[str]:
        return (DESTROYED,)

    def __call__(self, connection: Connection) -> list[AttemptKey]:
        gone = []
        for key in self.keys:
            deleting = (
                instances.c.uuid == key.instance,
                instances.c.attempt == key.attempt,
                instances.c.state == DELETING,
            )
            row = connection.execute(
                sa.select(instances.c.host).where(*deleting).with_for_update()
            ).one_or_none()
            if row is not None:
                values = {"state": DESTROYED, "owner": None, "changed_at": self.at}
                connection.execute(sa.update(instances).where(*deleting).values(**values))
                give_orders(connection, [DestroyOrder(key.instance, key.attempt, row.host)], self.at)
                gone.append(key)
        return gone


class Forget(CellWork, frozen=True):
    """Remove destroyed instances, their claims having been freed. They cannot come back."""

    uuids: tuple[str, ...]
    at: float

    @property
    def enters(self) -> Collection[str]:
        return (GONE,)

    def __call__(self, connection: Connection) -> None:
        for some in in_batches(self.uuids):
            ended = sa.select(instances.c.uuid).where(
                instances.c.uuid.in_(some), instances.c.state == DESTROYED
            )
            gone = connection.execute(ended).scalars().all()
            if gone:
                raise_fences(connection, dict.fromkeys(gone, ABOVE_ALL), self.at)
                connection.execute(sa.delete(build_attempts).where(build_attempts.c.instance_uuid.in_(gone)))
                connection.execute(sa.delete(instances).where(instances.c.uuid.in_(gone)))
