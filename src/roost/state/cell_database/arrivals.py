"""The arrival of instances in a cell, the takeover of a request whose instances may be there, and fences.

Fences keep instances of outdated owners of a request out of this cell. A conductor claims, writes the
mapping, then inserts the row here. It may pause before the insert, for hours. Meanwhile another conductor
takes the request over and places the instance elsewhere, or the user deletes the instance. Then the late
insert must have no effect.

Each request's owner has an epoch, and each instance has a fence here: the highest epoch that must not insert
it any more. An insert passes only if it raises the fence to its own epoch. A conductor that takes a request
over raises the fence to the epoch below its own; a deletion raises it above all. So all of them change the
same row, and the second of two sees the change of the first.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model import record
from roost.model.instance import BuildAttempt, Fault, Instance
from roost.state.cell_database.building import keep_attempts
from roost.state.cell_database.history import first_line
from roost.state.cell_database.rows import INSTANCES, instance_of, instance_row
from roost.state.cell_database.state_changes import note_first_changes
from roost.state.cell_database.tables import fences, instances
from roost.storage import in_batches, insert_missing, one_of, short_read, transaction

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
        there.update(
            (row.instance_uuid, row.epoch) for row in connection.execute(_FENCES_OF, {"uuids": some})
        )
    new = [uuid for uuid in epochs if uuid not in there]
    lower = [uuid for uuid, epoch in there.items() if epoch < epochs[uuid]]
    if new:
        rows = [{"instance_uuid": uuid, "epoch": epochs[uuid], "at": at} for uuid in new]
        insert_missing(connection, sa.insert(fences), rows)
    if lower:
        connection.execute(_RAISE, [{"key": uuid, "to": epochs[uuid], "now": at} for uuid in lower])
    return Raised(frozenset(new), frozenset(lower))


_FENCES_OF = (
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
def find_deleted(connection: Connection, uuids: tuple[str, ...]) -> frozenset[str]:
    """Return which of some instances are known to have been deleted: they cannot come back."""
    return frozenset(
        uuid for some in in_batches(uuids) for uuid in connection.execute(_DELETED, {"uuids": some}).scalars()
    )


_DELETED = sa.select(fences.c.instance_uuid).where(
    one_of(fences.c.instance_uuid, "uuids"), fences.c.epoch == ABOVE_ALL
)


@transaction
def trim_fences(connection: Connection, older_than: float) -> int:
    """Remove fences of absent instances, last raised before ``older_than`` (seconds since the epoch).

    Returns their number.
    """
    here = sa.select(instances.c.uuid).where(instances.c.uuid == fences.c.instance_uuid)
    old = sa.delete(fences).where(fences.c.at < older_than, ~here.exists())
    return connection.execute(old).rowcount


_NAMED = INSTANCES.where(one_of(instances.c.uuid, "uuids"))
_HERE = sa.select(instances.c.uuid).where(one_of(instances.c.uuid, "uuids"))


class Arrival(Enum):
    """The result of the insert of an instance."""

    ADDED = "added"
    """The instance is in the cell now."""
    THERE = "there"
    """It was there before, and is not changed."""
    FENCED = "fenced"
    """A later owner of the request has placed the instance elsewhere, or it was deleted."""


class AddInstances(msgspec.Struct, frozen=True):
    """Put instances into the cell; answers the result of each, by uuid.

    An instance passes its fence with its ``epoch``. ``why``: the reasons of instances that arrive in error.
    """

    new: tuple[Instance, ...]
    at: float
    why: tuple[Fault, ...] = ()

    @property
    def enters(self) -> Collection[str]:
        return {each.state for each in self.new}

    @property
    def keys(self) -> Collection[str]:
        return [each.uuid for each in self.new]

    def __call__(self, connection: Connection) -> dict[str, Arrival]:
        return self.together(connection, (self,))[0]

    @classmethod
    def together(cls, connection: Connection, works: "Sequence[AddInstances]") -> list[dict[str, Arrival]]:
        at = max(work.at for work in works)
        new = {each.uuid: each for work in works for each in work.new}
        raised = raise_fences(connection, {uuid: each.epoch for uuid, each in new.items()}, at)
        arrivals = dict.fromkeys(new, Arrival.FENCED)
        arrivals.update(dict.fromkeys((*raised.new, *raised.lower), Arrival.ADDED))
        # An instance that is here has a fence.
        for uuid in uuids_here(connection, [uuid for uuid in new if uuid not in raised.new]):
            arrivals[uuid] = Arrival.THERE
        added = [each for each in new.values() if arrivals[each.uuid] is Arrival.ADDED]
        if added:
            rows = [_row(each, at) for each in added]
            connection.execute(sa.insert(instances), rows)
            note_first_changes(connection, rows)
        why = [fault for work in works for fault in work.why if arrivals[fault.instance] is Arrival.ADDED]
        keep_attempts(connection, [_ended(fault) for fault in why])
        return [{each.uuid: arrivals[each.uuid] for each in work.new} for work in works]


@transaction
def settle_takeover(
    connection: Connection, uuids: tuple[str, ...], epoch: int, at: float
) -> dict[str, Instance]:
    """Fence the earlier owners of a request off this cell; returns its instances that are here, by uuid.

    ``epoch``: of the new owner. No insert of an earlier owner passes any more. Instances that are here have
    arrived, and stay.
    """
    raise_fences(connection, dict.fromkeys(uuids, epoch - 1), at)
    return find_instances(uuids)(connection)


@short_read
def find_instances(connection: Connection, uuids: tuple[str, ...]) -> dict[str, Instance]:
    """Return instances by uuid; those that are not in the cell are left out."""
    return {
        row.uuid: instance_of(row)
        for some in in_batches(uuids)
        for row in connection.execute(_NAMED, {"uuids": some})
    }


@short_read
def find_present(connection: Connection, uuids: tuple[str, ...]) -> set[str]:
    """Return which of the named instances are in the cell."""
    return uuids_here(connection, uuids)


def uuids_here(connection: Connection, uuids: Collection[str]) -> set[str]:
    """Return which of the instances are in the cell."""
    return {
        uuid for some in in_batches(uuids) for uuid in connection.execute(_HERE, {"uuids": some}).scalars()
    }


def _row(new: Instance, at: float) -> dict[str, object]:
    return {**instance_row(new, at), "history": first_line(new, at)}


def _ended(fault: Fault) -> BuildAttempt:
    return BuildAttempt(
        instance=fault.instance,
        attempt=fault.attempt,
        host=fault.host,
        node=None,
        began=fault.at,
        ended=fault.at,
        result=record.FAILED,
        reason=fault.reason,
    )
