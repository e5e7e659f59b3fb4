"""Moves of instances: read, and begun, confirmed and reverted by the words of operators.

An instance's column ``move`` is the lock: it is set when a move begins, and empty again when the move ends.
See `roost.model.move_states` for the states. `move_work` has the work of conductors, `move_reports` that of
hosts.
"""

from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.device_profiles import is_of_flavor
from roost.model.instance import (
    ACTIVE,
    IN_PLACE,
    LOST,
    POWERING_OFF,
    POWERING_ON,
    REBUILDING,
    REBUILDING_STOPPED,
    REBUILDS,
    SHELVING,
    STOPPED,
    AttemptKey,
    Instance,
    Requester,
)
from roost.model.move import (
    LIVE,
    DeathProof,
    Move,
    MoveKind,
    MovePlace,
    MoveRefused,
    MoveStep,
    awaited_host,
    has_attachments,
)
from roost.model.move_states import (
    AT_REST,
    CLEANING,
    DISCARDING,
    DONE,
    ENDED,
    FREEING,
    OFF,
    REQUESTED,
    RESTARTING,
    RESUMING,
    RETURNING,
    REVERTED,
    REVERTING,
    RUNS,
    SWITCHED,
    UNDOING,
)
from roost.model.request import RequestGroup
from roost.model.service_version import ATTACHED_MOVES, ATTACHMENTS
from roost.model.spec import Flavor, RequestSpec
from roost.state.cell_database.history import enter_state
from roost.state.cell_database.move_changes import (
    MOVE,
    end_at_dead_host,
    enter,
    go_on_without_source,
    leave_tidying,
    locked_instance,
    locked_move,
    lose,
    stamp_of,
)
from roost.state.cell_database.move_rows import MOVES, NAMED_MOVES, SOURCE, is_here, move_of, move_row
from roost.state.cell_database.nodes import find_disk_store, moves_live, resizes_in_place
from roost.state.cell_database.rows import decoded
from roost.state.cell_database.shelves import offload_without_host
from roost.state.cell_database.silent_hosts import checked_proof
from roost.state.cell_database.tables import instances, moves
from roost.state.leases import VACANT
from roost.storage import entering, in_batches, one_of_constants, short_read, transaction

PRUNED_AT_ONCE = 500
"""Moves that one transaction removes at most."""

CONFIRMED_AT_ONCE = 100
"""Moves that one transaction confirms at most."""

_STEP = msgspec.json.Decoder(MoveStep)


@short_read
def find_moves(connection: Connection, uuids: tuple[str, ...]) -> dict[str, Move]:
    """Return moves by uuid; unknown ones are left out."""
    return {
        row.uuid: move_of(row)
        for some in in_batches(uuids)
        for row in connection.execute(NAMED_MOVES, {"uuids": some})
    }


@transaction
def read_all_moves(connection: Connection) -> dict[str, Move]:
    """Return all moves of the cell by uuid, also those that have ended."""
    return {row.uuid: move_of(row) for row in connection.execute(MOVES)}


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
    # The other half is the move.
    query = query.where(is_here(SOURCE))
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
    """Remove moves that ended before ``older_than`` (seconds since the epoch). Returns their number.

    If it is `PRUNED_AT_ONCE` there may be more.
    """
    old = connection.execute(_OLD, {"before": older_than}).scalars().all()
    if old:
        connection.execute(sa.delete(moves).where(moves.c.uuid.in_(old)))
    return len(old)


_OLD = (
    sa.select(moves.c.uuid)
    .where(one_of_constants(moves.c.state, ENDED), moves.c.changed_at < sa.bindparam("before"))
    .limit(PRUNED_AT_ONCE)
)


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
    forced: bool = False,
    confirms: bool = True,
    flavor: Flavor | None = None,
    proof: DeathProof | None = None,
    groups: tuple[RequestGroup, ...] | None = None,
    attached: bool = True,
    across: bool = False,
    in_place: bool = False,
) -> Move | MoveRefused | None:
    """Lock an instance and accept its move, or say why not; None: the cell has no such instance.

    ``uuid``: drawn for the move. The answer of a repeated call is the move as it is now. ``forced``: no
    filter evaluates ``to_host``. ``flavor``: of the instance on the target; None: as before. ``proof``: that
    the source is dead, of an evacuation: see `roost.state.cell_database.silent_hosts.checked_proof`; it gets
    the store of its disks. An instance that is being shelved has no guest any more by it: it is shelved
    without its host, and does not move.
    ``groups``: the request groups of the new flavor's device profile, if agents attach its devices; None:
    they do not. ``attached``: whether instances with ports or accelerators may move. ``across``: the
    target may be in another cell. ``in_place``: the instance's own host may be the target, if its driver
    keeps two sizes of a guest.
    """
    locked = locked_instance(connection, instance)
    if locked is None:
        return None
    there = connection.execute(NAMED_MOVES, {"uuids": [uuid]}).one_or_none()
    if there is not None:
        return move_of(there)
    if proof is not None:
        checked = checked_proof(connection, locked.host or "", proof)
        if isinstance(checked, MoveRefused):
            return checked
        proof = checked
    if locked.move is not None:
        if proof is not None:
            _end_at_dead_source(connection, locked, proof, at)
        return MoveRefused(_why_locked(connection, locked.move), is_early=True)
    if proof is not None and locked.state == SHELVING:
        reason = f"its host is dead: {proof.evidence}"
        key = AttemptKey(locked.uuid, locked.attempt)
        offload_without_host(connection, [key], locked.host or "", at, reason)
        return MoveRefused(SHELVED_WITHOUT_HOST, is_early=True)
    if (refusal := refusal_of(locked, of_dead=proof is not None)) is not None:
        return MoveRefused(refusal)
    assert locked.spec is not None and locked.selection is not None
    spec = locked.spec if flavor is None else with_flavor(locked.spec, flavor, groups)
    if across and (has_attachments(locked.spec) or has_attachments(spec)):
        return MoveRefused(STAYS_IN_CELL)
    if not attached and (has_attachments(locked.spec) or has_attachments(spec)):
        return MoveRefused(f"{ATTACHED_MOVES.what} once all processes have version {ATTACHED_MOVES.since}")
    store = find_disk_store(locked.node or "")(connection)
    if proof is not None:
        proof = msgspec.structs.replace(proof, store=store)
    elif store is None:
        return MoveRefused(keeps_no_disks(locked.host))
    if kind == LIVE and locked.state != ACTIVE:
        return MoveRefused(f"the instance is {locked.state}; only one that is active moves while it runs")
    if kind == LIVE and has_attachments(locked.spec):
        return MoveRefused("instances with ports or accelerators do not move while they run yet")
    if kind == LIVE and not moves_live(locked.node or "")(connection):
        return MoveRefused(f"guests of host {locked.host} do not move while they run")
    if in_place:
        refusal = _why_not_in_place(connection, locked, spec)
        if refusal is not None and to_host == locked.host:
            return MoveRefused(refusal)
        in_place = refusal is None
    elif to_host == locked.host:
        return MoveRefused(f"the instance is on host {to_host} already")
    move = Move(
        uuid=uuid,
        instance=instance,
        kind=kind,
        state=REQUESTED,
        source=MovePlace(locked.attempt, locked.selection, locked.spec),
        spec=spec,
        by=by,
        began=at,
        changed_at=at,
        to_host=to_host,
        forced=forced,
        in_place=in_place,
        confirms=confirms,
        at_source=OFF if locked.state in _TO_REST else RUNS if proof is None else AT_REST,
        proof=proof,
        across=across,
        consumer=locked.consumer,
    )
    if proof is not None:
        _note_death(connection, locked, proof, at)
    connection.execute(sa.insert(moves), move_row(move))
    connection.execute(sa.update(instances).where(instances.c.uuid == instance).values(move=uuid))
    return move


def refusal_of(instance: Instance, *, of_dead: bool = False) -> str | None:
    """Return why an instance cannot move; None if it can, unless a move of it is under way.

    ``of_dead``: its host is dead: one whose guest is lost may move, or was to be stopped or started.
    """
    if instance.state not in IN_PLACE and not (of_dead and instance.state in _OF_DEAD):
        return f"the instance is {instance.state}; only an active or stopped one can move"
    if instance.spec is None or instance.selection is None or instance.selection.generation is None:
        return "the cell does not know what the instance was built from and what it holds"
    return None


def keeps_no_disks(host: str | None) -> str:
    """Return why the instances of a host cannot move whose driver keeps no disks."""
    return f"the driver of host {host} does not keep the disks of guests that move"


SHELVED_WITHOUT_HOST = "its host is dead, and it is shelved without it: it can be unshelved on another one"
"""Why an instance that was to be shelved does not move."""

STAYS_IN_CELL = "instances with ports or accelerators do not move to other cells yet"


def _why_not_in_place(connection: Connection, instance: Instance, spec: RequestSpec) -> str | None:
    """Return why an instance cannot have another size on its own host; None if it can."""
    assert instance.spec is not None
    if not resizes_in_place(instance.node or "")(connection):
        return f"the driver of host {instance.host} does not keep two sizes of a guest"
    if has_attachments(instance.spec) or has_attachments(spec):
        return "an instance with ports or accelerators is resized to another host"
    return None


def with_flavor(spec: RequestSpec, flavor: Flavor, groups: tuple[RequestGroup, ...] | None) -> RequestSpec:
    """Return a request spec with another flavor. ``groups``: see `begin_move`.

    The request groups of the former flavor's device profile go with it; those of ports stay.
    """
    kept = tuple(each for each in spec.requested_resources if not is_of_flavor(each.suffix))
    version = spec.needs_version if groups is None else max(spec.needs_version, ATTACHMENTS.since)
    return msgspec.structs.replace(
        spec, flavor=flavor, requested_resources=(*kept, *(groups or ())), needs_version=version
    )


_OF_DEAD = (LOST, POWERING_OFF, POWERING_ON, *REBUILDS)
_TO_REST = (STOPPED, POWERING_OFF, REBUILDING_STOPPED)
"""States of instances whose user wants their guests stopped."""


def _note_death(connection: Connection, instance: Instance, proof: DeathProof, at: float) -> None:
    """Note that the guest of an instance, which is locked, does not run any more."""
    reason = f"its host is dead: {proof.evidence}"
    if instance.state in (ACTIVE, POWERING_ON, REBUILDING):
        lose(connection, instance.uuid, reason, at)
    elif instance.state in _TO_REST and instance.state != STOPPED:
        enter_state(connection, [instance.uuid], STOPPED, at, reason)


def _end_at_dead_source(connection: Connection, instance: Instance, proof: DeathProof, at: float) -> None:
    """End a move that waits for its source to start the guest again, or to say whether it has the guest.

    One that waits for its other host, to destroy what that had, ends if that is silent too.
    """
    row = connection.execute(NAMED_MOVES.with_for_update(), {"uuids": [instance.move]}).one_or_none()
    reason = f"its host is dead: {proof.evidence}"
    if row is None or go_on_without_source(connection, move_of(row), instance.attempt, reason, at):
        return
    move = move_of(row)
    if move.stays and end_at_dead_host(connection, move, instance.attempt, reason, at):
        _note_death(connection, instance, proof, at)
    elif row.state == RESTARTING:
        _note_death(connection, instance, proof, at)
        enter(connection, move, RETURNING, at, reason=reason)
    elif row.state in (CLEANING, DISCARDING) and (other := awaited_host(move)) is not None:
        # Its order to destroy outlives the move, which may else lock the instance for ever.
        stamp = stamp_of(connection, other)
        if stamp is None or stamp.holder == VACANT:
            leave_tidying(connection, move, other, f"host {other} is silent, and {reason}", at)


def _why_locked(connection: Connection, uuid: str) -> str:
    row = connection.execute(NAMED_MOVES, {"uuids": [uuid]}).one_or_none()
    if row is not None and row.state == CLEANING:
        return (
            f"move {uuid} of the instance ends when host {row.source_host} has destroyed what it had, or is "
            "given up"
        )
    if row is not None and row.state == SWITCHED:
        return f"move {uuid} of the instance waits to be confirmed or reverted"
    if row is not None and row.state == RETURNING:
        return f"move {uuid} of the instance is about to end: ask again in some seconds"
    return f"move {uuid} of the instance is under way"


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
    # A guest that is lost may have no copy but the one that the source keeps.
    .join(
        instances,
        sa.and_(instances.c.uuid == moves.c.instance_uuid, one_of_constants(instances.c.state, IN_PLACE)),
    )
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
