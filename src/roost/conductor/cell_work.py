"""The work of a cell's conductor: moves failed builds to alternates, frees the claims of destroyed instances.

Several conductors may work for one cell. Each takes instances that want work under its lease, and each of its
writes for one of them names its ownership. An instance that has changed meanwhile is dropped: another
conductor owns it, or its user has deleted it.
"""

from collections.abc import Sequence

import msgspec

from roost.conductor.backoff import Backoff
from roost.conductor.claim_release import free
from roost.conductor.context import CellConductorContext
from roost.conductor.failed_instance import all_reasons, claimed_by, follow_claim, placed_by, spec_of
from roost.conductor.moves.queue import MoveQueue
from roost.conductor.owned_work import OwnedWork
from roost.conductor.shelved_instance import select_host
from roost.ledger import LedgerError
from roost.model.instance import (
    ABANDONED,
    DESTROYED,
    FAILED,
    OFFLOADED,
    UNSHELVING,
    AttemptKey,
    Instance,
)
from roost.model.move import ARRIVING, LEAVING, Side
from roost.model.record import FAILED as BUILD_FAILED
from roost.model.record import end_of
from roost.placement.errors import PlacementError
from roost.process.logs import RequestIds, serving
from roost.process.metrics import catalogue as metrics
from roost.scheduler.errors import NoAlternate, NoValidHost, SchedulerError, StaleClaim
from roost.scheduler.selection.claim_result import ClaimVerdict, one_line, result_of
from roost.scheduler.selection.replacement import AlternateRequest
from roost.state.cell_database.arrivals import find_instances
from roost.state.cell_database.building import ended_attempts_of, reason_of
from roost.state.cell_database.conductor_work import (
    Ownership,
    abandon_instance,
    find_wanting_work,
    put_in_error,
    reassign_instance,
    take_work,
)
from roost.state.cell_database.deletions import forget_destroyed
from roost.state.cell_database.move_limits import MoveLimits
from roost.state.cell_database.moves import find_moves
from roost.state.cell_database.shelves import assign_unshelved, put_on_shelf
from roost.state.leases import Tenure
from roost.storage import StorageError

MOST = 1000
"""Instances that a conductor takes in one transaction, about."""


_TO_PLACE = (FAILED, UNSHELVING)
"""States of instances that want a host."""


class CellQueue(OwnedWork[Instance]):
    """The instances of one cell that one conductor owns and has to work on, and the moves of others.

    ``move_limits``: the limits of moves at once.
    """

    def __init__(
        self,
        cell: str,
        tenure: Tenure,
        backoff: Backoff,
        move_limits: MoveLimits = MoveLimits(),  # noqa: B008 - it is frozen
    ) -> None:
        super().__init__(cell, tenure, backoff)
        self.moves = MoveQueue(cell, tenure, backoff, move_limits)


async def work_through(context: CellConductorContext, work: CellQueue) -> None:
    """Do all work that is due now. Raises `StorageError` and what placement raises."""
    while True:
        holder = work.tenure.holder
        if not work.tenure.holds(context.monotonic()):
            return
        work.own(holder, ())
        wanting = await context.read(work.database, find_wanting_work(holder, MOST + work.owned))
        new = tuple(uuid for uuid in wanting if not work.owns(uuid))
        if new:
            work.own(holder, await context.write(work.database, take_work(holder, new)))
        await _look_again(context, work)
        now = context.monotonic()
        due = [each for state in _TO_PLACE for each in work.in_state(state) if work.is_due(each.uuid, now)]
        if due:
            await context.together([_move(context, work, each) for each in due])
        await _finish(context, work)
        if len(new) < MOST:
            return


async def _finish(context: CellConductorContext, work: CellQueue) -> None:
    """Free the claims of ended instances, and finish them.

    Raises what placement raises if it refuses all of one kind.
    """
    refusal: Exception | None = None
    for finish, ended in (
        (_forget, work.in_state(DESTROYED)),
        (_end_in_error, work.in_state(ABANDONED)),
        (_shelve, work.in_state(OFFLOADED)),
    ):
        try:
            if ended:
                await finish(context, work, ended)
        except (StorageError, LedgerError):
            raise
        except Exception as error:
            refusal = error
    if refusal is not None:
        raise refusal


async def _look_again(context: CellConductorContext, work: CellQueue) -> None:
    """Read instances again whose moves were postponed: others may own them now, or they are deleted."""
    now = context.monotonic()
    due = {
        each.uuid: each
        for state in _TO_PLACE
        for each in work.in_state(state)
        if work.was_postponed(each.uuid) and work.is_due(each.uuid, now)
    }
    if due:
        there = await context.read(work.database, find_instances(tuple(due)))
        work.drop([uuid for uuid, each in due.items() if there.get(uuid) != each])


async def _move(context: CellConductorContext, work: CellQueue, instance: Instance) -> None:
    """Move a failed instance to an alternate, give it up, or postpone the decision.

    An error concerns this instance alone, unless a database fails. Raises `StorageError`, `LedgerError`.
    """
    try:
        await (_unshelve if instance.state == UNSHELVING else _move_now)(context, work, instance)
    except (StorageError, LedgerError):
        raise
    except Exception as error:
        metrics.MOVES.labels("postponed").inc()
        now = context.monotonic()
        failures = work.postpone(instance.uuid, now, error)
        values = {"cell": work.cell, "instance": instance.uuid, "request_id": instance.request_id}
        warn(context, "an instance could not be moved", error, failures, **values)


async def _move_now(context: CellConductorContext, work: CellQueue, instance: Instance) -> None:
    hopeless = work.hopeless(instance.uuid)
    if hopeless is not None:
        await _give_up(context, work, instance, [hopeless], recorded=False)
        return None
    run, request_id = placed_by(instance)
    try:
        with serving(RequestIds(request_id)):
            found = await context.scheduler.use_alternate(
                AlternateRequest(
                    spec_of(instance),
                    instance.consumer,
                    claimed_by(instance, work.cell),
                    instance.alternates,
                    reason=instance.reason or "",
                    run=run,
                    request_id=request_id,
                    of_instance="" if instance.consumer == instance.uuid else instance.uuid,
                )
            )
    except NoAlternate as none:
        metrics.MOVES.labels("refused").inc(len(none.tries))
        refusals = [f"alternate {each.host}: {each.refusal}" for each in none.tries]
        await _give_up(context, work, instance, refusals or ["no alternate is left"])
        return None
    except (SchedulerError, PlacementError) as error:
        result = result_of(error)
        if result.verdict is ClaimVerdict.RETRY:
            raise
        if isinstance(error, StaleClaim) and await follow_claim(context, work.database, instance):
            # Its row has changed: it is taken again as the row is now.
            return work.drop([instance.uuid])
        await _give_up(context, work, instance, [result.reason or ""], recorded=False)
        return None
    assert found.selected is not None
    metrics.MOVES.labels("refused").inc(len(found.tries) - 1)
    reassign = reassign_instance(
        key=AttemptKey(instance.uuid, instance.attempt),
        selection=found.selected,
        alternates=found.alternates,
        at=context.clock(),
        owner=_ownership(instance),
    )
    if await context.write(work.database, reassign):
        metrics.MOVES.labels("moved").inc()
    else:
        _moved_on(context, work, instance)
    return work.drop([instance.uuid])


async def _unshelve(context: CellConductorContext, work: CellQueue, instance: Instance) -> None:
    """Claim a host for a shelved instance; without one it stays on the shelf, with the reason."""
    assert instance.shelf is not None
    hopeless = work.hopeless(instance.uuid)
    if hopeless is not None:
        return await _stay_shelved(context, work, instance, hopeless)
    try:
        found = await select_host(context, work.database, work.cell, instance)
    except NoValidHost as none:
        return await _stay_shelved(context, work, instance, f"No valid host was found: {none.reason}")
    except (SchedulerError, PlacementError) as error:
        result = result_of(error)
        if result.verdict is ClaimVerdict.RETRY:
            raise
        return await _stay_shelved(context, work, instance, result.reason or "")
    if found is not None:
        assign = assign_unshelved(
            unshelved=instance,
            selection=found.selected,
            alternates=found.alternates,
            run=found.run,
            at=context.clock(),
        )
        if not await context.write(work.database, assign):
            _moved_on(context, work, instance)
    return work.drop([instance.uuid])


async def _stay_shelved(
    context: CellConductorContext, work: CellQueue, instance: Instance, reason: str
) -> None:
    """Look for no further host. What an earlier owner has claimed is freed next."""
    abandon = abandon_instance(
        key=AttemptKey(instance.uuid, instance.attempt),
        reason=reason,
        at=context.clock(),
        owner=_ownership(instance),
        state=UNSHELVING,
    )
    if not await context.write(work.database, abandon):
        _moved_on(context, work, instance)
        return work.drop([instance.uuid])
    return await _end_in_error(context, work, [instance])


async def _shelve(context: CellConductorContext, work: CellQueue, offloaded: Sequence[Instance]) -> None:
    """Free the claims of instances whose guests are gone, then put them on the shelf."""
    freed = {each.uuid: each.consumer for each in await free(context, offloaded)}
    await context.write(work.database, put_on_shelf(freed, context.clock()))
    work.drop([*freed])


async def _give_up(
    context: CellConductorContext,
    work: CellQueue,
    instance: Instance,
    refusals: Sequence[str],
    *,
    recorded: bool = True,
) -> None:
    """Make no further attempt: free the instance's claim and put it in error, with all reasons.

    ``recorded``: the scheduler has recorded the end of the attempt.
    """
    ended = await context.read(work.database, ended_attempts_of(instance.uuid))
    reasons = all_reasons([reason_of(each) for each in ended], refusals)
    abandon = abandon_instance(
        key=AttemptKey(instance.uuid, instance.attempt),
        reason=reasons,
        at=context.clock(),
        owner=_ownership(instance),
    )
    if not await context.write(work.database, abandon):
        # If it is deleted, or another conductor has moved it, this one must not free its claim.
        _moved_on(context, work, instance)
        work.drop([instance.uuid])
        return
    if not recorded:
        _record_failure(context, work, instance)
    metrics.MOVES.labels("given_up").inc()
    await _end_in_error(context, work, [instance])


async def _end_in_error(
    context: CellConductorContext, work: CellQueue, abandoned: Sequence[Instance]
) -> None:
    """Free the claims of instances for which no further attempt is made, then put them in error.

    One that was shelved is shelved again.
    """
    # If the write that frees fails, they are still abandoned at the next look.
    work.own(work.tenure.holder, [msgspec.structs.replace(each, state=ABANDONED) for each in abandoned])
    arriving = await _of_sides(context, work, abandoned, ARRIVING)
    # What the move holds is in the cell of its source, which frees it.
    alone = [
        msgspec.structs.replace(each, move=None) if each.uuid in arriving else each for each in abandoned
    ]
    uuids = tuple(each.uuid for each in await free(context, alone))
    shelved = {each.uuid: each.consumer for each in alone if each.shelf is not None and each.uuid in uuids}
    await context.write(work.database, put_in_error(uuids, context.clock()))
    if shelved:
        await context.write(work.database, put_on_shelf(shelved, context.clock()))
    work.drop(uuids)


async def _forget(context: CellConductorContext, work: CellQueue, destroyed: Sequence[Instance]) -> None:
    """Free the claims of instances that are destroyed, then forget them.

    Those of an instance on its way to another cell are freed when both cells have destroyed what they had.
    """
    crossing = await _of_sides(context, work, destroyed, ARRIVING, LEAVING)
    freed = await free(context, [each for each in destroyed if each.uuid not in crossing])
    uuids = (*crossing, *(each.uuid for each in freed))
    await context.write(work.database, forget_destroyed(uuids, context.clock()))
    work.drop(uuids)


async def _of_sides(
    context: CellConductorContext, work: CellQueue, ended: Sequence[Instance], *sides: Side
) -> frozenset[str]:
    """Return those of some instances whose moves are halves of one of some sides, and the other may exist."""
    moving = tuple(each.move for each in ended if each.move is not None)
    if not moving:
        return frozenset()
    moves = await context.read(work.database, find_moves(moving))
    return frozenset(each.instance for each in moves.values() if each.side in sides and each.other_cell)


def _moved_on(context: CellConductorContext, work: CellQueue, instance: Instance) -> None:
    values = {"cell": work.cell, "instance": instance.uuid, "attempt": instance.attempt}
    context.log("an instance is another conductor's now, or is being deleted", values)


def _ownership(instance: Instance) -> Ownership:
    assert instance.owner is not None
    return Ownership(instance.owner, instance.owner_epoch)


def _record_failure(context: CellConductorContext, work: CellQueue, instance: Instance) -> None:
    """Record the end of an attempt that no other process records."""
    run, request_id = placed_by(instance)
    attempt = end_of(
        claimed_by(instance, work.cell),
        BUILD_FAILED,
        context.clock(),
        run=run,
        request_id=request_id,
        instance=instance.uuid,
        reason=instance.reason or "",
    )
    context.record((), (attempt,))


def warn(context: CellConductorContext, event: str, error: Exception, failures: int, **values: str) -> None:
    """Log an error, an unexpected one with its traceback when it comes for the first time."""
    known = isinstance(error, StorageError | LedgerError | PlacementError | SchedulerError)
    trace = error if failures == 1 and not known else None
    context.log(event, {**values, "error": one_line(error), "failures": failures}, "warning", trace)
