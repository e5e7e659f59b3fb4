"""The halves of moves to other cells, where the cell has no row of the instance.

The arriving half has an instance that is not in the cell yet, and the leaving one an instance that has left.
The fence of the instance is locked in place of its row. See `roost.model.crossings`.
"""

from collections.abc import Collection

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ACTIVE, MOVED, STOPPED, DestroyOrder, Instance
from roost.model.move import ARRIVING, LEAVING, Move, at_place, other_place
from roost.model.move_states import DELETED, GIVEN_UP, OFF, RESUMING, STARTING, UNDER_WAY, UNDOING
from roost.state.cell_database.building import keep_attempts
from roost.state.cell_database.host_work import give_orders
from roost.state.cell_database.move_changes import enter, locked_instance, locked_moves_of, tell_instance
from roost.state.cell_database.move_rows import MOVES, move_of
from roost.state.cell_database.rows import Row, instance_row
from roost.state.cell_database.tables import build_attempts, fences, instances, moves
from roost.storage import in_batches, one_of, one_of_constants


def locked_half(connection: Connection, instance: str) -> Move | None:
    """Lock and return the half of a move that has an instance of which the cell has no row; None: there is
    none.

    The fence of the instance is locked first, in place of its row: an instance that was here, or that may
    come, has one.
    """
    locked_fence(connection, instance)
    row = connection.execute(_HALF, {"key": instance}).first()
    return None if row is None else move_of(row)


_FENCE = sa.select(fences.c.epoch).where(fences.c.instance_uuid == sa.bindparam("key")).with_for_update()
OF_HALVES = (
    moves.c.carried.is_not(None),
    one_of_constants(moves.c.state, UNDER_WAY),
    ~sa.select(instances.c.uuid).where(instances.c.uuid == moves.c.instance_uuid).exists(),
)
"""The condition on the halves of instances of which the cell has no row."""
_HALF = (
    MOVES.where(moves.c.instance_uuid == sa.bindparam("key"), *OF_HALVES)
    .order_by(moves.c.began.desc())
    .with_for_update()
)
_HALVES = (
    MOVES.where(one_of(moves.c.instance_uuid, "uuids"), *OF_HALVES)
    .order_by(moves.c.instance_uuid)
    .with_for_update()
)


def locked_fence(connection: Connection, instance: str) -> None:
    """Lock the fence of an instance, if it has one."""
    connection.execute(_FENCE, {"key": instance})


def put_into_cell(connection: Connection, move: Move, at: float) -> None:
    """Put the instance of a half, which is locked, into the cell: its guest runs on the host that is here.

    One that is back at its source holds the target until the claims are exchanged.
    """
    assert move.target is not None and move.carried is not None
    before, cells = move.carried.instance, None
    place = move.target if move.side == ARRIVING else move.source
    if move.other_cell is not None:
        cells = (move.other_cell, place.selection.cell)
    state = STOPPED if move.at_source == OFF else ACTIVE
    now = msgspec.structs.replace(
        at_place(before, place),
        selection=move.target.selection,
        state=state,
        reason=None,
        epoch=move.carried.epoch,
        owner=None,
        move=move.uuid,
    )
    row = instance_row(now, at) | {"history": move.carried.history}
    connection.execute(sa.insert(instances), row)
    keep_attempts(connection, move.carried.attempts)
    tell_instance(connection, move, at, MOVED, place, cells=cells)
    if before.state != state:
        tell_instance(connection, move, at, state, place)


def return_to_cell(connection: Connection, move: Move, at: float) -> None:
    """Put the instance of a leaving half, which is locked, back into the cell: its guest is on the source as
    before the move."""
    put_into_cell(connection, move, at)
    enter(connection, move, UNDOING, at, carried=None)


def take_out_of_cell(connection: Connection, move: Move) -> Instance:
    """Remove the instance of a half, which is locked: it runs in the other cell. Returns it as it was."""
    there = locked_instance(connection, move.instance)
    assert there is not None and there.move == move.uuid
    connection.execute(sa.delete(build_attempts).where(build_attempts.c.instance_uuid == move.instance))
    connection.execute(sa.delete(instances).where(instances.c.uuid == move.instance))
    return there


def end_halves_of(connection: Connection, uuids: Collection[str], at: float, reason: str) -> None:
    """End the halves of moves that have instances of which the cell has no row, and order their hosts to
    destroy what they have. The fences of the instances are raised above all, and locked."""
    given = []
    for some in in_batches(sorted(uuids)):
        for row in connection.execute(_HALVES, {"uuids": some}).all():
            move = move_of(row)
            place = other_place(move, None)
            if place is not None:
                given.append(DestroyOrder(move.instance, place.attempt, place.host))
            enter(connection, move, DELETED, at, reason=reason)
    give_orders(given, at)(connection)


def leave_to_other_cells(connection: Connection, rows: Collection[Row], at: float) -> frozenset[str]:
    """Leave instances whose host is given up to hosts in other cells, which may have started the guest.

    ``rows``: as those of `end_moves_of`, on the host that is given up. It is ordered to destroy what it has.
    Returns the instances that are left.
    """
    left = set()
    for move, row in locked_moves_of(connection, rows):
        if (move.side, move.state) not in ((LEAVING, STARTING), (ARRIVING, RESUMING)):
            continue
        give_orders([DestroyOrder(row.uuid, row.attempt, row.host)], at)(connection)
        if move.side == LEAVING:
            gone = sa.update(moves).where(moves.c.uuid == move.uuid)
            connection.execute(gone.values(at_source=GIVEN_UP))
        left.add(row.uuid)
    return frozenset(left)
