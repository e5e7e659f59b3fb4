"""The reports of hosts on moves: a target is ready, a guest was stopped, started, built or destroyed.

Each report names the attempt that it concerns. One that comes late, or twice, finds the move in a further
state and changes nothing.
"""

from collections.abc import Collection
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model import record
from roost.model.instance import AttemptKey, BuildResult, DestroyOrder, PowerResult
from roost.model.move import (
    ARRIVING,
    AT_REST,
    AT_SOURCE,
    AT_TARGET,
    CANCELLING,
    CLEANING,
    CONTINUING,
    DISCARDING,
    DONE,
    FAILED_MOVE,
    FREEING,
    GOING,
    LANDING,
    LEAVING,
    LIVE,
    OFF,
    ON_TARGET,
    ORDERED,
    PREPARING,
    RECEIVING,
    REFUSED,
    REQUESTED,
    RESTARTING,
    RESUMING,
    RETRYING,
    RETURNING,
    REVERTED,
    REVERTING,
    RUNS,
    SEEKING,
    SENDING,
    STARTING,
    STOPPED,
    STOPPING,
    SWITCHED,
    SWITCHING,
    UNCONFIRMED,
    Move,
    MoveRefused,
    MoveWork,
    TargetFailure,
)
from roost.model.record import BUILT, Attempt
from roost.state.cell_database.host_work import give_orders
from roost.state.cell_database.move_changes import (
    MOVE,
    end_of_target,
    enter,
    find_again,
    has_order,
    has_shown_life,
    keep_end,
    locked_instance,
    locked_move,
    lose,
    put_on,
    resume,
    return_to_source,
    way_back,
)
from roost.state.cell_database.move_halves import locked_half, put_into_cell
from roost.state.cell_database.move_rows import MOVES, carried_text, move_of
from roost.state.cell_database.moves import find_moves
from roost.state.cell_database.tables import moves
from roost.storage import entering, in_batches, one_of, one_of_constants, transaction

NOT_CONFIRMED = "the target has not asked within its time whether it may start the guest"

TIMED_OUT = "TimedOut"
"""The code of an attempt that took too long."""

TOO_OLD = "AgentTooOld"
"""The code of an attempt that ends because the agent of its host is too old."""

CAME_BACK = "the host has shown signs of life since it was said to be dead"

TOO_LONG = "the guest has not gone over within the time limit"

NOT_STOPPED = "the source has not stopped its guest within the time limit"


def confirm_target(connection: Connection, key: AttemptKey, host: str, at: float) -> bool | None:
    """Answer a host that has prepared an attempt and asks whether to start it; None: not yet.

    After a yes no time limit ends the attempt. A host that asks again gets the same answer.
    """
    move = _locked(connection, key.instance, key.attempt, host)
    if move is None or key.attempt == move.source.attempt:
        return False
    if move.kind == LIVE:
        return _may_land(connection, move, at)
    if move.state not in ON_TARGET:
        return False
    if move.side == LEAVING:
        return False
    proof = move.proof
    if (
        proof is not None
        and move.state == PREPARING
        and has_shown_life(connection, move.source.host, proof.stamp)
    ):
        _fail_target(connection, move, CAME_BACK, None, at, retryable=False)
        return False
    rests = move.at_source == AT_REST or (move.at_source == OFF and proof is not None)
    if move.state == STOPPED or (move.state == PREPARING and rests and move.side is None):
        enter(connection, move, STARTING, at)
        return True
    if move.state == PREPARING:
        # A guest that is stopped is ordered to stop too: somebody may have started it by hand.
        enter(connection, move, STOPPING, at, at_source=OFF if move.at_source == OFF else ORDERED)
    return True if move.state == STARTING else None


def _may_land(connection: Connection, move: Move, at: float) -> bool | None:
    """Answer the target of a live move, which is ready: None: the guest may come; True: the source has none.

    The row of an instance whose source was given up names the target already.
    """
    if move.state == RECEIVING:
        enter(connection, move, SWITCHING, at)
        return None
    if move.state in (SWITCHING, CANCELLING):
        return None
    return move.state in (LANDING, SWITCHED, CLEANING, FREEING)


def report_target(connection: Connection, result: BuildResult, at: float) -> Attempt | None:
    """Note the result of the attempt of a move; returns the attempt's end for the records.

    None: no move waits for the result.
    """
    move = _locked(connection, result.instance, result.attempt, result.host)
    if move is None or move.target is None or move.state not in ON_TARGET or move.side == LEAVING:
        return None
    if result.attempt != move.target.attempt:
        return None
    if move.state in GOING:
        return _take_landing(connection, move, result, at)
    if result.failure is not None:
        # The target's time is over because the source has taken it.
        waited = move.state == STOPPING and result.code == TIMED_OUT
        reason = NOT_STOPPED if waited else result.failure
        _fail_target(connection, move, reason, result.code, at, retryable=result.retryable and not waited)
        return end_of_target(move, record.FAILED, at, reason)
    if move.state != STARTING:
        # It was not told to start the guest: what runs there is not known to be alone.
        return None
    if move.side == ARRIVING:
        put_into_cell(connection, move, at)
        enter(connection, move, CLEANING, at, ends_as=DONE)
        return end_of_target(move, BUILT, at, None)
    return _switch(connection, move, at)


def _switch(connection: Connection, move: Move, at: float) -> Attempt:
    """Put an instance on the target of its move, where its guest runs."""
    assert move.target is not None
    put_on(connection, move, move.target, move.target.selection, at)
    enter(connection, move, SWITCHED, at)
    if move.confirms:
        enter(connection, msgspec.structs.replace(move, state=SWITCHED), CLEANING, at, ends_as=DONE)
    return end_of_target(move, BUILT, at, None)


def _take_landing(connection: Connection, move: Move, result: BuildResult, at: float) -> Attempt | None:
    """Note what the target of a guest that goes over says: it runs there, or has not arrived.

    The latter counts once the source has no guest any more; else that may still send it. A target that was
    given up is to destroy what it has: the instance is not put there.
    """
    assert move.target is not None
    if has_order(connection, move.target, move.instance):
        return None
    if result.failure is None:
        return _switch(connection, move, at)
    if move.state != LANDING:
        return None
    _fail_target(connection, move, result.failure, result.code, at, retryable=False)
    return end_of_target(move, record.FAILED, at, result.failure)


def report_power_of_move(connection: Connection, host: str, report: PowerResult, at: float) -> Attempt | None:
    """Note that a host has stopped or started the guest of a move, or could not.

    Returns the end of the target's attempt for the records; None: it goes on.
    """
    move = _locked(connection, report.instance, report.attempt, host)
    return None if move is None else _take_power(connection, move, report, at)


def _leave_source(connection: Connection, move: Move, report: PowerResult, at: float) -> Attempt | None:
    """Note what the source of a guest that goes over says: it runs on there, or the source has none.

    Returns as `report_power_of_move`.
    """
    assert move.target is not None
    if report.failure is not None:
        retryable = move.state == SWITCHING
        reason = f"the guest has not left its host: {report.failure}" if retryable else move.reason or ""
        _fail_target(connection, move, reason, None, at, orders=True, retryable=retryable)
        return end_of_target(move, record.FAILED, at, reason)
    gone = msgspec.structs.replace(move, at_source=AT_REST)
    if has_order(connection, move.target, move.instance):
        # It was given up, and says nothing any more.
        _fail_target(connection, gone, move.reason or "", None, at, retryable=False, at_source=AT_REST)
        return end_of_target(move, record.FAILED, at, move.reason)
    enter(connection, move, LANDING, at, at_source=AT_REST)
    return None


def _take_power(
    connection: Connection, move: Move, report: PowerResult, at: float, *, loses: bool = True
) -> Attempt | None:
    """Let a move go on by the result of an order; returns as `report_power_of_move`.

    ``loses``: a guest that is not started again is lost.
    """
    of_source, failure = report.attempt == move.source.attempt, report.failure
    awaited = (AT_SOURCE if of_source else AT_TARGET).get(move.state)
    if awaited in ("migrate", "cancel") and not report.runs:
        return _leave_source(connection, move, report, at)
    if awaited != ("start" if report.runs else "stop"):
        return None
    if failure is None:
        if move.state == RESUMING:
            return_to_source(connection, move, at)
        elif move.state == REVERTING:
            resume(connection, move, at)
        else:
            if move.state in (RESTARTING, CONTINUING):
                find_again(connection, move.instance, at)
            stops = move.state == STOPPING and move.at_source != OFF
            values = {"at_source": AT_REST} if stops else {}
            enter(connection, move, _AFTER_POWER[move.state], at, **values)
    elif move.state == STOPPING:
        reason = f"the source cannot stop its guest: {failure}"
        _fail_target(connection, move, reason, None, at, orders=True, retryable=False)
        return end_of_target(move, record.FAILED, at, reason)
    elif move.state in (REVERTING, RESUMING):
        of = "target cannot stop" if move.state == REVERTING else "source cannot start"
        to = SWITCHED if move.at_source == OFF else CONTINUING
        enter(connection, move, to, at, reason=f"the {of} its guest: {failure}", ends_as=None)
    else:
        if loses:
            lose(connection, move.instance, f"the guest could not be started again: {failure}", at)
        enter(connection, move, _AFTER_POWER[move.state], at)
    return None


_AFTER_POWER = {
    STOPPING: STOPPED,
    RESTARTING: RETURNING,
    CONTINUING: SWITCHED,
}
"""The next state of a move, once a host has stopped or started its guest as the state wants."""


@entering(MOVE)
def refuse_parts(
    connection: Connection, parts: tuple[MoveWork, ...], reason: str, at: float
) -> list[Attempt]:
    """Note that hosts cannot do their parts of moves; returns the ends of attempts for the records."""
    ended = []
    for part in parts:
        uuid, attempt, host = part.instance.uuid, part.instance.attempt, part.instance.host or ""
        move = _locked(connection, uuid, attempt, host)
        if move is None:
            continue
        if part.kind in ("build", "receive"):
            # Once it was told to start the guest, the host finds it, or builds it, as any version does.
            if move.state in UNCONFIRMED:
                _fail_target(connection, move, reason, TOO_OLD, at, orders=True)
                ended.append(end_of_target(move, record.FAILED, at, reason))
        elif part.kind in ("stop", "start"):
            told = PowerResult(uuid, attempt, part.kind == "start", reason)
            # It did nothing: the list of guests says whether the guest runs.
            if (end := _take_power(connection, move, told, at, loses=False)) is not None:
                ended.append(end)
    return ended


def note_moves_destroyed(connection: Connection, done: Collection[DestroyOrder], at: float) -> None:
    """Note that hosts have destroyed what they had of moved instances."""
    there: set[str] = set()
    for some in in_batches({each.instance for each in done}):
        there.update(connection.execute(_DESTROYING, {"uuids": some}).scalars())
    for each in sorted(done, key=lambda each: each.instance):
        move = _locked(connection, each.instance, each.attempt, each.host) if each.instance in there else None
        if move is None:
            continue
        of_source = each.attempt == move.source.attempt
        if (AT_SOURCE if of_source else AT_TARGET).get(move.state) == "destroy":
            if not of_source:
                keep_end(connection, move, "the move was reverted", REVERTED, at)
            enter(connection, move, FREEING, at)


_DESTROYING = sa.select(moves.c.instance_uuid).where(
    one_of(moves.c.instance_uuid, "uuids"), one_of_constants(moves.c.state, (CLEANING, DISCARDING))
)


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
        move = _locked(connection, key.instance, key.attempt)
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
        _fail_target(connection, move, reason, TIMED_OUT, at, orders=True, retryable=not waits)
        ended.append(end_of_target(move, record.FAILED, at, reason))
    return ended


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
        _fail_target(connection, move, reason, None, at, orders=True, retryable=False)
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


def fail_targets_on(connection: Connection, host: str, reason: str, code: str, at: float) -> list[Attempt]:
    """End the attempts of moves on a host that an operator has given up; returns their ends.

    A move whose source is given up, and whose instance runs elsewhere, goes on without it.
    """
    ended = []
    found = connection.execute(_ON_HOST, {"of_host": host}).scalars().all()
    for instance in found:
        move = _locked(connection, instance)
        if move is None:
            continue
        is_source = move.source.host == host and move.side != ARRIVING
        is_target = move.target is not None and move.target.host == host and move.side != LEAVING
        if move.target is not None and is_target and move.state in (SWITCHING, CANCELLING):
            # The guest may run on: the source says whether it does.
            give_orders([DestroyOrder(instance, move.target.attempt, host)], at)(connection)
            enter(connection, move, CANCELLING, at, reason=reason)
        elif is_target and move.state in ON_TARGET:
            # Without a guest on the source none can go to an alternate.
            _fail_target(connection, move, reason, code, at, orders=True, retryable=move.state != LANDING)
            ended.append(end_of_target(move, record.FAILED, at, reason))
        elif is_source and move.state == CLEANING:
            give_orders([DestroyOrder(instance, move.source.attempt, host)], at)(connection)
            enter(connection, move, FREEING, at, reason=reason)
        elif move.target is not None and is_target and move.state == DISCARDING:
            give_orders([DestroyOrder(instance, move.target.attempt, host)], at)(connection)
            keep_end(connection, move, reason, REVERTED, at)
            enter(connection, move, FREEING, at, reason=reason)
        elif is_source and move.state == RESUMING:
            enter(connection, move, CONTINUING, at, reason=reason, ends_as=None)
    return ended


_ON_HOST = (
    sa.select(moves.c.instance_uuid)
    .where(
        (moves.c.source_host == sa.bindparam("of_host")) | (moves.c.target_host == sa.bindparam("of_host")),
        one_of_constants(moves.c.state, (*ON_TARGET, CLEANING, DISCARDING, RESUMING)),
    )
    .order_by(moves.c.instance_uuid)
)


# Parts


def _fail_target(
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
    """End the attempt of an arriving half, which is locked. ``orders``: as of `_fail_target`."""
    assert move.target is not None and move.carried is not None
    if orders:
        give_orders([DestroyOrder(move.instance, move.target.attempt, move.target.host)], at)(connection)
    carried = msgspec.structs.replace(move.carried, failure=failure)
    enter(connection, move, REFUSED, at, reason=failure.reason, carried=carried_text(carried))


def _locked(
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
