"""The work of conductors on moves: each move that wants some has one owner at a time.

Each write names the state from which the move goes on, and its owner: one of an earlier owner changes
nothing.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import MOVING, NOT_MOVED
from roost.model.move import LEAVING, LIVE, Move, MovePlace
from roost.model.move_states import (
    DISCARDING,
    ENDED,
    FAILED_MOVE,
    FOR_CONDUCTORS,
    FREEING,
    ORDERED,
    PREPARING,
    RECEIVING,
    REQUESTED,
    RUNS,
    SEEKING,
    SENDING,
    STOPPED,
    STOPPING,
)
from roost.model.spec import Selection
from roost.state.cell_database.move_changes import (
    MOVE,
    enter,
    give_owner,
    has_order,
    locked_instance,
    tell_instance,
)
from roost.state.cell_database.move_limits import MoveLimits, may_have_target
from roost.state.cell_database.move_rows import NAMED_MOVES, move_of
from roost.state.cell_database.rows import alternates_text, selection_text
from roost.state.cell_database.tables import build_attempts, instances, moves
from roost.state.leases import holders
from roost.storage import entering, in_batches, one_of_constants, short_read, transaction


@short_read
def has_moves_for_conductors(connection: Connection) -> bool:
    """Return whether some move wants work of a conductor: mostly there is none."""
    return connection.execute(_ANY).first() is not None


@short_read
def find_moves_wanting_work(connection: Connection, owner: str, most: int) -> list[str]:
    """Return the uuids of at most ``most`` moves that want work and that ``owner`` may take.

    As `roost.state.cell_database.conductor_work.find_wanting_work`. Moves that wait to begin are left out:
    see `roost.state.cell_database.move_limits`.
    """
    return [*connection.execute(_WANTING, {"me": owner, "most": most}).scalars()]


@transaction
def take_moves(connection: Connection, owner: str, uuids: tuple[str, ...]) -> list[Move]:
    """Take the named moves, except those that others have taken; returns them with their new owner."""
    taken = [
        move_of(row)
        for some in in_batches(uuids)
        for row in connection.execute(_TAKEABLE, {"me": owner, "uuids": some})
    ]
    return give_owner(connection, owner, taken)


@short_read
def find_seeking_moves(connection: Connection, most: int) -> list[str]:
    """Return the uuids of at most ``most`` moves for which a super conductor claims a target."""
    return [*connection.execute(_SEEKING, {"most": most}).scalars()]


@transaction
def take_seeking_moves(connection: Connection, owner: str, uuids: tuple[str, ...]) -> list[Move]:
    """Take the named moves for which a super conductor claims a target, from whoever had them."""
    taken = [
        move_of(row)
        for some in in_batches(uuids)
        for row in connection.execute(_LOCKED_SEEKING, {"uuids": some})
    ]
    return give_owner(connection, owner, taken)


_SEEKING = sa.select(moves.c.uuid).where(moves.c.state == SEEKING).limit(sa.bindparam("most"))
_LOCKED_SEEKING = NAMED_MOVES.where(moves.c.state == SEEKING).with_for_update(skip_locked=True)
_FREE = (
    one_of_constants(moves.c.state, FOR_CONDUCTORS),
    sa.or_(
        moves.c.owner.is_(None) & (moves.c.state != REQUESTED),
        moves.c.owner.not_in(holders()),
        moves.c.owner == sa.bindparam("me"),
    ),
)
_ANY = sa.select(moves.c.uuid).where(one_of_constants(moves.c.state, FOR_CONDUCTORS)).limit(1)
_WANTING = sa.select(moves.c.uuid).where(*_FREE).limit(sa.bindparam("most"))
_TAKEABLE = NAMED_MOVES.where(*_FREE).with_for_update(skip_locked=True)


@short_read
def is_owned(connection: Connection, move: Move) -> bool:
    """Return whether a move is as its owner took it."""
    return connection.execute(_owned(move)).first() is not None


@entering(MOVE)
def take_target(
    connection: Connection,
    *,
    move: Move,
    selection: Selection,
    alternates: tuple[Selection, ...],
    run: str,
    at: float,
    limits: MoveLimits | None = None,
    cells: tuple[str, str] | None = None,
) -> bool | None:
    """Let a move go on with a target whose claim is made; returns whether its owner still had it.

    None: source, target or cell have as many moves as ``limits`` allow; nothing is changed. ``cells``: of
    source and target, if the target is in another cell. Then the move is counted when that has room for it.
    """
    if cells is None and limits is not None and not may_have_target(connection, move, selection.host, limits):
        return None
    locked = locked_instance(connection, move.instance)
    if locked is None or not _is_owned(connection, move):
        return False
    ended = sa.select(sa.func.max(build_attempts.c.attempt)).where(
        build_attempts.c.instance_uuid == move.instance
    )
    attempt = 1 + max(locked.attempt, move.source.attempt, connection.execute(ended).scalar() or 0)
    target = MovePlace(attempt, selection, move.spec)
    values: dict[str, Any] = {
        "target_host": target.host,
        "target_attempt": attempt,
        "target": selection_text(selection),
        "alternates": alternates_text(alternates),
        "run": run,
        "reason": None,
    }
    if cells is not None:
        values["side"] = LEAVING
    state = _state_with_target(move, target) if cells is None else SENDING
    if state == STOPPING:
        values["at_source"] = ORDERED
    enter(connection, move, state, at, host=target.host, **values)
    why = None if move.target is None else move.reason
    tell_instance(connection, move, at, MOVING, target, why, cells=cells)
    return True


def _state_with_target(move: Move, target: MovePlace) -> str:
    """Return the state that a move enters with a target in its cell.

    A host that is its own target stops the guest first: it has one of an instance that runs at a time.
    """
    if target.host == move.source.host:
        return STOPPING if move.at_source in (RUNS, ORDERED) else STOPPED
    return RECEIVING if move.kind == LIVE else PREPARING


@entering(MOVE)
def go_on(
    connection: Connection,
    *,
    move: Move,
    to: str,
    at: float,
    reason: str | None = None,
    holds: Selection | None = None,
) -> bool:
    """Let a move enter a further state; returns whether its owner still had it.

    ``holds``: the claim of the instance from now on; None: as before. A state of `ENDED` unlocks the
    instance.
    """
    if move.carried is None and locked_instance(connection, move.instance) is None:
        return False
    if not _is_owned(connection, move):
        return False
    if to == DISCARDING and move.target is not None and has_order(connection, move.target, move.instance):
        # The target was given up: its guest is destroyed when it is back.
        to = FREEING
    enter(connection, move, to, at, reason=reason)
    values: dict[str, object] = {}
    if holds is not None:
        values["selection"] = selection_text(holds)
    if to in ENDED:
        values["move"] = None
    # An instance that has left the cell may be back here by a later move.
    if values and move.carried is None:
        connection.execute(sa.update(instances).where(instances.c.uuid == move.instance).values(**values))
    if to == FAILED_MOVE:
        tell_instance(connection, move, at, NOT_MOVED, move.source, move.reason)
    return True


def _is_owned(connection: Connection, move: Move) -> bool:
    return connection.execute(_owned(move).with_for_update()).first() is not None


def _owned(move: Move) -> sa.Select[tuple[str]]:
    return sa.select(moves.c.uuid).where(
        moves.c.uuid == move.uuid,
        moves.c.state == move.state,
        moves.c.owner == move.owner,
        moves.c.owner_epoch == move.owner_epoch,
    )
