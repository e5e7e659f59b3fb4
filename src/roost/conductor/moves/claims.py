"""The work of a cell's conductor on moves: claims targets, takes alternates, gives back and frees claims.

In one commit the move, a consumer of its own, takes over what the instance holds on the source, and the
instance claims the target. So neither host gives the room away before the move has ended, and the writes of a
conductor that was stopped are refused, as the instance is at another generation. See
`roost.model.move_states` for the states, and `roost.conductor.cell_work` for how work is owned.
"""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from roost.conductor.claim_release import free_claims, nothing_held
from roost.conductor.context import CellConductorContext
from roost.conductor.moves.queue import MoveQueue
from roost.conductor.owned_work import OwnedWork
from roost.ledger import Held, LedgerError
from roost.model import record
from roost.model.allocation import HandedClaim
from roost.model.move import LIVE, Move, MovePlace, spec_of_move
from roost.model.move_states import (
    DISCARDING,
    DONE,
    FAILED_MOVE,
    FREEING,
    REQUESTED,
    RETRYING,
    RETURNING,
    SEEKING,
    UNDOING,
)
from roost.model.reshape import followed, totals
from roost.model.spec import Selection
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.errors import PlacementError
from roost.process.logs import RequestIds, serving
from roost.process.metrics import catalogue as metrics
from roost.scheduler.errors import NoAlternate, NoValidHost, SchedulerError
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.claim_result import ClaimVerdict, one_line, result_of
from roost.scheduler.selection.replacement import AlternateRequest
from roost.state.cell_database.move_changes import end_of_target, way_back
from roost.state.cell_database.move_limits import (
    EVACUATION,
    begin_moves,
    count_moves,
    find_moves_to_begin,
)
from roost.state.cell_database.move_work import (
    find_moves_wanting_work,
    find_seeking_moves,
    go_on,
    has_moves_for_conductors,
    is_owned,
    take_moves,
    take_seeking_moves,
    take_target,
)
from roost.state.cell_database.moves import find_moves
from roost.state.cell_database.nodes import (
    find_disk_store,
    find_hosts_without_live_moves,
    find_hosts_without_store,
)
from roost.state.cell_database.reshapes import read_settled_claim
from roost.storage import StorageError

MOST = 200
"""Moves that a conductor takes in one transaction, about."""

ALTERNATES = 2
"""Alternates of the target of a move."""

BUSY_SECONDS = 3.0
"""Seconds until a target is looked for again, if the hosts have as many moves as the limits allow."""


class _NotOwned(Exception):
    """Another conductor owns the move, or it is in another state."""


class _HostsBusy(Exception):
    """The hosts of a move have as many moves as the limits allow, or one is being reshaped: it waits."""


async def work_on_moves(context: CellConductorContext, work: MoveQueue) -> None:
    """Do all work on moves that is due now. Raises `StorageError` and `LedgerError`."""
    while True:
        holder = work.tenure.holder
        if not work.tenure.holds(context.monotonic()):
            return
        work.own(holder, ())
        if not await context.read(work.database, has_moves_for_conductors()):
            return
        if await context.read(work.database, find_moves_to_begin(work.limits)):
            work.own(holder, await context.write(work.database, begin_moves(holder, work.limits)))
        wanting = await context.read(work.database, find_moves_wanting_work(holder, MOST + work.owned))
        new = tuple(uuid for uuid in wanting if not work.owns(uuid))
        if new:
            work.own(holder, await context.write(work.database, take_moves(holder, new)))
        now = context.monotonic()
        states = (REQUESTED, RETRYING, RETURNING, UNDOING, FREEING)
        due = [each for state in states for each in work.in_state(state) if work.is_due(each.uuid, now)]
        await context.together([_work_on(context, work, each) for each in due])
        if len(new) < MOST:
            return


async def _work_on(context: CellConductorContext, work: MoveQueue, move: Move) -> None:
    """Take a move one step on, or postpone the step. Raises `StorageError`, `LedgerError`."""
    if work.was_postponed(move.uuid):
        there = (await context.read(work.database, find_moves((move.uuid,)))).get(move.uuid)
        if there != move:
            return work.drop([move.uuid])
    try:
        with serving(RequestIds(move.by.request_id)):
            await _STEPS[move.state](context, work, move)
        work.drop([move.uuid])
    except (StorageError, LedgerError):
        # The step may have been written: what is left to do is read again, under another epoch of the owner.
        work.drop([move.uuid])
        raise
    except _NotOwned:
        work.drop([move.uuid])
    except _HostsBusy:
        work.defer(move.uuid, context.monotonic() + BUSY_SECONDS)
    except Exception as error:
        failures = work.postpone(move.uuid, context.monotonic(), error)
        values = {"cell": work.cell, "move": move.uuid, "instance": move.instance, "state": move.state}
        known = isinstance(error, PlacementError | SchedulerError)
        trace = error if failures == 1 and not known else None
        values |= {"error": one_line(error), "failures": str(failures)}
        context.log("a move could not go on", values, "warning", trace)
    return None


async def seek_targets(context: CellConductorContext, work: MoveQueue) -> None:
    """Claim targets in any cell for the moves of a cell that found none there. Work of a super conductor.

    ``context``: with a scheduler that knows the hosts of all cells. Raises `StorageError`, `LedgerError`.
    """
    holder = work.tenure.holder
    work.own(holder, ())
    wanting = await context.read(work.database, find_seeking_moves(MOST + work.owned))
    new = tuple(uuid for uuid in wanting if not work.owns(uuid))
    if new:
        work.own(holder, await context.write(work.database, take_seeking_moves(holder, new)))
    now = context.monotonic()
    due = [each for each in work.in_state(SEEKING) if work.is_due(each.uuid, now)]
    await context.together([_work_on(context, work, each) for each in due])


async def _claim_target(context: CellConductorContext, work: MoveQueue, move: Move) -> None:
    """Have a target claimed; without one the instance stays where it is.

    Hosts that have as many moves as they may have are left out first. If only they are left, one of them is
    claimed, and the move waits for it with its claim, which the next look gives back. Raises `_HostsBusy`.
    """
    anywhere = move.state == SEEKING
    hopeless = work.hopeless(move.uuid)
    if hopeless is not None:
        return await _stay(context, work, move, hopeless)
    busy = (await context.read(work.database, count_moves())).full_hosts(work.limits)
    if move.source.host in busy and move.kind != EVACUATION:
        raise _HostsBusy
    held = await _held(context, work, move)
    if move.uuid in held:
        # An earlier owner has claimed, and cannot say what.
        held = await _handed_back(context, work, move, held)
    there = held.get(move.consumer)
    if there is None:
        return await _stay(context, work, move, "the instance holds nothing in placement")
    handed = HandedClaim(
        there.allocations, there.consumer.generation, there.consumer.assignment, consumer=move.uuid
    )
    losing = await _unable_hosts(context, work, move)
    request = HostRequest(
        spec_of_move(move, work.cell, losing if move.to_host in busy else busy | losing, anywhere=anywhere),
        (move.consumer,),
        ALTERNATES,
        request_id=move.by.request_id,
        handed={move.consumer: handed},
        of_instances=move.renamed,
    )
    try:
        try:
            (found,) = await context.scheduler.select_destinations(request)
        except NoValidHost:
            if not busy:
                raise
            request = msgspec.structs.replace(
                request, spec=spec_of_move(move, work.cell, losing, anywhere=anywhere)
            )
            (found,) = await context.scheduler.select_destinations(request)
    except NoValidHost as none:
        if move.across and not anywhere:
            return await _seek_anywhere(context, work, move)
        return await _stay(context, work, move, f"No valid host was found: {none.reason}")
    except (SchedulerError, PlacementError) as error:
        result = result_of(error)
        if result.verdict is ClaimVerdict.RETRY:
            raise
        if move.across and not anywhere:
            # The scheduler of the cell does not know the host that was asked for.
            return await _seek_anywhere(context, work, move)
        return await _stay(context, work, move, result.reason or "")
    if not await _take(context, work, move, found.selected, found.alternates, found.run):
        raise _HostsBusy
    return None


async def _seek_anywhere(context: CellConductorContext, work: MoveQueue, move: Move) -> None:
    """Have a super conductor look for a target: this scheduler may know the hosts of its own cell alone."""
    await context.write(work.database, go_on(move=move, to=SEEKING, at=context.clock()))


async def _unable_hosts(context: CellConductorContext, work: MoveQueue, move: Move) -> frozenset[str]:
    """Return the hosts that do not have the disks of a move's instance, if it keeps them, and those to which
    no guest moves while it runs, if this one does."""
    store = None if move.proof is None else move.proof.store
    if move.proof is None:
        store = await context.read(work.database, find_disk_store(move.source.node))
    if store is None and move.proof is not None:
        return frozenset()
    unable = await context.read(work.database, find_hosts_without_store(store or ""))
    if move.kind == LIVE:
        unable |= await context.read(work.database, find_hosts_without_live_moves())
    return unable


async def _take_alternate(context: CellConductorContext, work: MoveQueue, move: Move) -> None:
    """Swap the claim on a target that failed to the next alternate; without one the instance goes back.

    It goes back as well if the alternate has as many moves as the limits allow: moves that wait for each
    other's hosts while they count would wait for ever.
    """
    assert move.target is not None
    hopeless = work.hopeless(move.uuid)
    if hopeless is not None:
        return await _stay(context, work, move, hopeless)
    request = AlternateRequest(
        spec_of_move(move, work.cell, anywhere=move.side is not None),
        move.consumer,
        move.target.selection,
        move.alternates,
        reason=move.reason or "",
        run=move.run,
        request_id=move.by.request_id,
        held_by=move.uuid,
        of_instance="" if move.consumer == move.instance else move.instance,
    )
    try:
        found = await context.scheduler.use_alternate(request)
    except NoAlternate as none:
        refusals = [f"alternate {each.host}: {each.refusal}" for each in none.tries]
        reason = "; ".join(
            [f"host {move.target.host}: {move.reason}", *(refusals or ["no alternate is left"])]
        )
        return await _stay(context, work, move, reason)
    except (SchedulerError, PlacementError) as error:
        result = result_of(error)
        if result.verdict is ClaimVerdict.RETRY:
            raise
        return await _stay(context, work, move, result.reason or "")
    assert found.selected is not None
    if not await _take(context, work, move, found.selected, found.alternates, move.run):
        reason = f"alternate {found.selected.host} has as many moves as it may have"
        return await _stay(context, work, move, f"host {move.target.host}: {move.reason}; {reason}")
    return None


async def _take(
    context: CellConductorContext,
    work: MoveQueue,
    move: Move,
    selection: Selection,
    alternates: tuple[Selection, ...],
    run: str,
) -> bool:
    """Let a move go on with a target that is claimed; returns whether the limits allow it."""
    take = take_target(
        move=move,
        selection=selection,
        alternates=alternates,
        run=run,
        at=context.clock(),
        limits=work.limits,
        cells=None if selection.cell == work.cell else (work.cell, selection.cell),
    )
    return await context.write(work.database, take) is not None


async def _stay(context: CellConductorContext, work: MoveQueue, move: Move, reason: str) -> None:
    """Take no further target: the instance stays on the source."""
    await context.write(work.database, go_on(move=move, to=way_back(move), at=context.clock(), reason=reason))


async def _give_back(context: CellConductorContext, work: MoveQueue, move: Move) -> None:
    """Give the instance what it held on the source, and end the move.

    An instance that has handed over nothing is written too: a claim that an earlier owner of the move is yet
    to make is refused then, as the instance is at another generation.
    """
    held = await _handed_back(context, work, move, await _held(context, work, move))
    holds = _selection(move.source, held.get(move.consumer))
    await _end(context, work, move, FAILED_MOVE, holds)


async def _exchange(context: CellConductorContext, work: MoveQueue, move: Move) -> None:
    """Exchange the claims: the instance gets the source's, the move holds the target's until it is empty."""
    held = await _held(context, work, move)
    there, kept = held.get(move.consumer), held.get(move.uuid)
    if there is not None and kept is not None and not await _is_exchanged(context, work, move, there):
        await context.placement.write_allocations((_written(kept, there), _written(there, kept)))
        there = (await _held(context, work, move)).get(move.consumer)
    holds = _selection(move.source, there)
    await context.write(work.database, go_on(move=move, to=DISCARDING, at=context.clock(), holds=holds))


async def _free(context: CellConductorContext, work: MoveQueue, move: Move) -> None:
    """Free what the move holds, and end it."""
    freeing = await free_claims(context, (move.uuid,))
    for error in freeing.refused.values():
        raise error
    await _end(context, work, move, move.ends_as or DONE)


async def _end(
    context: CellConductorContext,
    work: OwnedWork[Move],
    move: Move,
    to: str,
    holds: Selection | None = None,
) -> None:
    """Let a move end in a state. ``holds``: the claim of the instance from then on; None: as before.

    The end of an attempt that has failed is recorded, as the one who ended it may not have: the first counts.
    """
    if await context.write(work.database, go_on(move=move, to=to, at=context.clock(), holds=holds)):
        metrics.INSTANCE_MOVES.labels(move.kind, to).inc()
        if to == FAILED_MOVE and move.target is not None:
            context.record((), (end_of_target(move, record.FAILED, context.clock(), move.reason),))


_STEPS: Mapping[str, Callable[[CellConductorContext, MoveQueue, Move], Awaitable[None]]] = {
    REQUESTED: _claim_target,
    SEEKING: _claim_target,
    RETRYING: _take_alternate,
    RETURNING: _give_back,
    UNDOING: _exchange,
    FREEING: _free,
}


async def _held(context: CellConductorContext, work: MoveQueue, move: Move) -> dict[str, Held]:
    """Return what instance and move hold, read while this process owned the move.

    Whoever takes the move over later and claims changes the generations that were read here. Who took it over
    before may have claimed already, and what is read is not this process's to change.

    Raises `_NotOwned`.
    """
    held = dict(await context.placement.holdings((move.consumer, move.uuid)))
    if not await context.read(work.database, is_owned(move)):
        raise _NotOwned
    return held


async def _handed_back(
    context: CellConductorContext, work: MoveQueue, move: Move, held: Mapping[str, Held]
) -> dict[str, Held]:
    """Give the instance what the move holds, if it holds something, and return what both hold then.

    The instance is at another generation in any case. Without a claim it was deleted: then nothing is
    written.
    """
    there, kept = held.get(move.consumer), held.get(move.uuid)
    if there is None:
        return dict(held)
    writes = [_written(kept or there, there)]
    if kept is not None:
        writes.insert(0, nothing_held(kept))
    await context.placement.write_allocations(writes)
    return await _held(context, work, move)


def _written(new: Held, at: Held) -> ConsumerWrite:
    """Return the write by which a consumer, which is at ``at``, gets what ``new`` holds."""
    return ConsumerWrite(
        consumer=at.consumer.uuid,
        allocations=new.allocations,
        project_id=at.consumer.project_id,
        user_id=at.consumer.user_id,
        consumer_type=at.consumer.consumer_type,
        generation=at.consumer.generation,
        assignment=new.consumer.assignment,
    )


def _selection(place: MovePlace, held: Held | None) -> Selection | None:
    """Return what an instance holds at a place of its move; None: it holds nothing."""
    if held is None:
        return None
    return followed(place.selection, held.allocations, held.consumer.generation)


async def _is_exchanged(context: CellConductorContext, work: MoveQueue, move: Move, held: Held) -> bool:
    """Return whether an instance holds what it held on the source. ``held``: what it holds.

    Raises `_HostsBusy`: a reshape of the host is under way.
    """
    if not move.stays:
        return await _is_on(context, held, move.source)
    assert move.target is not None
    was, becomes = totals(move.source.selection.allocations), totals(move.target.selection.allocations)
    if was != becomes:
        return totals(held.allocations) == was
    # Of equal sizes only the generation tells. The row follows all reshapes until the exchange, and none
    # begins before it is noted.
    settled = read_settled_claim(move.instance, move.source.node)
    row = await context.read(work.database, settled)
    if row is None:
        raise _HostsBusy
    return held.consumer.generation > (row.generation or 0)


async def _is_on(context: CellConductorContext, held: Held, place: MovePlace) -> bool:
    """Return whether a consumer holds something of the tree of a place."""
    tree = {each.uuid for each in await context.placement.tree(place.node)}
    return not tree.isdisjoint(held.allocations)
