"""The statements of which transactions of moves are made: locks, changes of state, an instance's new host.

Whoever writes locks the instance first, then the move.
"""

from collections.abc import Collection
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model import record
from roost.model.instance import (
    ACTIVE,
    LOST,
    MOVED,
    MOVING,
    NOT_MOVED,
    OF_MOVES,
    STOPPED,
    BuildAttempt,
    DestroyOrder,
    Instance,
    Transition,
)
from roost.model.move import ARRIVING, LEAVING, Move, MovePlace, MoveStep, SessionStamp, other_place
from roost.model.move_states import (
    CLEANING,
    CONTINUING,
    DELETED,
    DISCARDING,
    DONE,
    ENDED,
    FREEING,
    GOING,
    OFF,
    ON_TARGET,
    RESTARTING,
    RESUMING,
    RETRYING,
    RETURNING,
    REVERTED,
    REVERTING,
    RUNS,
    STARTING,
    STOPPING,
    SWITCHED,
    UNDOING,
)
from roost.model.move_states import STOPPED as AT_SOURCE_STOPPED
from roost.model.record import Attempt
from roost.model.spec import Selection
from roost.model.text import clean_text
from roost.state.cell_database.building import keep_attempts
from roost.state.cell_database.history import (
    MOST_OF_GUESTS,
    MOST_OF_REASON,
    enter_state,
    transition_line,
    with_line,
)
from roost.state.cell_database.host_work import give_orders, read_orders, session_name
from roost.state.cell_database.move_rows import NAMED_MOVES, move_of
from roost.state.cell_database.reported import MAX_HOST
from roost.state.cell_database.rows import (
    INSTANCES,
    Row,
    instance_of,
    selection_text,
    spec_text,
)
from roost.state.cell_database.state_changes import note_changes
from roost.state.cell_database.tables import build_attempts, instances, moves
from roost.state.leases import read_stamps
from roost.storage import in_batches

MOVE = "move"
"""In place of a state that instances enter: a move may want work of a conductor or of a host."""

_JSON = msgspec.json.Encoder()


def locked_instance(connection: Connection, uuid: str) -> Instance | None:
    """Lock an instance; returns it, None if it is not here."""
    row = connection.execute(_INSTANCE, {"key": uuid}).one_or_none()
    return None if row is None else instance_of(row)


def locked_move(connection: Connection, uuid: str) -> Move | None:
    """Lock an instance, then its move; returns the move, None if it is unknown or its instance is gone."""
    of = connection.execute(sa.select(moves.c.instance_uuid).where(moves.c.uuid == uuid)).scalar()
    if of is None:
        return None
    locked_instance(connection, of)
    row = connection.execute(NAMED_MOVES.with_for_update(), {"uuids": [uuid]}).one_or_none()
    return None if row is None else move_of(row)


_INSTANCE = INSTANCES.where(instances.c.uuid == sa.bindparam("key")).with_for_update()


def enter(
    connection: Connection,
    move: Move,
    state: str,
    at: float,
    *,
    host: str | None = None,
    reason: str | None = None,
    **values: Any,
) -> bool:
    """Let a move, which is locked, enter a state from the one that it has. Returns whether it had that.

    ``host``: the target of a new attempt. ``values``: further columns.
    """
    if reason is not None:
        reason = clean_text(reason, MOST_OF_REASON)
        values["reason"] = reason
    step = _JSON.encode(MoveStep(state, at, host, reason)).decode() + "\n"
    changed = (
        sa.update(moves)
        .where(moves.c.uuid == move.uuid, moves.c.state == move.state)
        .values(
            state=state,
            changed_at=at,
            owner=None,
            history=moves.c.history + sa.literal(step, sa.Text),
            **values,
        )
    )
    return connection.execute(changed).rowcount > 0


def tell_instance(
    connection: Connection,
    move: Move,
    at: float,
    told: str,
    place: MovePlace,
    reason: str | None = None,
    *,
    cells: tuple[str, str] | None = None,
) -> None:
    """Add a transition to the history of the instance of a move, which is locked.

    ``cells``: those of source and target, of a move to another cell.
    """
    told_line = transition_line(
        Transition(
            state=told,
            at=at,
            attempt=place.attempt,
            host=place.host,
            node=place.node,
            ordinal=place.selection.ordinal,
            reason=reason,
            by=move.by if told in (MOVING, NOT_MOVED) else None,
            kind=move.kind if told in OF_MOVES else None,
            cells=cells,
        )
    )
    of_it = instances.c.uuid == move.instance
    connection.execute(sa.update(instances).where(of_it).values(history=with_line(told_line, MOST_OF_GUESTS)))
    note_changes(connection, [move.instance], told_line)


def give_owner(connection: Connection, owner: str, taken: Collection[Move]) -> list[Move]:
    """Give moves, which are locked, an owner; returns them with it."""
    if taken:
        connection.execute(_OWN, [{"key": each.uuid, "new_owner": owner} for each in taken])
    return [msgspec.structs.replace(each, owner=owner, owner_epoch=each.owner_epoch + 1) for each in taken]


_OWN = (
    sa.update(moves)
    .where(moves.c.uuid == sa.bindparam("key"))
    .values(owner=sa.bindparam("new_owner"), owner_epoch=moves.c.owner_epoch + 1)
)


def lose(connection: Connection, uuid: str, reason: str, at: float) -> None:
    """Note that the guest of an instance, which is locked, does not run."""
    enter_state(connection, [uuid], LOST, at, reason)


def find_again(connection: Connection, uuid: str, at: float) -> None:
    """Note that the guest of an instance, which is locked, was started again: one that was lost is not."""
    locked = locked_instance(connection, uuid)
    if locked is not None and locked.state == LOST:
        enter_state(connection, [uuid], ACTIVE, at)


def put_on(connection: Connection, move: Move, place: MovePlace, selection: Selection, at: float) -> None:
    """Put an instance, which is locked, on a host of its move. ``selection``: what it holds."""
    locked = locked_instance(connection, move.instance)
    state = STOPPED if move.at_source == OFF else ACTIVE
    values = {
        "host": place.host,
        "node": place.node,
        "attempt": place.attempt,
        "selection": selection_text(selection),
        "spec": spec_text(place.spec),
        "flavor": clean_text(place.spec.flavor.name, MAX_HOST),
        "alternates": "[]",
        "reason": None,
        "state": state,
        "changed_at": at,
    }
    connection.execute(sa.update(instances).where(instances.c.uuid == move.instance).values(**values))
    evacuated = None if move.proof is None else f"evacuated: {move.proof.evidence}"
    tell_instance(connection, move, at, MOVED, place, evacuated)
    if locked is not None and locked.state != state:
        tell_instance(connection, move, at, state, place)


def stamp_of(connection: Connection, host: str, *, lock: bool = False) -> SessionStamp | None:
    """Return the stamp of the session of a host; None: it has never had one. ``lock``: nobody changes it."""
    name = session_name(host)
    found = read_stamps(connection, [name], lock=lock).get(name)
    return None if found is None else SessionStamp(*found)


def has_shown_life(connection: Connection, host: str, since: SessionStamp | None) -> bool:
    """Return whether the agent of a host has opened a session since its session had a stamp."""
    return stamp_of(connection, host) != since


def way_back(move: Move) -> str:
    """Return the state of a move that takes no further target: the instance stays on the source.

    A source that was told to stop its guest starts it again first, unless it is dead.
    """
    return RETURNING if move.at_source in (RUNS, OFF) or move.proof is not None else RESTARTING


def resume(connection: Connection, move: Move, at: float, **values: Any) -> None:
    """Have the source start its guest again, as nothing runs on the target; one that was stopped stays so.

    A source in another cell does either when a super conductor has told its cell.
    """
    if move.at_source == OFF and move.side is None:
        return_to_source(connection, move, at, **values)
    else:
        enter(connection, move, RESUMING, at, **values)


def return_to_source(connection: Connection, move: Move, at: float, **values: Any) -> None:
    """Put an instance, which is locked, back on the source, whose guest is as before the move."""
    assert move.target is not None
    # The claims are exchanged next; until then the instance holds the target, perhaps reshaped meanwhile.
    locked, holds = locked_instance(connection, move.instance), move.target.selection
    if locked is not None and locked.attempt == move.target.attempt and locked.selection is not None:
        holds = locked.selection
    put_on(connection, move, move.source, holds, at)
    enter(connection, move, UNDOING, at, **values)


def send_back(connection: Connection, rows: Collection[Row], at: float, reason: str) -> frozenset[str]:
    """Let instances whose host is given up go to the other host of their move, if that may have their guest.

    Those that wait for a word go back to the source, which has it stopped. Those that go over while they run
    count as lost on the target until that says that it has them. ``rows``: as those of `end_moves_of`, on the
    host that is given up. It is ordered to destroy what it has, and nobody waits for it. Returns the
    instances that are not on it any more.
    """
    back = set()
    for move, row in locked_moves_of(connection, rows):
        if go_on_without_source(connection, move, row.attempt, reason, at):
            back.add(row.uuid)
        elif (
            (move.state in _KEPT_FOR_IT or (move.state == RESUMING and move.side is None))
            and move.target is not None
            and row.attempt == move.target.attempt
            and not move.stays
        ):
            leave_target(connection, move, reason, at)
            back.add(row.uuid)
    return frozenset(back)


def leave_target(connection: Connection, move: Move, reason: str, at: float) -> None:
    """Let the instance of a move go back to the source, which may have it stopped, without its target.

    That is ordered to destroy what it has. A source that starts its guest already goes on with it.
    """
    assert move.target is not None
    order = DestroyOrder(move.instance, move.target.attempt, move.target.host)
    give_orders([order], at)(connection)
    keep_end(connection, move, reason, REVERTED, at)
    if move.state != RESUMING:
        resume(connection, move, at, reason=reason, ends_as=REVERTED)


def go_on_without_source(connection: Connection, move: Move, attempt: int, reason: str, at: float) -> bool:
    """Put an instance on the target of its move if its guest can run nowhere else: its source is dead.

    ``attempt``: that of the instance's row. It is lost until the target says that the guest runs. Returns
    whether its guest was going over.
    """
    if move.state not in GOING or attempt != move.source.attempt:
        return False
    assert move.target is not None
    give_orders([DestroyOrder(move.instance, move.source.attempt, move.source.host)], at)(connection)
    put_on(connection, move, move.target, move.target.selection, at)
    lose(connection, move.instance, reason, at)
    enter(connection, move, FREEING, at, reason=reason, ends_as=DONE)
    return True


def end_at_dead_host(connection: Connection, move: Move, attempt: int, reason: str, at: float) -> bool:
    """End a resize on the host of its instance, as the host is dead: the size of the instance's row stays.

    ``attempt``: that of the instance's row. The host is ordered to destroy the other guest. Returns whether
    the move ends now; what its conductor has under way ends by itself.
    """
    assert move.target is not None
    if attempt == move.target.attempt and move.state in (*_KEPT_FOR_IT, RESUMING, CLEANING):
        give_orders([DestroyOrder(move.instance, move.source.attempt, move.source.host)], at)(connection)
        enter(connection, move, FREEING, at, reason=reason, ends_as=DONE)
        return True
    if attempt == move.source.attempt and move.state in _BEFORE_TARGET:
        give_orders([DestroyOrder(move.instance, move.target.attempt, move.target.host)], at)(connection)
        keep_end(connection, move, reason, record.FAILED, at)
        enter(connection, move, RETURNING, at, reason=reason)
        return True
    return False


def leave_tidying(connection: Connection, move: Move, host: str, reason: str, at: float) -> bool:
    """End a move that waits for a host to destroy what it has, which is ordered to do so later.

    Returns whether the move, which is locked, waits for that host.
    """
    if move.state == CLEANING and move.source.host == host and move.side != ARRIVING:
        order = DestroyOrder(move.instance, move.source.attempt, host)
        to = FREEING
    elif (
        move.state == DISCARDING
        and move.target is not None
        and move.target.host == host
        and move.side != LEAVING
    ):
        order = DestroyOrder(move.instance, move.target.attempt, host)
        to = REVERTED if move.side == ARRIVING else FREEING
        if to == FREEING:
            keep_end(connection, move, reason, REVERTED, at)
    else:
        return False
    give_orders([order], at)(connection)
    enter(connection, move, to, at, reason=reason)
    return True


_BEFORE_TARGET = (STOPPING, AT_SOURCE_STOPPED, STARTING, RETRYING, RESTARTING)
"""States in which a resize on the host of its instance has stopped the guest, or is about to."""

_KEPT_FOR_IT = (SWITCHED, REVERTING, CONTINUING)
"""States in which the source keeps the stopped guest of an instance whose row is the target's."""


def keep_end(
    connection: Connection, move: Move, reason: str, result: str, at: float, code: str | None = None
) -> None:
    """Store the attempt of a move that has ended without a guest, once: no other attempt gets its number."""
    assert move.target is not None
    known = sa.select(build_attempts.c.attempt).where(
        build_attempts.c.instance_uuid == move.instance, build_attempts.c.attempt == move.target.attempt
    )
    if connection.execute(known).first() is not None:
        return
    ended = BuildAttempt(
        instance=move.instance,
        attempt=move.target.attempt,
        host=move.target.host,
        node=move.target.node,
        began=move.began,
        ended=at,
        result=result,
        reason=reason,
        code=code,
    )
    keep_attempts(connection, [ended])


def end_of_target(move: Move, result: str, at: float, reason: str | None) -> Attempt:
    """Return the end of the attempt of a move for the records."""
    assert move.target is not None
    return record.end_of(
        move.target.selection,
        result,
        at,
        run=move.run,
        request_id=move.by.request_id,
        instance=move.instance,
        reason=reason,
    )


def has_order(connection: Connection, place: MovePlace, instance: str) -> bool:
    """Return whether a host is ordered to destroy its guest of an instance already."""
    given = read_orders(connection, [place.host])
    return DestroyOrder(instance, place.attempt, place.host) in given


def end_moves_of(connection: Connection, rows: Collection[Row], at: float, reason: str) -> dict[str, Attempt]:
    """End the moves of instances that end, and order the other host of each to destroy what it has.

    Returns the ends of the attempts that were under way for the records, by instance.

    ``rows``: the columns `roost.state.cell_database.rows.PRESENT` of the instances, locked. The instances
    stay locked by their moves, whose claims are freed with theirs.
    """
    given = []
    ended = {}
    for move, row in locked_moves_of(connection, rows):
        if move.state in ENDED:
            continue
        if move.state in ON_TARGET:
            ended[move.instance] = end_of_target(move, record.ABANDONED, at, reason)
        other = other_place(move, row.attempt)
        if other is not None:
            given.append(DestroyOrder(move.instance, other.attempt, other.host))
        enter(connection, move, DELETED, at, reason=reason)
    give_orders(given, at)(connection)
    return ended


def locked_moves_of(connection: Connection, rows: Collection[Row]) -> list[tuple[Move, Row]]:
    """Lock the moves of some rows of instances; returns each with its row."""
    of_moves = {row.move: row for row in rows if row.move is not None}
    return [
        (move_of(found), of_moves[found.uuid])
        for some in in_batches(sorted(of_moves))
        for found in connection.execute(NAMED_MOVES.with_for_update(), {"uuids": some})
    ]
