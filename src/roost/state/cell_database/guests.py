"""The guests that hosts report, compared with the instances that run there.

Nothing is destroyed here: a guest that the cell does not know is noted for the audit, as long as the host
reports it, and left alone. Guests whose names cannot be stored are only logged.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ACTIVE, LOST, MOVING, ON_ITS_HOST, POWERING_OFF, REBUILDS, STOPPED
from roost.model.text import is_storable
from roost.model.vocabulary import MAX_INT
from roost.state.cell_database.history import enter_state
from roost.state.cell_database.move_rows import attempts_of_moves, resting
from roost.state.cell_database.reported import MAX_UUID
from roost.state.cell_database.tables import instances, unknown_guests
from roost.storage import in_batches, one_of, one_of_constants, transaction

VANISHED = "its host says that the guest is not there"
"""The reason of an instance that is lost."""

RUNS_AGAIN = "its host says that the guest runs, which is to be stopped"
"""The reason of an instance that is stopped again."""


@transaction
def expected_guests(connection: Connection, host: str) -> dict[str, int]:
    """Return the attempts of the instances that run on a host: uuid -> attempt. Lost ones are left out."""
    query = sa.select(instances.c.uuid, instances.c.attempt).where(
        instances.c.state == ACTIVE, instances.c.host == host
    )
    return {row.uuid: row.attempt for row in connection.execute(query)}


class Compared(msgspec.Struct, frozen=True):
    """The result of a comparison: uuids of instances.

    ``lost``: their guest is missing now. ``found``: the guest of a lost instance is there again.
    ``awake``: the guest of a stopped instance runs. ``unknown``: guests of unknown instances or attempts.
    """

    lost: frozenset[str]
    found: frozenset[str]
    awake: frozenset[str]
    unknown: frozenset[str]


class GuestsReported(msgspec.Struct, frozen=True):
    """Store the guests that run on a host: uuid -> attempt.

    An active instance of the host without its guest is lost; a lost one whose guest runs is active again. A
    stopped one whose guest runs is stopped again, as its user's word stands.
    """

    host: str
    guests: Mapping[str, int]
    at: float

    @property
    def keys(self) -> Collection[str]:
        return (self.host,)

    def __call__(self, connection: Connection) -> Compared:
        return self.together(connection, (self,))[0]

    @classmethod
    def together(cls, connection: Connection, works: "Sequence[GuestsReported]") -> list[Compared]:
        known: defaultdict[str, dict[tuple[str, int], str]] = defaultdict(dict)
        reported = {work.host: work.guests for work in works}
        for some in in_batches(work.host for work in works):
            rows = connection.execute(_ON_HOSTS, {"hosts": some}).all()
            # A move stops guests: one that is not there is not lost.
            stopped = resting(connection, [row.move for row in rows if row.move and row.state == ACTIVE])
            for row in rows:
                rests = row.state == ACTIVE and row.move in stopped
                # One that moves is looked at again when it has.
                rests |= row.state == STOPPED and row.move is not None
                known[row.host][row.uuid, row.attempt] = MOVING if rests else row.state
                before = reported[row.host].get(row.uuid, row.attempt)
                if row.state in REBUILDS and before < row.attempt:
                    # The guest that is there until the new one is made.
                    known[row.host][row.uuid, before] = MOVING
            for host, uuid, attempt in attempts_of_moves(connection, some):
                known[host].setdefault((uuid, attempt), MOVING)
        compared = [work.compared(known[work.host]) for work in works]
        at = max(work.at for work in works)
        enter_state(connection, [uuid for each in compared for uuid in each.lost], LOST, at, VANISHED)
        enter_state(connection, [uuid for each in compared for uuid in each.found], ACTIVE, at)
        awake = [uuid for each in compared for uuid in each.awake]
        enter_state(connection, awake, POWERING_OFF, at, RUNS_AGAIN)
        stray = {
            work.host: [key for key in work.guests.items() if key not in known[work.host]] for work in works
        }
        note_unknown_guests(connection, stray, at)
        return compared

    def compared(self, known: Mapping[tuple[str, int], str]) -> Compared:
        """Compare the report with the attempts of the cell. ``known``: (uuid, attempt) -> state."""
        running = {*self.guests.items()}
        return Compared(
            lost=frozenset(key[0] for key, state in known.items() if state == ACTIVE and key not in running),
            found=frozenset(key[0] for key, state in known.items() if state == LOST and key in running),
            awake=frozenset(key[0] for key, state in known.items() if state == STOPPED and key in running),
            unknown=frozenset(uuid for uuid, attempt in running if (uuid, attempt) not in known),
        )


_ON_HOSTS = (
    sa.select(instances.c.host, instances.c.uuid, instances.c.attempt, instances.c.state, instances.c.move)
    .where(one_of_constants(instances.c.state, ON_ITS_HOST), one_of(instances.c.host, "hosts"))
    .order_by(instances.c.uuid)
    .with_for_update()
)


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
