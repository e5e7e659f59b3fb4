"""Moves of instances: accepted, owned by conductors, ended. See `roost.model.move` for their states.

An instance's column ``move`` is the lock: it is set when a move begins, and empty again when the move ends.
Each write names the state from which the move goes on, and a conductor's its ownership as well: a late or
repeated write changes nothing. Whoever writes locks the instance first, then the move.
"""

from collections.abc import Collection
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import (
    ACTIVE,
    LOST,
    MOVED,
    MOVING,
    NOT_MOVED,
    OF_MOVES,
    DestroyOrder,
    Instance,
    Requester,
    Transition,
)
from roost.model.move import (
    AT_REST,
    CLEANING,
    DELETED,
    DISCARDING,
    DONE,
    ENDED,
    FAILED_MOVE,
    FOR_CONDUCTORS,
    FREEING,
    PREPARING,
    REQUESTED,
    RESTARTING,
    RESUMING,
    RETURNING,
    REVERTED,
    REVERTING,
    RUNS,
    SWITCHED,
    UNDOING,
    DeathProof,
    Move,
    MoveKind,
    MovePlace,
    MoveRefused,
    MoveStep,
    SessionStamp,
    other_place,
)
from roost.model.spec import Flavor, Selection
from roost.model.text import clean_text
from roost.state.cell_database.history import MOST_OF_GUESTS, MOST_OF_REASON, line, transition_line, with_line
from roost.state.cell_database.host_work import give_orders, session_name
from roost.state.cell_database.move_limits import MoveLimits, may_have_target
from roost.state.cell_database.move_rows import MOVES, move_of, move_row
from roost.state.cell_database.reported import MAX_HOST
from roost.state.cell_database.rows import (
    INSTANCES,
    Row,
    alternates_text,
    decoded,
    instance_of,
    selection_text,
    spec_text,
)
from roost.state.cell_database.state_changes import note_changes
from roost.state.cell_database.tables import build_attempts, instances, moves
from roost.state.leases import VACANT, holders, read_stamps
from roost.storage import entering, in_batches, one_of, one_of_constants, short_read, transaction

MOVE = "move"
"""In place of a state that instances enter: a move may want work of a conductor or of a host."""

CONFIRMED_AT_ONCE = 100
"""Moves that one transaction confirms at most."""

_JSON = msgspec.json.Encoder()
_STEP = msgspec.json.Decoder(MoveStep)

# Reads


@short_read
def find_moves(connection: Connection, uuids: tuple[str, ...]) -> dict[str, Move]:
    """Return moves by uuid; unknown ones are left out."""
    return {
        row.uuid: move_of(row)
        for some in in_batches(uuids)
        for row in connection.execute(_NAMED, {"uuids": some})
    }


@transaction
def read_all_moves(connection: Connection) -> dict[str, Move]:
    """Return all moves of the cell by uuid, also those that have ended."""
    return {row.uuid: move_of(row) for row in connection.execute(MOVES)}


@short_read
def moves_of_instances(connection: Connection, uuids: tuple[str, ...]) -> dict[str, Move]:
    """Return the moves that are under way of some instances, by instance."""
    return {
        row.instance_uuid: move_of(row)
        for some in in_batches(uuids)
        for row in connection.execute(_OF_INSTANCES, {"uuids": some})
    }


class MoveFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A selection of moves.

    - ``under_way``: True: those that have not ended; False: those that have. ``host``: source or target.
    - ``project_id``: the project of the instances, which are there then.
    - ``after``: begin (seconds since the epoch) and uuid of the move after which the list goes on.
    """

    instance: str | None = None
    under_way: bool | None = None
    host: str | None = None
    project_id: str | None = None
    after: tuple[float, str] | None = None


@transaction
def list_moves(connection: Connection, wanted: MoveFilter, most: int) -> list[Move]:
    """Return the newest moves of a selection, at most ``most``."""
    query = MOVES.order_by(moves.c.began.desc(), moves.c.uuid).limit(most)
    if wanted.instance is not None:
        query = query.where(moves.c.instance_uuid == wanted.instance)
    if wanted.under_way is not None:
        query = query.where(moves.c.state.not_in(ENDED) if wanted.under_way else moves.c.state.in_(ENDED))
    if wanted.project_id is not None:
        of_project = sa.select(instances.c.uuid).where(instances.c.project_id == wanted.project_id)
        query = query.where(moves.c.instance_uuid.in_(of_project))
    if wanted.after is not None:
        began, uuid = wanted.after
        query = query.where((moves.c.began < began) | ((moves.c.began == began) & (moves.c.uuid > uuid)))
    if wanted.host is not None:
        query = query.where((moves.c.source_host == wanted.host) | (moves.c.target_host == wanted.host))
    return [move_of(row) for row in connection.execute(query)]


@transaction
def read_steps(connection: Connection, uuid: str) -> list[MoveStep]:
    """Return the states that a move entered, in order."""
    text = connection.execute(sa.select(moves.c.history).where(moves.c.uuid == uuid)).scalar()
    found = [decoded(_STEP, each, None, f"history of move {uuid}") for each in (text or "").split("\n")[:-1]]
    return [each for each in found if each is not None]


@transaction
def prune_moves(connection: Connection, older_than: float) -> int:
    """Remove moves that ended before ``older_than`` (seconds since the epoch). Returns their number."""
    old = sa.delete(moves).where(one_of_constants(moves.c.state, ENDED), moves.c.changed_at < older_than)
    return connection.execute(old).rowcount


_NAMED = MOVES.where(one_of(moves.c.uuid, "uuids"))
_OF_INSTANCES = MOVES.where(one_of(moves.c.instance_uuid, "uuids"), moves.c.state.not_in(ENDED))


# The user's words


@entering(MOVE)
def begin_move(
    connection: Connection,
    *,
    uuid: str,
    instance: str,
    kind: MoveKind,
    by: Requester,
    at: float,
    to_host: str | None = None,
    confirms: bool = True,
    flavor: Flavor | None = None,
    proof: DeathProof | None = None,
) -> Move | MoveRefused | None:
    """Lock an instance and accept its move, or say why not; None: the cell has no such instance.

    ``uuid``: drawn for the move. The answer of a repeated call is the move as it is now. ``flavor``: of the
    instance on the target; None: as before. ``proof``: that the source is dead, of an evacuation; it gets the
    stamp of the source's session.
    """
    locked = locked_instance(connection, instance)
    if locked is None:
        return None
    there = connection.execute(_NAMED, {"uuids": [uuid]}).one_or_none()
    if there is not None:
        return move_of(there)
    if locked.move is not None:
        return MoveRefused(f"move {locked.move} of the instance is under way")
    if (refusal := refusal_of(locked, lost_too=proof is not None)) is not None:
        return MoveRefused(refusal)
    assert locked.spec is not None and locked.selection is not None
    if proof is not None:
        proof = msgspec.structs.replace(proof, stamp=stamp_of(connection, locked.host or ""))
        if proof.stamp is not None and proof.stamp.holder != VACANT:
            return MoveRefused(f"the agent of host {locked.host} has not been silent for long enough")
    if to_host == locked.host:
        return MoveRefused(f"the instance is on host {to_host} already")
    move = Move(
        uuid=uuid,
        instance=instance,
        kind=kind,
        state=REQUESTED,
        source=MovePlace(locked.attempt, locked.selection, locked.spec),
        spec=locked.spec if flavor is None else msgspec.structs.replace(locked.spec, flavor=flavor),
        by=by,
        began=at,
        changed_at=at,
        to_host=to_host,
        confirms=confirms,
        at_source=RUNS if proof is None else AT_REST,
        proof=proof,
    )
    if proof is not None and locked.state == ACTIVE:
        lose(connection, instance, f"its host is dead: {proof.evidence}", at)
    connection.execute(sa.insert(moves), move_row(move))
    connection.execute(sa.update(instances).where(instances.c.uuid == instance).values(move=uuid))
    return move


def refusal_of(instance: Instance, *, lost_too: bool = False) -> str | None:
    """Return why an instance cannot move; None if it can, unless a move of it is under way.

    ``lost_too``: one whose guest is lost may.
    """
    if instance.state != ACTIVE and not (lost_too and instance.state == LOST):
        return f"the instance is {instance.state}; only an active one can move"
    if instance.spec is None or instance.selection is None or instance.selection.generation is None:
        return "the cell does not know what the instance was built from and what it holds"
    if instance.spec.requested_networks or instance.spec.requested_resources:
        return "instances with ports or accelerators cannot move yet"
    return None


@entering(MOVE)
def confirm_move(connection: Connection, uuid: str, at: float) -> Move | MoveRefused | None:
    """Confirm a move: the source destroys what it keeps. None: the cell has no such move."""
    return _settle(connection, uuid, CLEANING, at, confirms=True, ends_as=DONE)


@entering(MOVE)
def revert_move(connection: Connection, uuid: str, at: float) -> Move | MoveRefused | None:
    """Have an instance that was moved go back to the source. None: the cell has no such move."""
    return _settle(connection, uuid, REVERTING, at, ends_as=REVERTED)


@entering(MOVE)
def confirm_waiting(connection: Connection, since: float, at: float) -> list[str]:
    """Confirm the moves that have waited for a word since ``since``; returns their uuids.

    Both are in seconds since the epoch.
    """
    waiting = connection.execute(_WAITING, {"since": since}).scalars().all()
    confirmed = [_settle(connection, uuid, CLEANING, at, confirms=True, ends_as=DONE) for uuid in waiting]
    return [each.uuid for each in confirmed if isinstance(each, Move)]


_WAITING = (
    sa.select(moves.c.uuid)
    .where(moves.c.state == SWITCHED, moves.c.changed_at < sa.bindparam("since"))
    .order_by(moves.c.instance_uuid)
    .limit(CONFIRMED_AT_ONCE)
)

_SETTLED = {
    CLEANING: (DONE, "confirmed", (CLEANING, FREEING, DONE)),
    REVERTING: (REVERTED, "reverted", (REVERTING, RESUMING, UNDOING, DISCARDING, FREEING, REVERTED)),
}
"""By the state that a settlement begins with: its end, its word, and the states in which it is made."""


def _settle(
    connection: Connection, uuid: str, to: str, at: float, **values: Any
) -> Move | MoveRefused | None:
    move = locked_move(connection, uuid)
    if move is None:
        return None
    end, word, made = _SETTLED[to]
    if move.state == SWITCHED:
        if enter(connection, move, to, at, **values):
            return msgspec.structs.replace(move, state=to, ends_as=end)
    elif move.state in made and move.ends_as == end:
        return move
    return MoveRefused(f"the move is {move.state}; only one that is {SWITCHED} can be {word}")


# The work of conductors


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
    if taken:
        connection.execute(_TAKE, [{"key": each.uuid, "new_owner": owner} for each in taken])
    return [msgspec.structs.replace(each, owner=owner, owner_epoch=each.owner_epoch + 1) for each in taken]


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
_TAKEABLE = MOVES.where(one_of(moves.c.uuid, "uuids"), *_FREE).with_for_update(skip_locked=True)
_TAKE = (
    sa.update(moves)
    .where(moves.c.uuid == sa.bindparam("key"))
    .values(owner=sa.bindparam("new_owner"), owner_epoch=moves.c.owner_epoch + 1)
)


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
) -> bool | None:
    """Let a move go on with a target whose claim is made; returns whether its owner still had it.

    None: source, target or cell have as many moves as ``limits`` allow; nothing is changed.
    """
    if limits is not None and not may_have_target(connection, move, selection.host, limits):
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
    enter(connection, move, PREPARING, at, host=target.host, **values)
    tell_instance(connection, move, at, MOVING, target, None if move.target is None else move.reason)
    return True


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
    if locked_instance(connection, move.instance) is None or not _is_owned(connection, move):
        return False
    enter(connection, move, to, at, reason=reason)
    values: dict[str, object] = {}
    if holds is not None:
        values["selection"] = selection_text(holds)
    if to in ENDED:
        values["move"] = None
    if values:
        connection.execute(sa.update(instances).where(instances.c.uuid == move.instance).values(**values))
    if to == FAILED_MOVE:
        tell_instance(connection, move, at, NOT_MOVED, move.source, move.reason)
    return True


def stamp_of(connection: Connection, host: str) -> SessionStamp | None:
    """Return the stamp of the session of a host; None: it has never had one."""
    name = session_name(host)
    found = read_stamps(connection, [name]).get(name)
    return None if found is None else SessionStamp(*found)


def has_shown_life(connection: Connection, host: str, since: SessionStamp | None) -> bool:
    """Return whether the agent of a host has opened a session since its session had a stamp."""
    return stamp_of(connection, host) != since


def way_back(move: Move) -> str:
    """Return the state of a move that takes no further target: the instance stays on the source.

    A source that was told to stop its guest starts it again first, unless it is dead.
    """
    return RETURNING if move.at_source == RUNS or move.proof is not None else RESTARTING


def _is_owned(connection: Connection, move: Move) -> bool:
    return connection.execute(_owned(move).with_for_update()).first() is not None


def _owned(move: Move) -> sa.Select[tuple[str]]:
    return sa.select(moves.c.uuid).where(
        moves.c.uuid == move.uuid,
        moves.c.state == move.state,
        moves.c.owner == move.owner,
        moves.c.owner_epoch == move.owner_epoch,
    )


# The ends of instances


def end_moves_of(connection: Connection, rows: Collection[Row], at: float, reason: str) -> None:
    """End the moves of instances that end, and order the other host of each to destroy what it has.

    ``rows``: the columns `roost.state.cell_database.rows.PRESENT` of the instances, locked. The instances
    stay locked by their moves, whose claims are freed with theirs.
    """
    of_moves = {row.move: row for row in rows if row.move is not None}
    if not of_moves:
        return
    given = []
    for some in in_batches(sorted(of_moves)):
        for found in connection.execute(_NAMED.with_for_update(), {"uuids": some}).all():
            move, row = move_of(found), of_moves[found.uuid]
            if move.state in ENDED:
                continue
            other = other_place(move, row.attempt)
            if other is not None:
                given.append(DestroyOrder(move.instance, other.attempt, other.host))
            enter(connection, move, DELETED, at, reason=reason)
    give_orders(given, at)(connection)


# For all that write moves


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
    row = connection.execute(_NAMED.with_for_update(), {"uuids": [uuid]}).one_or_none()
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
    connection: Connection, move: Move, at: float, told: str, place: MovePlace, reason: str | None = None
) -> None:
    """Add a transition to the history of the instance of a move, which is locked."""
    line = transition_line(
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
        )
    )
    of_it = instances.c.uuid == move.instance
    connection.execute(sa.update(instances).where(of_it).values(history=with_line(line, MOST_OF_GUESTS)))
    note_changes(connection, [move.instance], line)


def lose(connection: Connection, uuid: str, reason: str, at: float) -> None:
    """Note that the guest of an instance, which is locked, does not run."""
    reason = clean_text(reason)
    told = line(LOST, at, reason)
    values = {"state": LOST, "reason": reason, "changed_at": at, "history": with_line(told)}
    connection.execute(sa.update(instances).where(instances.c.uuid == uuid).values(**values))
    note_changes(connection, [uuid], told)


def put_on(connection: Connection, move: Move, place: MovePlace, selection: Selection, at: float) -> None:
    """Put an instance, which is locked, on a host of its move. ``selection``: what it holds."""
    locked = locked_instance(connection, move.instance)
    values = {
        "host": place.host,
        "node": place.node,
        "attempt": place.attempt,
        "selection": selection_text(selection),
        "spec": spec_text(place.spec),
        "flavor": clean_text(place.spec.flavor.name, MAX_HOST),
        "alternates": "[]",
        "reason": None,
        "state": ACTIVE,
        "changed_at": at,
    }
    connection.execute(sa.update(instances).where(instances.c.uuid == move.instance).values(**values))
    tell_instance(connection, move, at, MOVED, place)
    if locked is not None and locked.state != ACTIVE:
        tell_instance(connection, move, at, ACTIVE, place)
