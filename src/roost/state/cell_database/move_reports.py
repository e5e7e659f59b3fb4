"""The reports of hosts on moves: a target is ready, a guest was stopped, started, built or destroyed.

Each report names the attempt that it concerns. One that comes late, or twice, finds the move in a further
state and changes nothing.
"""

from collections.abc import Collection

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model import record
from roost.model.instance import AttemptKey, BuildResult, DestroyOrder, PowerResult
from roost.model.move import ARRIVING, LEAVING, LIVE, Move, MoveWork
from roost.model.move_states import (
    AT_REST,
    AT_SOURCE,
    AT_TARGET,
    CANCELLING,
    CLEANING,
    CONTINUING,
    DISCARDING,
    DONE,
    FREEING,
    GOING,
    LANDING,
    OFF,
    ON_TARGET,
    ORDERED,
    PREPARING,
    RECEIVING,
    RESTARTING,
    RESUMING,
    RETURNING,
    REVERTED,
    REVERTING,
    STARTING,
    STOPPED,
    STOPPING,
    SWITCHED,
    SWITCHING,
    UNCONFIRMED,
)
from roost.model.record import BUILT, Attempt
from roost.state.cell_database.move_changes import (
    MOVE,
    end_of_target,
    enter,
    find_again,
    has_order,
    has_shown_life,
    keep_end,
    lose,
    put_on,
    resume,
    return_to_source,
)
from roost.state.cell_database.move_ends import NOT_STOPPED, TIMED_OUT, fail_target, locked_at
from roost.state.cell_database.move_halves import put_into_cell, return_to_cell
from roost.state.cell_database.tables import moves
from roost.storage import entering, in_batches, one_of, one_of_constants

TOO_OLD = "AgentTooOld"
"""The code of an attempt that ends because the agent of its host is too old."""

CAME_BACK = "the host has shown signs of life since it was said to be dead"


def confirm_target(connection: Connection, key: AttemptKey, host: str, at: float) -> bool | None:
    """Answer a host that has prepared an attempt and asks whether to start it; None: not yet.

    After a yes no time limit ends the attempt. A host that asks again gets the same answer.
    """
    move = locked_at(connection, key.instance, key.attempt, host)
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
        fail_target(connection, move, CAME_BACK, None, at, retryable=False)
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
    move = locked_at(connection, result.instance, result.attempt, result.host)
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
        fail_target(connection, move, reason, result.code, at, retryable=result.retryable and not waited)
        return end_of_target(move, record.FAILED, at, reason)
    if move.state != STARTING:
        # It was not told to start the guest: what runs there is not known to be alone.
        return None
    if move.side == ARRIVING:
        put_into_cell(connection, move, at)
        if move.confirms:
            enter(connection, move, CLEANING, at, ends_as=DONE)
        else:
            enter(connection, move, SWITCHED, at)
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
    fail_target(connection, move, result.failure, result.code, at, retryable=False)
    return end_of_target(move, record.FAILED, at, result.failure)


def report_power_of_move(connection: Connection, host: str, report: PowerResult, at: float) -> Attempt | None:
    """Note that a host has stopped or started the guest of a move, or could not.

    Returns the end of the target's attempt for the records; None: it goes on.
    """
    move = locked_at(connection, report.instance, report.attempt, host)
    return None if move is None else _take_power(connection, move, report, at)


def _leave_source(connection: Connection, move: Move, report: PowerResult, at: float) -> Attempt | None:
    """Note what the source of a guest that goes over says: it runs on there, or the source has none.

    Returns as `report_power_of_move`.
    """
    assert move.target is not None
    if report.failure is not None:
        retryable = move.state == SWITCHING
        reason = f"the guest has not left its host: {report.failure}" if retryable else move.reason or ""
        fail_target(connection, move, reason, None, at, orders=True, retryable=retryable)
        return end_of_target(move, record.FAILED, at, reason)
    gone = msgspec.structs.replace(move, at_source=AT_REST)
    if has_order(connection, move.target, move.instance):
        # It was given up, and says nothing any more.
        fail_target(connection, gone, move.reason or "", None, at, retryable=False, at_source=AT_REST)
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
            (return_to_cell if move.side == LEAVING else return_to_source)(connection, move, at)
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
        fail_target(connection, move, reason, None, at, orders=True, retryable=False)
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
        move = locked_at(connection, uuid, attempt, host)
        if move is None:
            continue
        if part.kind in ("build", "receive"):
            # Once it was told to start the guest, the host finds it, or builds it, as any version does.
            if move.state in UNCONFIRMED:
                fail_target(connection, move, reason, TOO_OLD, at, orders=True)
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
        move = (
            locked_at(connection, each.instance, each.attempt, each.host) if each.instance in there else None
        )
        if move is None:
            continue
        of_source = each.attempt == move.source.attempt
        if (AT_SOURCE if of_source else AT_TARGET).get(move.state) == "destroy":
            if move.side == ARRIVING:
                # What the move holds is freed in the cell of the source, which has the instance.
                enter(connection, move, REVERTED, at)
                continue
            if not of_source:
                keep_end(connection, move, "the move was reverted", REVERTED, at)
            enter(connection, move, FREEING, at)


_DESTROYING = sa.select(moves.c.instance_uuid).where(
    one_of(moves.c.instance_uuid, "uuids"), one_of_constants(moves.c.state, (CLEANING, DISCARDING))
)
