"""Guests that hosts report and their cell does not know.

They are stored for the audit as long as the host reports them. Guests whose names cannot be stored are only
logged.
"""

from collections.abc import Collection, Mapping

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.text import is_storable
from roost.model.vocabulary import MAX_INT
from roost.state.cell_database.reported import MAX_UUID
from roost.state.cell_database.tables import unknown_guests
from roost.storage import in_batches, transaction


class UnknownGuest(msgspec.Struct, frozen=True, order=True):
    """A guest of an instance's attempt on a host. ``since``: when it was first reported, in seconds since the
    epoch."""

    instance: str
    attempt: int
    host: str
    since: float


@transaction
def instances_with_unknown_guests(connection: Connection, most: int, after: str = "") -> list[str]:
    """Return the uuids of instances that have unknown guests: up to ``most`` after one of them, in order."""
    column = unknown_guests.c.instance_uuid
    query = sa.select(column).distinct().where(column > after).order_by(column).limit(most)
    return list(connection.execute(query).scalars())


def unknown_guests_of(connection: Connection, uuids: Collection[str]) -> list[UnknownGuest]:
    """Return the unknown guests of some instances, in order."""
    return sorted(
        _guest(row)
        for some in in_batches(uuids)
        for row in connection.execute(_ALL.where(unknown_guests.c.instance_uuid.in_(some)))
    )


def note_unknown_guests(
    connection: Connection, found: Mapping[str, Collection[tuple[str, int]]], at: float
) -> None:
    """Store the unknown guests of hosts. ``found``: host -> all its unknown guests, as uuid and attempt."""
    there: dict[tuple[str, str, int], UnknownGuest] = {}
    for some in in_batches(found):
        for row in connection.execute(_ALL.where(unknown_guests.c.host.in_(some))):
            there[row.host, row.instance_uuid, row.attempt] = _guest(row)
    said = {
        (host, uuid, attempt)
        for host, guests in found.items()
        for uuid, attempt in guests
        if is_storable(uuid, MAX_UUID) and 0 <= attempt <= MAX_INT
    }
    gone = [
        {"of_host": host, "key": uuid, "of_attempt": attempt} for host, uuid, attempt in there.keys() - said
    ]
    if gone:
        connection.execute(FORGET_UNKNOWN_GUEST, gone)
    new = [
        {"host": host, "instance_uuid": uuid, "attempt": attempt, "since": at}
        for host, uuid, attempt in sorted(said - there.keys())
    ]
    if new:
        connection.execute(sa.insert(unknown_guests), new)


_ALL = sa.select(unknown_guests)
FORGET_UNKNOWN_GUEST = sa.delete(unknown_guests).where(
    unknown_guests.c.host == sa.bindparam("of_host"),
    unknown_guests.c.instance_uuid == sa.bindparam("key"),
    unknown_guests.c.attempt == sa.bindparam("of_attempt"),
)


def _guest(row: "sa.Row[tuple[object, ...]]") -> UnknownGuest:
    return UnknownGuest(row.instance_uuid, row.attempt, row.host, row.since)
