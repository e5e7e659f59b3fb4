"""The work of conductors on instances: failed ones go to another host or, in the end, in error.

Each instance that wants work has one owner at a time. Destroyed instances are work too: their claims are
freed, then `roost.state.cell_database.deletions.forget_destroyed` removes them.
"""

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import (
    ABANDONED,
    ASSIGNED,
    DESTROYED,
    ERROR,
    FAILED,
    OFFLOADED,
    UNSHELVING,
    AttemptKey,
    Instance,
)
from roost.model.spec import Selection
from roost.model.text import clean_text
from roost.state.cell_database.history import line, line_of_attempt, with_line
from roost.state.cell_database.rows import INSTANCES, alternates_text, instance_of, selection_text
from roost.state.cell_database.state_changes import note_changes
from roost.state.cell_database.tables import instances
from roost.state.leases import holders
from roost.storage import entering, in_batches, one_of, one_of_constants, short_read, transaction

FOR_CONDUCTORS = (FAILED, ABANDONED, DESTROYED, OFFLOADED, UNSHELVING)
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


@entering(ASSIGNED)
def reassign_instance(
    connection: Connection,
    *,
    key: AttemptKey,
    selection: Selection,
    alternates: tuple[Selection, ...],
    at: float,
    owner: Ownership | None = None,
) -> bool:
    """Give an instance whose attempt failed to another host; returns whether its owner still had it."""
    to, attempt = selection, key.attempt + 1
    told = line_of_attempt(at, attempt, to.host, to.node, to.ordinal)
    moved = (
        sa.update(instances)
        .where(*owned(key, FAILED, owner))
        .values(
            state=ASSIGNED,
            host=to.host,
            node=to.node,
            attempt=attempt,
            alternates=alternates_text(alternates),
            selection=selection_text(to),
            reason=None,
            owner=None,
            began=at,
            changed_at=at,
            history=with_line(told),
        )
    )
    return _changed(connection, moved, key, told)


@entering(ABANDONED)
def abandon_instance(
    connection: Connection,
    *,
    key: AttemptKey,
    reason: str,
    at: float,
    owner: Ownership | None = None,
    state: str = FAILED,
) -> bool:
    """Make no further attempt for an instance whose attempt failed; returns whether its owner still had it.

    ``state``: `FAILED`, or `UNSHELVING` of a shelved instance for which no host was found.

    Its claim is freed after that. In this order no conductor can mistake a consumer that was freed for one
    whose claim is to be moved.
    """
    told = line(ABANDONED, at, reason)
    ended = (
        sa.update(instances)
        .where(*owned(key, state, owner))
        .values(
            state=ABANDONED,
            alternates="[]",
            reason=clean_text(reason),
            changed_at=at,
            history=with_line(told),
        )
    )
    return _changed(connection, ended, key, told)


def _changed(connection: Connection, update: sa.Update, key: AttemptKey, told: str) -> bool:
    """Execute an update of one instance, and log its state change. Returns whether the update found it."""
    found = connection.execute(update).rowcount > 0
    if found:
        note_changes(connection, [key.instance], told)
    return found


def owned(key: AttemptKey, state: str, owner: Ownership | None) -> list[sa.ColumnElement[bool]]:
    """Return the conditions of an instance's row: an attempt in a state, which its owner still has."""
    found = [
        instances.c.uuid == key.instance,
        instances.c.attempt == key.attempt,
        instances.c.state == state,
    ]
    if owner is not None:
        found += [instances.c.owner == owner.holder, instances.c.owner_epoch == owner.epoch]
    return found


@entering(ERROR)
def put_in_error(connection: Connection, uuids: tuple[str, ...], at: float) -> None:
    """Put abandoned instances in error, after their claims were freed. Shelved ones stay as they are."""
    values: dict[str, object] = {
        "state": ERROR,
        "alternates": "[]",
        "selection": None,
        "owner": None,
        "move": None,
    }
    told = line(ERROR, at)
    values["history"] = with_line(told)
    for some in in_batches(uuids):
        abandoned = connection.execute(_ABANDONED, {"uuids": some}).scalars().all()
        if abandoned:
            these = instances.c.uuid.in_(abandoned)
            connection.execute(sa.update(instances).where(these).values(**values, changed_at=at))
            note_changes(connection, abandoned, told)


@transaction
def find_in_error(connection: Connection, uuids: tuple[str, ...]) -> list[str]:
    """Return which of the named instances are in error: their claims were freed before."""
    return [
        uuid
        for some in in_batches(uuids)
        for uuid in connection.execute(_IN_ERROR, {"uuids": some}).scalars()
    ]


_NAMED = one_of(instances.c.uuid, "uuids")
_IN_ERROR = sa.select(instances.c.uuid).where(_NAMED, instances.c.state == ERROR)
_ABANDONED = (
    sa.select(instances.c.uuid)
    .where(_NAMED, instances.c.state == ABANDONED, instances.c.shelf.is_(None))
    .order_by(instances.c.uuid)
    .with_for_update()
)
