"""The ends of attempts of moves by others than their hosts: time limits, aborts, hosts that are given up.

The hosts of an attempt that ends so are ordered to destroy what they have of it.
"""

from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model import record
from roost.model.instance import ACTIVE, POWERING_ON, AttemptKey, DestroyOrder
from roost.model.move import ARRIVING, LEAVING, Move, MoveRefused, TargetFailure
from roost.model.move_states import (
    CANCELLING,
    CLEANING,
    CONTINUING,
    DISCARDING,
    FAILED_MOVE,
    LANDING,
    OFF,
    ON_TARGET,
    REFUSED,
    REQUESTED,
    RESTARTING,
    RESUMING,
    RETRYING,
    RETURNING,
    REVERTING,
    RUNS,
    SEEKING,
    SENDING,
    STARTING,
    STOPPING,
    SWITCHED,
    SWITCHING,
    UNCONFIRMED,
)
from roost.model.record import Attempt
from roost.state.cell_database.history import enter_state
from roost.state.cell_database.host_work import give_orders, session_name
from roost.state.cell_database.move_changes import (
    MOVE,
    end_of_target,
    enter,
    has_order,
    keep_end,
    leave_target,
    leave_tidying,
    locked_instance,
    locked_move,
    lose,
    way_back,
)
from roost.state.cell_database.move_halves import locked_half
from roost.state.cell_database.move_rows import MOVES, SOURCE, carried_text, is_here, move_of
from roost.state.cell_database.moves import find_moves
from roost.state.cell_database.silent_hosts import AWAITING_MOVES
from roost.state.cell_database.tables import moves
from roost.state.leases import Stamp, read_stamps
from roost.storage import entering, one_of_constants, transaction

NOT_CONFIRMED = "the target has not asked within its time whether it may start the guest"

TIMED_OUT = "TimedOut"
"""The code of an attempt that took too long."""

TOO_LONG = "the guest has not gone over within the time limit"

NOT_STOPPED = "the source has not stopped its guest within the time limit"


@transaction
def targets_unconfirmed(connection: Connection) -> dict[AttemptKey, tuple[float, ...]]:
    """Return the attempts of moves that were not told to start their guest, and those that wait for one.

    Those that are to be sent to another cell have the time at which that was known to have no room.
    """
    return {
        AttemptKey(row.instance_uuid, row.target_attempt): (row.changed_at,) if row.state == SENDING else ()
        for row in connection.execute(_UNCONFIRMED)
    }


_UNCONFIRMED = sa.select(
    moves.c.instance_uuid, moves.c.target_attempt, moves.c.state, moves.c.changed_at
).where(one_of_constants(moves.c.state, (SENDING, *UNCONFIRMED, SWITCHING)))


@entering(MOVE)
def fail_targets(connection: Connection, keys: tuple[AttemptKey, ...], at: float) -> list[Attempt]:
    """End attempts of moves that have taken too long; returns their ends for the records.

    Their hosts are ordered to destroy what they have. A source that has not stopped its guest in time ends
    the move: another target would wait for it as well. A source whose guest goes over is told to end that.
    """
    ended = []
    for key in keys:
        move = locked_at(connection, key.instance, key.attempt)
        if move is None or key.attempt == move.source.attempt:
            continue
        if move.state == SWITCHING:
            enter(connection, move, CANCELLING, at, reason=TOO_LONG)
        if move.state not in (SENDING, *UNCONFIRMED):
            continue
        if move.side == LEAVING:
            # The guest rests, and the other hosts to be tried are in the same cell.
            assert move.target is not None
            there = move.target.selection.cell
            waits, reason = move.at_source not in (RUNS, OFF), f"cell {there} has not answered in time"
            if move.state == STOPPING:
                reason = NOT_STOPPED
        else:
            waits = move.state == STOPPING
            reason = NOT_STOPPED if waits else NOT_CONFIRMED
        fail_target(connection, move, reason, TIMED_OUT, at, orders=True, retryable=not waits)
        ended.append(end_of_target(move, record.FAILED, at, reason))
    return ended


@transaction
def restarts_awaited(connection: Connection) -> dict[AttemptKey, Stamp]:
    """Return the guests that sources of moves are to start again, each with the stamp of its host."""
    found = connection.execute(_RESTARTING).all()
    stamps = read_stamps(connection, {session_name(row.source_host) for row in found})
    return {
        AttemptKey(row.instance_uuid, row.source_attempt): stamps.get(session_name(row.source_host), ())
        for row in found
    }


_RESTARTING = sa.select(moves.c.instance_uuid, moves.c.source_attempt, moves.c.source_host).where(
    moves.c.state == RESTARTING, is_here(SOURCE)
)


@entering(MOVE)
def end_restarts(connection: Connection, keys: tuple[AttemptKey, ...], at: float) -> list[AttemptKey]:
    """End moves whose sources do not start the guest again, as they do not answer; returns theirs.

    From then on the start is an order of the instance, like one by its user: the host carries it out when it
    is back, and an instance of a host that is dead can be evacuated.
    """
    ended = []
    for key in keys:
        move = locked_at(connection, key.instance, key.attempt)
        if move is None or move.state != RESTARTING or key.attempt != move.source.attempt:
            continue
        enter_state(connection, [key.instance], POWERING_ON, at, SOURCE_SILENT)
        reason = f"{move.reason}; {SOURCE_SILENT}" if move.reason else SOURCE_SILENT
        enter(connection, move, RETURNING, at, reason=reason)
        ended.append(key)
    return ended


SOURCE_SILENT = "its host does not answer: it starts the guest again when it is back"
"""Why a move has ended whose source was to start the guest again, and why its instance is to be started."""


class AbortedMove(msgspec.Struct, frozen=True):
    """A move that was aborted, as it is then. ``ended``: the end of its attempt, for the records."""

    move: Move
    ended: Attempt | None = None


@entering(MOVE)
def abort_move(connection: Connection, uuid: str, reason: str, at: float) -> AbortedMove | MoveRefused | None:
    """Abort a move: its instance stays on the source. None: the cell has no such move.

    A target that was told to start the guest is beyond it: nobody else can know that no guest starts there.
    A move whose instance stays on the source anyway is returned as it is. So is one whose source is told to
    keep a guest that may have gone.
    """
    move = locked_move(connection, uuid)
    if move is None:
        return None
    ended = None
    if move.state in (REQUESTED, SEEKING, SENDING, RETRYING):
        if move.state == SENDING:
            keep_end(connection, move, reason, record.FAILED, at)
        enter(connection, move, way_back(move), at, reason=reason)
    elif move.state in UNCONFIRMED:
        fail_target(connection, move, reason, None, at, orders=True, retryable=False)
        ended = end_of_target(move, record.FAILED, at, reason)
    elif move.state == SWITCHING:
        enter(connection, move, CANCELLING, at, reason=reason)
    elif move.state not in (CANCELLING, RESTARTING, RETURNING, FAILED_MOVE):
        return MoveRefused(_TOO_LATE.get(move.state, f"the move is {move.state}"))
    return AbortedMove(find_moves((uuid,))(connection)[uuid], ended)


_TOO_LATE = {
    LANDING: "the guest has left the source",
    STARTING: "the target was told to start the guest; revert the move once the instance runs there",
    SWITCHED: "the instance runs on the target; revert the move, or confirm it",
}
"""By state, why a move cannot be aborted."""


def end_moves_on(connection: Connection, host: str, reason: str, code: str, at: float) -> list[Attempt]:
    """Let the moves of a host that an operator has given up go on without it; returns the ends of attempts.

    Nobody waits for what it has to destroy: moves that only tidy up there end.
    """
    ended = go_on_without(connection, host, reason, code, at)
    for instance in connection.execute(_TIDYING, {"of_host": host}).scalars().all():
        move = locked_at(connection, instance)
        if move is not None:
            leave_tidying(connection, move, host, reason, at)
    return ended


_TIDYING = (
    sa.select(moves.c.instance_uuid)
    .where(
        (moves.c.source_host == sa.bindparam("of_host")) | (moves.c.target_host == sa.bindparam("of_host")),
        one_of_constants(moves.c.state, (CLEANING, DISCARDING)),
    )
    .order_by(moves.c.instance_uuid)
)


def go_on_without(connection: Connection, host: str, reason: str, code: str, at: float) -> list[Attempt]:
    """Let moves go on that wait for a host on which no guest runs; returns the ends of attempts.

    Those whose instance ran there, and is to be evacuated, are ended by
    `roost.state.cell_database.moves.begin_move`.
    """
    ended: list[Attempt] = []
    found = {uuid for query in _AWAITING for uuid in connection.execute(query, {"hosts": [host]}).scalars()}
    for instance in sorted(found):
        move = locked_at(connection, instance)
        if move is None or move.stays:
            continue
        if move.target is not None and move.target.host == host and move.side != LEAVING:
            ended += _without_target(connection, move, reason, code, at)
        elif move.source.host == host and move.side != ARRIVING and move.state == RESUMING:
            enter(connection, move, CONTINUING, at, reason=reason, ends_as=None)
    return ended


_AWAITING = tuple(query.with_only_columns(moves.c.instance_uuid) for query in AWAITING_MOVES)


def _without_target(
    connection: Connection, move: Move, reason: str, code: str, at: float
) -> tuple[Attempt, ...]:
    assert move.target is not None
    if move.state in (SWITCHING, CANCELLING):
        # The guest may run on: the source says whether it does.
        if not has_order(connection, move.target, move.instance):
            order = DestroyOrder(move.instance, move.target.attempt, move.target.host)
            give_orders([order], at)(connection)
            enter(connection, move, CANCELLING, at, reason=reason)
    elif move.state in ON_TARGET:
        # Without a guest on the source none can go to an alternate.
        fail_target(connection, move, reason, code, at, orders=True, retryable=move.state != LANDING)
        return (end_of_target(move, record.FAILED, at, reason),)
    elif move.state == REVERTING:
        leave_target(connection, move, reason, at)
    elif move.state == CONTINUING:
        # A user may revert the move once more, or confirm it: then the instance can be evacuated.
        locked = locked_instance(connection, move.instance)
        if locked is not None and locked.state == ACTIVE:
            lose(connection, move.instance, reason, at)
        enter(connection, move, SWITCHED, at, reason=reason)
    return ()


# Parts


def fail_target(
    connection: Connection,
    move: Move,
    reason: str,
    code: str | None,
    at: float,
    *,
    orders: bool = False,
    retryable: bool = True,
    **values: Any,
) -> None:
    """End the attempt of a move. ``orders``: the host has not said that nothing of it is left. ``values``:
    further columns.

    Of a move to another cell each half is ended in its own: the leaving one keeps the end of the attempt, the
    arriving one orders the host to destroy.
    """
    assert move.target is not None
    if move.side == ARRIVING:
        end_arrival(connection, move, TargetFailure(reason, code, retryable), at, orders=orders)
        return
    keep_end(connection, move, reason, record.FAILED, at, code)
    if orders and move.side is None:
        give_orders([DestroyOrder(move.instance, move.target.attempt, move.target.host)], at)(connection)
    enter(connection, move, RETRYING if retryable else way_back(move), at, reason=reason, **values)


def end_arrival(
    connection: Connection, move: Move, failure: TargetFailure, at: float, *, orders: bool = True
) -> None:
    """End the attempt of an arriving half, which is locked. ``orders``: as of `fail_target`."""
    assert move.target is not None and move.carried is not None
    if orders:
        give_orders([DestroyOrder(move.instance, move.target.attempt, move.target.host)], at)(connection)
    carried = msgspec.structs.replace(move.carried, failure=failure)
    enter(connection, move, REFUSED, at, reason=failure.reason, carried=carried_text(carried))


def locked_at(
    connection: Connection, instance: str, attempt: int | None = None, host: str | None = None
) -> Move | None:
    """Lock an instance and its move that is under way; None if it has none, or none with a place of a host
    and an attempt."""
    locked = locked_instance(connection, instance)
    if locked is None:
        move = locked_half(connection, instance)
    else:
        row = connection.execute(_MOVE, {"key": locked.move}).one_or_none() if locked.move else None
        move = None if row is None else move_of(row)
    if move is None:
        return None
    places = [place for place in (move.source, move.target) if place is not None]
    if attempt is not None and not any(
        place.attempt == attempt and host in (None, place.host) for place in places
    ):
        return None
    return move


_MOVE = MOVES.where(moves.c.uuid == sa.bindparam("key")).with_for_update()
