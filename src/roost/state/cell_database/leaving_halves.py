"""The leaving half of a move to another cell, as a super conductor takes it on. The move is decided here.

Each transaction names the attempt on the target, and the states from which the half goes on. One that comes
late, or twice, changes nothing.
"""

from collections.abc import Collection

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model import record
from roost.model.move import LEAVING, Carried, Move, TargetFailure
from roost.model.move_states import (
    AT_REST,
    CLEANING,
    CONTINUING,
    DISCARDING,
    DONE,
    FREEING,
    GIVEN_UP,
    OFF,
    ON_TARGET,
    ORDERED,
    PREPARING,
    RESTARTING,
    RESUMING,
    RETRYING,
    RETURNING,
    REVERTED,
    REVERTING,
    RUNS,
    SENDING,
    STARTING,
    STOPPED,
    STOPPING,
    SWITCHED,
    UNDER_WAY,
)
from roost.model.record import Attempt
from roost.state.cell_database.arrivals import raise_fences
from roost.state.cell_database.building import ended_attempts_of
from roost.state.cell_database.deletions import give_up_on_host
from roost.state.cell_database.move_changes import (
    MOVE,
    enter,
    keep_end,
    locked_move,
    way_back,
)
from roost.state.cell_database.move_halves import return_to_cell, take_out_of_cell
from roost.state.cell_database.move_limits import MoveLimits, may_have_target
from roost.state.cell_database.move_rows import MOVES, NAMED_MOVES, carried_text, move_of
from roost.state.cell_database.nodes import find_disk_store
from roost.state.cell_database.rows import INSTANCES, instance_of
from roost.state.cell_database.tables import instances, moves
from roost.storage import entering, in_batches, one_of_constants, short_read, transaction

NO_ROOM = "the hosts or the cell of the target have as many moves as they may have"
"""Why a guest that rests is started again at its source, and waits for no target."""


class FoundHalf(msgspec.Struct, frozen=True):
    """The half of a move that has not ended. ``other_cell``: the one with the other half."""

    move: str
    instance: str
    side: str
    other_cell: str
    epoch: int


@short_read
def find_halves(connection: Connection) -> list[FoundHalf]:
    """Return the halves of moves to other cells that have not ended."""
    return [
        FoundHalf(
            move.uuid,
            move.instance,
            move.side or "",
            move.other_cell or ("" if move.target is None else move.target.selection.cell),
            0 if move.carried is None else move.carried.epoch,
        )
        for move in map(move_of, connection.execute(_HALVES))
    ]


@transaction
def read_halves(connection: Connection, uuids: tuple[str, ...]) -> dict[str, Move]:
    """Return the halves of moves in this cell by uuid."""
    return {
        row.uuid: move_of(row)
        for some in in_batches(uuids)
        for row in connection.execute(NAMED_MOVES, {"uuids": some})
        if row.side is not None
    }


_HALVES = MOVES.where(moves.c.side.is_not(None), one_of_constants(moves.c.state, UNDER_WAY))


@transaction
def read_carried(connection: Connection, instance: str) -> Carried | None:
    """Return the facts of an instance for the cell that it goes to; None: it is not here."""
    row = connection.execute(_WITH_HISTORY, {"of": instance}).one_or_none()
    if row is None:
        return None
    found = instance_of(row)
    attempts = tuple(ended_attempts_of(instance)(connection))
    return Carried(found, row.history or "", attempts, store=find_disk_store(found.node or "")(connection))


_WITH_HISTORY = INSTANCES.add_columns(instances.c.history).where(instances.c.uuid == sa.bindparam("of"))


@entering(MOVE)
def admit_leaving(
    connection: Connection, uuid: str, attempt: int, limits: MoveLimits, at: float
) -> bool | None:
    """Count a move whose target has room; returns whether it goes on. None: its source has no room now."""
    move = _locked(connection, uuid, attempt, (SENDING,))
    if move is None:
        return False
    if not may_have_target(connection, move, None, limits):
        return None
    assert move.target is not None
    return enter(connection, move, PREPARING, at, other_cell=move.target.selection.cell)


@entering(MOVE)
def hold_back(connection: Connection, uuid: str, attempt: int, at: float) -> Attempt | None:
    """Let a move wait until its target has room; returns the end of its attempt if it does not wait.

    A guest that rests is started again at its source. Hosts that wait for each other's moves would do so for
    ever if the moves counted meanwhile.
    """
    move = _locked(connection, uuid, attempt, (SENDING, PREPARING))
    if move is None:
        return None
    if move.at_source not in (RUNS, OFF):
        return _fail(connection, move, TargetFailure(NO_ROOM, retryable=False), at, is_recorded=False)
    if move.state == PREPARING:
        enter(connection, move, SENDING, at)
    else:
        # Its time begins anew: the cell of the target has answered.
        connection.execute(sa.update(moves).where(moves.c.uuid == uuid).values(changed_at=at))
    return None


@entering(MOVE)
def note_ready(connection: Connection, uuid: str, attempt: int, at: float) -> None:
    """Note that the target is ready: the source stops its guest, if it has not stopped it before."""
    move = _locked(connection, uuid, attempt, (PREPARING,))
    if move is None:
        return
    if move.at_source == AT_REST:
        enter(connection, move, STOPPED, at)
    else:
        enter(connection, move, STOPPING, at, at_source=OFF if move.at_source == OFF else ORDERED)


@entering(MOVE)
def let_start(connection: Connection, uuid: str, attempt: int, at: float, *, started: bool = False) -> bool:
    """Give the start away to the target; returns whether the target may start its guest.

    From here on only the target's cell ends the attempt. ``started``: the target was told to already, so this
    database was taken back to an earlier state.
    """
    states = ON_TARGET if started else (STOPPED, STARTING)
    move = _locked(connection, uuid, attempt, states)
    if move is None:
        return False
    if move.state != STARTING:
        enter(connection, move, STARTING, at, at_source=OFF if move.at_source == OFF else AT_REST)
    return True


@entering(MOVE)
def fail_leaving(
    connection: Connection, uuid: str, attempt: int, failure: TargetFailure, at: float, is_recorded: bool
) -> Attempt | None:
    """End the attempt on a target; returns its end for the records, unless the target's cell has recorded it.

    An instance whose source was given up meanwhile is given up with it.
    """
    move = _locked(connection, uuid, attempt, (SENDING, *ON_TARGET))
    return None if move is None else _fail(connection, move, failure, at, is_recorded=is_recorded)


@entering(MOVE)
def let_leave(
    connection: Connection, uuid: str, attempt: int, at: float, *, epoch: int = 0, confirmed: bool = True
) -> bool:
    """Remove the instance of a move, which runs in the cell of the target; returns whether it was here.

    Its history has gone with it. What is left is the move, by which the source keeps its guest until the move
    is ``confirmed``, and destroys it then. ``epoch``: of the crossing. A source that was given up has nothing
    to go back to.
    """
    move = _locked(connection, uuid, attempt, _BEFORE_SWITCH)
    if move is None:
        return False
    carried = carried_text(Carried(take_out_of_cell(connection, move), epoch=epoch))
    gone = move.at_source == GIVEN_UP
    ends_as = DONE if gone or confirmed else None
    enter(connection, move, SWITCHED, at, carried=carried, reason=None, ends_as=ends_as)
    if ends_as is not None:
        enter(connection, msgspec.structs.replace(move, state=SWITCHED), FREEING if gone else CLEANING, at)
    return True


_BEFORE_SWITCH = (SENDING, *ON_TARGET, RETRYING, RESTARTING, RETURNING)
"""States from which the instance leaves. It runs in the other cell, so all but `STARTING` are those of a
database that was taken back."""


@entering(MOVE)
def follow_arriving(connection: Connection, uuid: str, attempt: int, half: Move, at: float) -> None:
    """Let the move of an instance that has left go on as the arriving half, which has got the word.

    ``half``: as it is, or was. One that has ended has confirmed the move.
    """
    move = _locked(connection, uuid, attempt, _LEFT)
    if move is None:
        return
    state = half.state if half.state in _LEFT else CLEANING
    reason = None if half.reason == move.reason else half.reason
    ends_as = DONE if state == CLEANING else half.ends_as
    enter(connection, move, state, at, reason=reason, ends_as=ends_as)


@entering(MOVE)
def resume_leaving(
    connection: Connection, uuid: str, attempt: int, carried: Carried, at: float, reason: str | None = None
) -> None:
    """Have the source start its guest again: the target has stopped its own, and its cell has given the start
    back. A guest that was stopped before the move stays so.

    ``carried``: the instance as it comes back, with the epoch of the revert: it is resumed once for each.
    ``reason``: why it comes back without a word.
    """
    move = _locked(connection, uuid, attempt, _LEFT)
    if move is None or move.carried is None or move.carried.epoch >= carried.epoch:
        return
    raise_fences(connection, {move.instance: carried.epoch}, at)
    values = {"carried": carried_text(carried), "ends_as": REVERTED}
    enter(connection, move, RESUMING, at, reason=None if reason == move.reason else reason, **values)
    if move.at_source == OFF:
        return_to_cell(connection, msgspec.structs.replace(move, state=RESUMING, carried=carried), at)


@entering(MOVE)
def free_leaving(connection: Connection, uuid: str, attempt: int, at: float) -> None:
    """Have the target of a move that was reverted freed: its host has destroyed what it had."""
    move = _locked(connection, uuid, attempt, (DISCARDING,))
    if move is not None:
        keep_end(connection, move, "the move was reverted", REVERTED, at)
        enter(connection, move, FREEING, at)


_LEFT = (SWITCHED, REVERTING, CONTINUING)
"""States in which the instance is in the target's cell, and the source keeps its stopped guest."""


def _fail(
    connection: Connection, move: Move, failure: TargetFailure, at: float, *, is_recorded: bool
) -> Attempt | None:
    assert move.target is not None
    keep_end(connection, move, failure.reason, record.FAILED, at, failure.code)
    enter(connection, move, RETRYING if failure.retryable else way_back(move), at, reason=failure.reason)
    if move.at_source == GIVEN_UP:
        reason = f"host {move.source.host} was given up, and {move.target.host} failed: {failure.reason}"
        given = give_up_on_host(
            host=move.source.host, reason=reason, at=at, cell=move.source.selection.cell, only=move.instance
        )
        given(connection)
    if is_recorded:
        return None
    return record.end_of(
        move.target.selection,
        record.FAILED,
        at,
        run=move.run,
        request_id=move.by.request_id,
        instance=move.instance,
        reason=failure.reason,
    )


def _locked(connection: Connection, uuid: str, attempt: int, states: Collection[str]) -> Move | None:
    """Lock the instance of a leaving half and the half; None if it is not in one of some states, with this
    attempt on its target."""
    move = locked_move(connection, uuid)
    if move is None or move.side != LEAVING or move.state not in states or move.target is None:
        return None
    return move if move.target.attempt == attempt else None
