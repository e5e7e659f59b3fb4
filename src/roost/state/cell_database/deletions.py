"""The end of instances: deleted by users, destroyed by hosts, given up by operators, removed from the cell.

No time limit ends an attempt whose guest may have been started, and no report ends an instance: only an
operator who knows that the machine is off, or its disk lost, can say that no guest of it runs.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model import record
from roost.model.instance import (
    ABANDONED,
    ASSIGNED,
    DELETING,
    DESTROYED,
    FAILED,
    OFFLOADED,
    ON_ITS_HOST,
    SHELVING,
    STARTING,
    WITH_GUEST,
    AttemptKey,
    DestroyOrder,
    Requester,
)
from roost.model.record import Attempt
from roost.model.text import clean_text
from roost.state.cell_database.arrivals import ABOVE_ALL, raise_fences
from roost.state.cell_database.building import HOST_GONE, UNDER_WAY, fail_attempts, recorded_end
from roost.state.cell_database.history import NEW_LINE, keep_histories, line, with_line
from roost.state.cell_database.host_work import acknowledge, give_orders
from roost.state.cell_database.move_changes import end_moves_of, send_back
from roost.state.cell_database.move_ends import end_moves_on
from roost.state.cell_database.move_halves import end_halves_of, leave_to_other_cells
from roost.state.cell_database.rows import PRESENT, Row
from roost.state.cell_database.shelves import (
    HOST_GIVEN_UP,
    ask_another_host,
    note_offloaded,
    offload_without_host,
    take_off_shelf,
)
from roost.state.cell_database.state_changes import note_changes
from roost.state.cell_database.tables import build_attempts, instances
from roost.storage import entering, in_batches, one_of

GONE = "gone"
"""In place of a state that instances enter: the instance was removed."""

DELETED = "the instance was deleted before its build had ended"
"""The reason of an attempt that is abandoned."""

MOVE_OF_DELETED = "the instance was deleted"
"""The reason of a move that a deletion has ended."""

NOT_ANSWERED = "the deletion goes on without the host, which does not answer"
"""The reason in the history of an instance that its host has not destroyed."""


class Deleted(msgspec.Struct, frozen=True):
    """The result of a deletion.

    ``here``: the instances that are in the cell: their hosts are to destroy them. ``ended``: the ends of
    attempts for the records.
    """

    here: frozenset[str]
    ended: list[Attempt]


class DeleteInstances(msgspec.Struct, frozen=True):
    """Mark instances for deletion. An instance on its way to the cell cannot arrive any more.

    An instance without a host counts as destroyed already.
    """

    uuids: tuple[str, ...]
    at: float
    cell: str

    @property
    def enters(self) -> Collection[str]:
        return (DELETING, DESTROYED)

    @property
    def keys(self) -> Collection[str]:
        return self.uuids

    def __call__(self, connection: Connection) -> Deleted:
        return self.together(connection, (self,))[0]

    @classmethod
    def together(cls, connection: Connection, works: "Sequence[DeleteInstances]") -> list[Deleted]:
        at = max(work.at for work in works)
        told = line(DELETING, at)
        also = line(DESTROYED, at)
        uuids = [uuid for work in works for uuid in work.uuids]
        rows = _rows_of(connection, uuids)
        missing = [uuid for uuid in uuids if uuid not in rows]
        if missing:
            raise_fences(connection, dict.fromkeys(missing, ABOVE_ALL), at)
            # Some may have arrived before the fence was raised.
            rows |= _rows_of(connection, missing)
        moved = end_moves_of(connection, rows.values(), at, MOVE_OF_DELETED)
        shelved = [row.uuid for row in rows.values() if row.shelf is not None and row.state not in _ENDING]
        if shelved:
            take_off_shelf(connection, shelved)
            rows |= _rows_of(connection, shelved)
        if missing:
            end_halves_of(connection, missing, at, MOVE_OF_DELETED)
        for some in in_batches(rows):
            connection.execute(_MARK, {"uuids": some, "now": at, "line": told, "also": also})
        marked = [row for row in rows.values() if row.state not in _ENDING]
        note_changes(connection, [row.uuid for row in marked], told)
        note_changes(connection, [row.uuid for row in marked if row.host is None], also)
        return [work.found(rows, moved) for work in works]

    def found(self, rows: Mapping[str, Row], moved: Mapping[str, Attempt]) -> Deleted:
        """Return the result of this deletion. ``rows``: the instances that are here, as they were before.

        ``moved``: the ends of attempts of their moves, by instance.
        """
        here = [rows[uuid] for uuid in dict.fromkeys(self.uuids) if uuid in rows]
        ended = [
            recorded_end(row, self.cell, record.ABANDONED, self.at, DELETED)
            for row in here
            if row.state in UNDER_WAY
        ]
        ended += [moved[row.uuid] for row in here if row.uuid in moved]
        return Deleted(frozenset(row.uuid for row in here), ended)


_ENDING = (DELETING, DESTROYED)
_ROWS = (
    sa.select(*PRESENT).where(one_of(instances.c.uuid, "uuids")).order_by(instances.c.uuid).with_for_update()
)
_MARK = (
    sa.update(instances)
    .where(one_of(instances.c.uuid, "uuids"), instances.c.state.not_in(_ENDING))
    .values(
        state=sa.case((instances.c.host.is_(None), DESTROYED), else_=DELETING),
        owner=None,
        changed_at=sa.bindparam("now"),
        history=with_line(
            NEW_LINE + sa.case((instances.c.host.is_(None), sa.bindparam("also", type_=sa.Text)), else_="")
        ),
    )
)


def _rows_of(connection: Connection, uuids: Sequence[str]) -> dict[str, Row]:
    """Lock and return the present attempts of the instances that are here."""
    return {row.uuid: row for some in in_batches(uuids) for row in connection.execute(_ROWS, {"uuids": some})}


@entering(DESTROYED, OFFLOADED)
def note_destroyed(connection: Connection, done: tuple[DestroyOrder, ...], at: float) -> None:
    """Note that a host has destroyed its guests of some attempts: orders are acknowledged, deletions go on.

    A host that is not the instance's, or an attempt that is not the present one, ends no deletion.
    """
    acknowledge(connection, done)
    note_offloaded(connection, done, at)
    of_guests = {(each.instance, each.attempt, each.host) for each in done}
    for some in in_batches(each.instance for each in done):
        deleting = connection.execute(_DELETING, {"uuids": some}).all()
        ended = [row.uuid for row in deleting if (row.uuid, row.attempt, row.host) in of_guests]
        if ended:
            told = line(DESTROYED, at)
            connection.execute(_DESTROYED, {"uuids": ended, "now": at, "line": told})
            note_changes(connection, ended, told)


_DELETING = (
    sa.select(instances.c.uuid, instances.c.attempt, instances.c.host)
    .where(one_of(instances.c.uuid, "uuids"), instances.c.state == DELETING)
    .order_by(instances.c.uuid)
    .with_for_update()
)
_DESTROYED = (
    sa.update(instances)
    .where(one_of(instances.c.uuid, "uuids"))
    .values(state=DESTROYED, owner=None, changed_at=sa.bindparam("now"), history=with_line(NEW_LINE))
)


@entering(DESTROYED, DELETING)
def end_deletions(connection: Connection, keys: tuple[AttemptKey, ...], at: float) -> list[AttemptKey]:
    """Let deletions go on without their hosts, which do not answer; returns the deletions that go on.

    The order to destroy stays: a host that comes back is not up before it has carried it out. What is kept of
    a shelved instance is removed by another host that can.
    """
    gone = []
    told = line(DESTROYED, at, NOT_ANSWERED)
    for key in keys:
        deleting = (
            instances.c.uuid == key.instance,
            instances.c.attempt == key.attempt,
            instances.c.state == DELETING,
        )
        row = connection.execute(sa.select(instances.c.host).where(*deleting).with_for_update()).one_or_none()
        if row is not None and (other := ask_another_host(connection, key.instance, row.host)) is not None:
            also = line(DELETING, at, f"host {row.host} does not answer: host {other} removes what is kept")
            of_it = instances.c.uuid == key.instance
            values = {"changed_at": at, "history": with_line(also)}
            connection.execute(sa.update(instances).where(of_it).values(**values))
            note_changes(connection, [key.instance], also)
            gone.append(key)
        elif row is not None:
            values = {
                "state": DESTROYED,
                "owner": None,
                "changed_at": at,
                "history": with_line(told),
            }
            connection.execute(sa.update(instances).where(*deleting).values(**values))
            note_changes(connection, [key.instance], told)
            give_orders([DestroyOrder(key.instance, key.attempt, row.host)], at)(connection)
            gone.append(key)
    return gone


class GivenUp(msgspec.Struct, frozen=True):
    """The ended instances by uuid, and the ends of attempts for the records."""

    instances: frozenset[str]
    ended: list[Attempt]


@entering(FAILED, ABANDONED, DESTROYED, OFFLOADED, DELETING)
def give_up_on_host(
    connection: Connection,
    *,
    host: str,
    reason: str,
    at: float,
    cell: str,
    only: str | None = None,
    by: Requester | None = None,
    states: tuple[str, ...] = ON_ITS_HOST,
) -> GivenUp:
    """End the instances on a host for a ``reason``, or one of them, ``only``. ``by``: the requester.

    An attempt that has not ended fails, so that another host is tried. An instance that ran is abandoned: its
    claim is freed and it is in error. A deletion goes on. The host is ordered to destroy all guests, in case
    it comes back. An instance whose move waits to be confirmed goes back to the source, which has its guest,
    and one that a host in another cell may have started is left to that.
    """
    there = [instances.c.host == host, instances.c.state.in_(states)]
    if only is not None:
        there.append(instances.c.uuid == only)
    rows: Sequence[Row] = connection.execute(sa.select(*PRESENT).where(*there).with_for_update()).all()
    back = send_back(connection, rows, at, reason) | leave_to_other_cells(connection, rows, at)
    rows = [row for row in rows if row.uuid not in back]
    moved = end_moves_of(connection, rows, at, reason)
    by_state: dict[str, list[AttemptKey]] = {}
    for row in rows:
        by_state.setdefault(row.state, []).append(AttemptKey(row.uuid, row.attempt))
    building = (*by_state.get(ASSIGNED, ()), *by_state.get(STARTING, ()))
    ran = [key for state in WITH_GUEST if state != SHELVING for key in by_state.get(state, ())]
    failing = fail_attempts(building, reason, at, cell, (ASSIGNED, STARTING), HOST_GONE, by)
    ended = [*failing(connection), *moved.values()]
    told = line(ABANDONED, at, reason, HOST_GONE, by=by)
    for key in ran:
        values = {
            "state": ABANDONED,
            "reason": clean_text(reason),
            "owner": None,
            "history": with_line(told),
        }
        of_it = instances.c.uuid == key.instance
        connection.execute(sa.update(instances).where(of_it).values(**values, changed_at=at))
    note_changes(connection, [key.instance for key in ran], told)
    given = [DestroyOrder(key.instance, key.attempt, host) for key in ran]
    give_orders(given, at)(connection)
    deleting = tuple(by_state.get(DELETING, ()))
    end_deletions(deleting, at)(connection)
    shelving = by_state.get(SHELVING, [])
    offload_without_host(connection, shelving, host, at, HOST_GIVEN_UP)
    if only is None:
        ended += end_moves_on(connection, host, reason, HOST_GONE, at)
    return GivenUp(frozenset(key.instance for key in (*building, *ran, *deleting, *shelving)) | back, ended)


@entering(GONE)
def forget_destroyed(connection: Connection, uuids: tuple[str, ...], at: float) -> None:
    """Remove destroyed instances after their claims were freed. They cannot come back.

    Their histories are kept.
    """
    for some in in_batches(uuids):
        # Locked: of two conductors that forget an instance at once, the second must not find it.
        gone = connection.execute(_GONE, {"uuids": some}).scalars().all()
        if gone:
            raise_fences(connection, dict.fromkeys(gone, ABOVE_ALL), at)
            keep_histories(connection, gone, at)
            connection.execute(_FORGET_ATTEMPTS, {"uuids": gone})
            connection.execute(_FORGET, {"uuids": gone})


_GONE = (
    sa.select(instances.c.uuid)
    .where(one_of(instances.c.uuid, "uuids"), instances.c.state == DESTROYED)
    .order_by(instances.c.uuid)
    .with_for_update()
)
_FORGET_ATTEMPTS = sa.delete(build_attempts).where(one_of(build_attempts.c.instance_uuid, "uuids"))
_FORGET = sa.delete(instances).where(one_of(instances.c.uuid, "uuids"))
