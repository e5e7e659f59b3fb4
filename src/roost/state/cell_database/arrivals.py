"""The arrival of instances in a cell, and the takeover of a request whose instances may have arrived."""

from collections.abc import Collection, Sequence
from enum import Enum

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model import record
from roost.model.instance import BuildAttempt, Fault, Instance
from roost.state.cell_database.attempts import keep_attempts
from roost.state.cell_database.fences import raise_fences
from roost.state.cell_database.history import first_line
from roost.state.cell_database.rows import instance_of, instance_row
from roost.state.cell_database.state_changes import note_first_changes
from roost.state.cell_database.tables import instances
from roost.storage import in_batches, one_of, short_read, transaction

_NOT_OF_IT = ("changed_at", "began", "history")
INSTANCES = sa.select(*(column for column in instances.columns if column.name not in _NOT_OF_IT))
"""The query of the columns from which `roost.state.cell_database.rows.instance_of` makes an instance."""


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
