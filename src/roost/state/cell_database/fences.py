"""Fences: they keep instances of outdated owners of a request out of this cell.

A conductor claims, writes the mapping, then inserts the row here. It may pause before the insert, for hours.
Meanwhile another conductor takes the request over and places the instance elsewhere, or the user deletes the
instance. Then the late insert must have no effect.

Each request's owner has an epoch, and each instance has a fence here: the highest epoch that must not insert
it any more. An insert passes only if it raises the fence to its own epoch. A conductor that takes a request
over raises the fence to the epoch below its own; a deletion raises it above all. So all of them change the
same row, and the second of two sees the change of the first.
"""

from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.state.cell_database.tables import fences, instances
from roost.storage import in_batches, insert_missing, one_of, transaction

ABOVE_ALL = 2**62
"""The fence of an instance that was deleted: no epoch is higher."""


class Raised(NamedTuple):
    """Instances that had no fence, and those whose fence was lower. Other fences were not changed."""

    new: frozenset[str]
    lower: frozenset[str]


def raise_fences(connection: Connection, epochs: Mapping[str, int], at: float) -> Raised:
    """Raise the fence of each instance to its epoch, unless it is that high already.

    Raises:
        ConflictRolledBack: another transaction made a fence at the same time: the work must run again.
    """
    there: dict[str, int] = {}
    for some in in_batches(epochs):
        there.update((row.instance_uuid, row.epoch) for row in connection.execute(_NAMED, {"uuids": some}))
    new = [uuid for uuid in epochs if uuid not in there]
    lower = [uuid for uuid, epoch in there.items() if epoch < epochs[uuid]]
    if new:
        rows = [{"instance_uuid": uuid, "epoch": epochs[uuid], "at": at} for uuid in new]
        insert_missing(connection, sa.insert(fences), rows)
    if lower:
        connection.execute(_RAISE, [{"key": uuid, "to": epochs[uuid], "now": at} for uuid in lower])
    return Raised(frozenset(new), frozenset(lower))


_NAMED = (
    sa.select(fences.c.instance_uuid, fences.c.epoch)
    .where(one_of(fences.c.instance_uuid, "uuids"))
    .with_for_update()
)
_RAISE = (
    sa.update(fences)
    .where(fences.c.instance_uuid == sa.bindparam("key"))
    .values(epoch=sa.bindparam("to"), at=sa.bindparam("now"))
)


@transaction
def trim_fences(connection: Connection, older_than: float) -> int:
    """Remove fences of absent instances, last raised before ``older_than`` (seconds since the epoch).

    Returns their number.
    """
    here = sa.select(instances.c.uuid).where(instances.c.uuid == fences.c.instance_uuid)
    old = sa.delete(fences).where(fences.c.at < older_than, ~here.exists())
    return connection.execute(old).rowcount
