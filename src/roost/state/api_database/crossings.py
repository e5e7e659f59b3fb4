"""Crossings: the moves from one cell to another that are under way, each owned by one super conductor.

A crossing is stored before the target's cell hears of the instance, and removed when no half of the move is
left. While it is there the instance may be in both cells, and a deletion is told to both. It raises the epoch
of the instance's mapping: with this epoch the instance passes its fence in the target's cell, and only a
crossing of this epoch changes the cell of the mapping.

Steps of a crossing are repeated without harm, so its owner needs no number of its own: see
`roost.conductor.moves.crossings`.
"""

from collections.abc import Collection
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.state.api_database.tables import build_requests, crossings, instance_mappings
from roost.state.leases import holders
from roost.storage import in_batches, one_of, short_read, transaction


class Crossing(msgspec.Struct, frozen=True):
    """A move from one cell to another. ``mapped``, ``mapped_epoch``: the cell and the epoch of the instance's
    mapping, None and 0 if that is gone. ``deleted``: the deletion of the instance is accepted.
    """

    move: str
    instance: str
    source: str
    target: str
    epoch: int
    owner: str | None = None
    mapped: str | None = None
    mapped_epoch: int = 0
    deleted: bool = False

    def is_mapped_to(self, cell: str) -> bool:
        """Return whether the mapping names one of the cells, or was written by a later crossing."""
        return self.mapped == cell or self.mapped_epoch > self.epoch


class NoCrossing(msgspec.Struct, frozen=True):
    """A crossing cannot begin. ``is_over``: a later try cannot begin it either. ``reason``: for people."""

    reason: str
    is_over: bool = True


@transaction
def begin_crossing(
    connection: Connection,
    *,
    move: str,
    instance: str,
    source: str,
    target: str,
    owner: str | None,
    seen: int,
    epoch: int = 0,
) -> Crossing | NoCrossing:
    """Store a crossing, unless it is there, and return it.

    ``seen``: the epoch of the mapping when it was read, before a half of the move was seen to be under way.
    If that is another one now, the move may have ended, and the instance be in a later crossing, whose epoch
    is not raised. ``epoch``: that of a crossing that this database has lost. The instance of a request that
    is not finished stays: the owner of the request may look for it in its cell.
    """
    mapping = connection.execute(_MAPPING, {"of": instance}).one_or_none()
    if mapping is None or mapping.deleted:
        return NoCrossing("the instance is deleted")
    there = connection.execute(_OF_MOVE, {"of": move}).one_or_none()
    if there is not None:
        return _crossing(there)
    if mapping.epoch != seen:
        return NoCrossing("the mapping of the instance has changed meanwhile", is_over=False)
    if mapping.cell not in (source, target):
        return NoCrossing(f"the instance is in cell {mapping.cell}")
    if not epoch:
        if mapping.cell != source:
            return NoCrossing(f"the instance is in cell {mapping.cell}")
        if connection.execute(_REQUEST, {"of": mapping.request_id}).first() is not None:
            return NoCrossing("the request for the instance is not finished", is_over=False)
    epoch = epoch or mapping.epoch + 1
    values = {
        "move": move,
        "instance_uuid": instance,
        "source": source,
        "target": target,
        "epoch": epoch,
        "owner": owner,
    }
    connection.execute(sa.insert(crossings), values)
    raised = sa.update(instance_mappings).where(instance_mappings.c.instance_uuid == instance)
    connection.execute(raised.values(epoch=max(epoch, mapping.epoch)))
    return Crossing(move, instance, source, target, epoch, owner, mapping.cell, max(epoch, mapping.epoch))


_OF_INSTANCE = crossings.c.instance_uuid == instance_mappings.c.instance_uuid
_CROSSINGS: sa.Select[Any] = sa.select(
    crossings,
    instance_mappings.c.cell.label("mapped"),
    instance_mappings.c.epoch.label("mapped_epoch"),
    instance_mappings.c.deleted,
).outerjoin(instance_mappings, _OF_INSTANCE)
_OF_MOVE = _CROSSINGS.where(crossings.c.move == sa.bindparam("of"))
_MAPPING = (
    sa.select(instance_mappings)
    .where(instance_mappings.c.instance_uuid == sa.bindparam("of"))
    .with_for_update()
)
_REQUEST = sa.select(build_requests.c.request_id).where(build_requests.c.request_id == sa.bindparam("of"))


@short_read
def read_crossings(connection: Connection) -> dict[str, Crossing]:
    """Return all crossings by the uuid of the move."""
    return {row.move: _crossing(row) for row in connection.execute(_CROSSINGS)}


@short_read
def crossings_of(connection: Connection, instances: tuple[str, ...]) -> list[Crossing]:
    """Return the crossings of some instances."""
    return [
        _crossing(row)
        for some in in_batches(instances)
        for row in connection.execute(_OF_INSTANCES, {"uuids": some})
    ]


_OF_INSTANCES = _CROSSINGS.where(one_of(crossings.c.instance_uuid, "uuids"))


@transaction
def take_crossings(connection: Connection, owner: str) -> None:
    """Take the crossings whose owner is dead."""
    connection.execute(_TAKE, {"new_owner": owner})


@short_read
def has_free_crossings(connection: Connection) -> bool:
    """Return whether some crossing has no living owner."""
    return connection.execute(sa.select(crossings.c.move).where(_FREE).limit(1)).first() is not None


_FREE = crossings.c.owner.is_(None) | crossings.c.owner.not_in(holders())
_TAKE = sa.update(crossings).where(_FREE).values(owner=sa.bindparam("new_owner"))


@transaction
def switch_mapping(connection: Connection, crossing: Crossing, cell: str) -> bool:
    """Map the instance of a crossing to one of its cells; returns whether it is mapped there.

    An instance that has gone on by a later crossing, or back by a revert, stays mapped as it is.
    """
    columns = instance_mappings.c
    of_it = columns.instance_uuid == crossing.instance, columns.epoch == crossing.epoch
    changed = sa.update(instance_mappings).where(*of_it).values(cell=cell)
    return connection.execute(changed).rowcount > 0


@transaction
def turn_crossing(connection: Connection, crossing: Crossing, seen: int) -> int | None:
    """Raise the epoch of a crossing for a revert, once, and return it; None: the instance is deleted.

    ``seen``: the epoch that the arriving half has, of the crossing or of the last revert that has failed.
    """
    mapping = connection.execute(_MAPPING, {"of": crossing.instance}).one_or_none()
    there = connection.execute(_OF_MOVE, {"of": crossing.move}).one_or_none()
    if mapping is None or mapping.deleted or there is None:
        return None
    if there.epoch > seen:
        return int(there.epoch)
    epoch = max(int(mapping.epoch), seen) + 1
    connection.execute(sa.update(crossings).where(crossings.c.move == crossing.move).values(epoch=epoch))
    raised = sa.update(instance_mappings).where(instance_mappings.c.instance_uuid == crossing.instance)
    connection.execute(raised.values(epoch=epoch))
    return epoch


@transaction
def end_crossing(connection: Connection, crossing: Crossing) -> None:
    """Remove a crossing of which nothing is left to do.

    That of an instance that is being deleted stays: the deletion is told to both cells, and removes it.
    """
    mapping = connection.execute(_MAPPING, {"of": crossing.instance}).one_or_none()
    if mapping is None or not mapping.deleted:
        connection.execute(sa.delete(crossings).where(crossings.c.move == crossing.move))


def forget_crossings(connection: Connection, instances: Collection[str]) -> None:
    """Remove the crossings of instances of which nothing is left."""
    connection.execute(_FORGET, {"uuids": instances})


_FORGET = sa.delete(crossings).where(one_of(crossings.c.instance_uuid, "uuids"))


def _crossing(row: sa.Row[Any]) -> Crossing:
    return Crossing(
        row.move,
        row.instance_uuid,
        row.source,
        row.target,
        row.epoch,
        row.owner,
        row.mapped,
        row.mapped_epoch or 0,
        bool(row.deleted),
    )
