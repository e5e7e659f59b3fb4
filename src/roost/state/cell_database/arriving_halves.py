"""The arriving half of a move to another cell, as a super conductor takes it on.

The cell has no row of the instance until its guest runs here. Until the source's cell has given the start
away, the target only prepares. See `roost.model.crossings`.
"""

from typing import Literal

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import DestroyOrder
from roost.model.move import ARRIVING, Carried, Move, TargetFailure
from roost.model.move_states import (
    CLEANING,
    CONTINUING,
    DISCARDING,
    DONE,
    ENDED,
    FAILED_MOVE,
    OFF,
    ON_TARGET,
    PREPARING,
    REFUSED,
    RESUMING,
    REVERTED,
    SOURCE_KEPT,
    STOPPED,
    STOPPING,
    SWITCHED,
)
from roost.state.cell_database.arrivals import raise_fences, uuids_here
from roost.state.cell_database.host_work import give_orders
from roost.state.cell_database.move_changes import MOVE, enter, has_order, locked_instance
from roost.state.cell_database.move_ends import end_arrival
from roost.state.cell_database.move_halves import locked_fence, take_out_of_cell
from roost.state.cell_database.move_limits import MoveLimits, has_room, may_have_target
from roost.state.cell_database.move_rows import NAMED_MOVES, carried_text, move_of, move_row
from roost.state.cell_database.nodes import find_disk_store
from roost.state.cell_database.rows import selection_text, spec_text
from roost.state.cell_database.tables import instances, moves
from roost.storage import entering, short_read

ARRIVED: Literal["arrived"] = "arrived"
"""The target prepares the guest."""
FULL: Literal["full"] = "full"
"""The target, or its cell, has as many moves as the limits allow."""
FENCED: Literal["fenced"] = "fenced"
"""The instance was deleted, or the move has ended here."""
LACKS_DISKS: Literal["lacks-disks"] = "lacks-disks"
"""The target does not have the disks of the source's guests."""

ArrivalResult = Literal["arrived", "full", "fenced", "lacks-disks"]


@short_read
def has_room_for(connection: Connection, host: str, move: Move, limits: MoveLimits) -> bool:
    """Return whether a host of this cell has room for a further move. ``move``: the half in another cell."""
    return has_room(connection, msgspec.structs.replace(move, side=ARRIVING), host, limits)


@entering(MOVE)
def let_arrive(connection: Connection, half: Move, limits: MoveLimits | None, at: float) -> ArrivalResult:
    """Have a target prepare the guest of an instance that another cell has.

    ``half``: as it is to be here, with the instance that it carries. A further attempt takes the place of the
    one before. ``limits``: None: the move is counted already.
    """
    assert half.target is not None and half.carried is not None
    if limits is not None and not may_have_target(connection, half, half.target.host, limits):
        return FULL
    locked_fence(connection, half.instance)
    there = _half(connection, half.uuid)
    if there is None or _may_follow(there, half):
        store = find_disk_store(half.target.node)(connection)
        if store is None or store != half.carried.store:
            return LACKS_DISKS
    if there is None:
        raised = raise_fences(connection, {half.instance: half.carried.epoch}, at)
        if not (raised.new or raised.lower) or uuids_here(connection, [half.instance]):
            return FENCED
    elif not _may_follow(there, half):
        return ARRIVED if there.target == half.target and there.state not in ENDED else FENCED
    if there is None:
        connection.execute(sa.insert(moves), move_row(half))
        return ARRIVED
    if there.state in ON_TARGET:
        end_arrival(connection, there, TargetFailure("another host is tried"), at)
        there = msgspec.structs.replace(there, state=REFUSED)
    enter(
        connection,
        there,
        PREPARING,
        at,
        host=half.target.host,
        target_host=half.target.host,
        target_attempt=half.target.attempt,
        target=selection_text(half.target.selection),
        spec=spec_text(half.spec),
        run=half.run,
        carried=carried_text(half.carried),
    )
    return ARRIVED


def _may_follow(there: Move, half: Move) -> bool:
    """Return whether an attempt takes the place of the one that an arriving half has."""
    assert there.target is not None and half.target is not None
    open_ = there.state in (PREPARING, STOPPING, REFUSED)
    return open_ and half.target.attempt > there.target.attempt


@entering(MOVE)
def release_arriving(connection: Connection, uuid: str, attempt: int, carried: Carried, at: float) -> None:
    """Let the target start its guest as soon as it asks: the source's cell has given the start away.

    ``carried``: the instance as it left, with its history.
    """
    move = _locked(connection, uuid)
    if move is None or move.target is None or move.carried is None:
        return
    if move.state == STOPPING and move.target.attempt == attempt:
        now = msgspec.structs.replace(carried, epoch=move.carried.epoch)
        enter(connection, move, STOPPED, at, carried=carried_text(now))


@entering(MOVE)
def recall_arriving(connection: Connection, uuid: str, attempt: int, reason: str, at: float) -> None:
    """End an attempt that the source's cell has ended: the target destroys what it has prepared."""
    move = _locked(connection, uuid)
    if move is None or move.target is None or move.target.attempt > attempt:
        return
    if move.state in (PREPARING, STOPPING):
        end_arrival(connection, move, TargetFailure(reason), at)


@entering(MOVE)
def end_arriving(
    connection: Connection, uuid: str, instance: str, epoch: int, reason: str, at: float
) -> None:
    """End an arriving half for good: no later attempt arrives, not even one that is on its way.

    ``epoch``: of the crossing. A half whose instance is here is not ended.
    """
    move = _locked(connection, uuid, instance)
    if move is None:
        if _half(connection, uuid) is None:
            raise_fences(connection, {instance: epoch}, at)
        return
    if move.state in (*SOURCE_KEPT, DISCARDING, *ENDED):
        return
    if move.state in ON_TARGET:
        end_arrival(connection, move, TargetFailure(reason), at)
        move = msgspec.structs.replace(move, state=REFUSED)
    enter(connection, move, FAILED_MOVE, at, reason=reason)


@entering(MOVE)
def finish_arriving(connection: Connection, uuid: str, at: float) -> None:
    """End the half of an instance that has arrived, and unlock it: nothing is left at the source."""
    move = _locked(connection, uuid)
    if move is not None and move.state in (SWITCHED, CLEANING):
        enter(connection, move, DONE, at)
        connection.execute(sa.update(instances).where(instances.c.move == uuid).values(move=None))


@entering(MOVE)
def continue_arriving(
    connection: Connection, uuid: str, seen: int, epoch: int, reason: str, at: float
) -> None:
    """Have the target start its guest again, as the source has not started its own.

    ``seen``: the epoch of the half when it was read. ``epoch``: of the revert that has failed. A late call
    finds another epoch, and changes nothing.
    """
    move = _locked(connection, uuid)
    if move is None or move.carried is None or move.state != RESUMING or move.carried.epoch != seen:
        return
    carried = carried_text(msgspec.structs.replace(move.carried, epoch=epoch))
    to = SWITCHED if move.at_source == OFF else CONTINUING
    enter(connection, move, to, at, reason=reason, ends_as=None, carried=carried)


@entering(MOVE)
def discard_arriving(connection: Connection, uuid: str, at: float, *, held: bool) -> None:
    """Remove the instance of a move that was reverted: it runs in the source's cell. Its host is to destroy
    what it has.

    ``held``: the move holds its room until then. Otherwise the instance was given up meanwhile, and the host
    gets an order that outlives the move, as it has if it was given up itself.
    """
    move = _locked(connection, uuid)
    if move is None or move.target is None or move.state not in SOURCE_KEPT:
        return
    carried = carried_text(Carried(take_out_of_cell(connection, move)))
    enter(connection, move, DISCARDING, at, carried=carried, ends_as=REVERTED)
    if held and not has_order(connection, move.target, move.instance):
        return
    give_orders([DestroyOrder(move.instance, move.target.attempt, move.target.host)], at)(connection)
    enter(connection, msgspec.structs.replace(move, state=DISCARDING), REVERTED, at)


def _half(connection: Connection, uuid: str) -> Move | None:
    row = connection.execute(NAMED_MOVES.with_for_update(), {"uuids": [uuid]}).one_or_none()
    return None if row is None or row.side != ARRIVING else move_of(row)


def _locked(connection: Connection, uuid: str, instance: str | None = None) -> Move | None:
    """Lock the instance of an arriving half, or its fence, then the half; None: there is none."""
    if instance is None:
        of = sa.select(moves.c.instance_uuid).where(moves.c.uuid == uuid)
        instance = connection.execute(of).scalar()
    if instance is None:
        return None
    if locked_instance(connection, instance) is None:
        locked_fence(connection, instance)
    return _half(connection, uuid)
