"""The steps of crossings: each is a transaction in one database, with what it reads before.

`roost.model.crossings` says which step is next; `roost.conductor.moves.crossings` takes it.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping

import msgspec

from roost.conductor.context import SuperConductorContext
from roost.conductor.moves.queue import MoveQueue
from roost.model.crossings import CrossingStep, Half
from roost.model.move import ARRIVING, Carried, Move, TargetFailure
from roost.model.move_states import (
    CONTINUING,
    ENDED,
    ON_TARGET,
    PREPARING,
    REFUSED,
    RESUMING,
    REVERTING,
    SWITCHED,
)
from roost.state.api_database.crossings import (
    Crossing,
    end_crossing,
    switch_mapping,
    turn_crossing,
)
from roost.state.api_database.tables import API
from roost.state.cell_database.arriving_halves import (
    ARRIVED,
    FULL,
    LACKS_DISKS,
    continue_arriving,
    discard_arriving,
    end_arriving,
    finish_arriving,
    has_room_for,
    let_arrive,
    recall_arriving,
    release_arriving,
)
from roost.state.cell_database.leaving_halves import (
    admit_leaving,
    fail_leaving,
    follow_arriving,
    free_leaving,
    hold_back,
    let_leave,
    let_start,
    note_ready,
    read_carried,
    resume_leaving,
)
from roost.state.cell_database.move_limits import MoveLimits
from roost.state.leases import Tenure

FULL_SECONDS = 3.0
"""Seconds until the target's cell is asked again whether it has room."""

NOT_LET_IN = "the target's cell does not let the instance in"
"""Why a move fails whose instance was deleted in the target's cell, or whose move has ended there."""

NOTHING_KEPT = "the source keeps nothing to which the instance could go back"
"""Why a revert fails whose source was given up before the move had reached its target."""


class Crossings:
    """The crossings that this process works on.

    ``limits``: of moves at once. ``cells``: returns the cells that answer.
    """

    def __init__(self, tenure: Tenure, cells: Callable[[], Collection[str]], limits: MoveLimits) -> None:
        self.tenure = tenure
        self.cells = cells
        self.limits = limits
        self.seeking: dict[str, MoveQueue] = {}
        """The moves of each cell for which this process claims targets."""
        self.due: dict[str, float] = {}
        """When a crossing whose target has no room is looked at again, by the monotonic clock."""


class Halves:
    """The halves of a crossing as they were read, of which the step needs those that are there."""

    def __init__(self, crossing: Crossing, leaving: Half, arriving: Half) -> None:
        self.crossing = crossing
        self._leaving = leaving
        self.arriving = arriving if isinstance(arriving, Move) else None
        self.source, self.target = f"cell/{crossing.source}", f"cell/{crossing.target}"

    @property
    def leaving(self) -> Move:
        """The leaving half."""
        assert isinstance(self._leaving, Move)
        return self._leaving

    @property
    def leaving_or_none(self) -> Move | None:
        """The leaving half, None if its cell has none, or does not answer."""
        return self._leaving if isinstance(self._leaving, Move) else None

    @property
    def arrived(self) -> Move:
        """The arriving half, which has the instance."""
        assert self.arriving is not None
        return self.arriving

    @property
    def arrived_epoch(self) -> int:
        """The epoch that the arriving half has."""
        return 0 if self.arrived.carried is None else self.arrived.carried.epoch

    @property
    def key(self) -> tuple[str, int]:
        """The move and the attempt on its target, as transactions name them."""
        assert self.leaving.target is not None
        return self.crossing.move, self.leaving.target.attempt


# Steps. Each returns whether another one may follow at once.


async def _admit(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    """Count a move in the source's cell, if the target has room for it."""
    assert halves.leaving.target is not None
    host = halves.leaving.target.host
    admitted: bool | None = None
    if await context.read(halves.target, has_room_for(host, halves.leaving, work.limits)):
        admit = admit_leaving(*halves.key, work.limits, context.clock())
        admitted = await context.write(halves.source, admit)
    if admitted is None:
        await _hold_back(context, work, halves)
    return bool(admitted)


async def _hold_back(context: SuperConductorContext, work: Crossings, halves: Halves) -> None:
    work.due[halves.crossing.move] = context.monotonic() + FULL_SECONDS
    ended = await context.write(halves.source, hold_back(*halves.key, context.clock()))
    if ended is not None:
        context.record((), (ended,))


async def _arrive(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    move, crossing = halves.leaving, halves.crossing
    carried = await context.read(halves.source, read_carried(move.instance))
    if carried is None:
        return False
    half = arriving_half(move, crossing, carried, context.clock())
    # A target that may have started the guest already is not asked whether it has room.
    limits = work.limits if move.state == PREPARING else None
    result = await context.write(halves.target, let_arrive(half, limits, context.clock()))
    if result == ARRIVED:
        return False
    if result == FULL:
        await _hold_back(context, work, halves)
        return False
    reason = NOT_LET_IN
    if result == LACKS_DISKS:
        assert half.target is not None
        reason = f"host {half.target.host} does not have the disks of host {half.source.host}"
    failure = TargetFailure(reason, retryable=result == LACKS_DISKS)
    await fail_half(context, halves.source, move, failure, is_recorded=False)
    return False


def arriving_half(move: Move, crossing: Crossing, carried: Carried, at: float) -> Move:
    """Return the half of a move as the target's cell gets it. ``at``: seconds since the epoch."""
    return msgspec.structs.replace(
        move,
        state=PREPARING,
        side=ARRIVING,
        other_cell=crossing.source,
        carried=msgspec.structs.replace(carried, epoch=crossing.epoch, failure=None),
        alternates=(),
        began=at,
        changed_at=at,
        reason=None,
        owner=None,
        owner_epoch=0,
    )


async def _ready(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    await context.write(halves.source, note_ready(*halves.key, context.clock()))
    return True


async def _give(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    arriving = halves.arriving
    started = arriving is not None and arriving.state in ON_TARGET and arriving.state != "stopping"
    await context.write(halves.source, let_start(*halves.key, context.clock(), started=started))
    return True


async def _release(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    carried = await context.read(halves.source, read_carried(halves.crossing.instance))
    if carried is not None:
        release = release_arriving(*halves.key, carried, context.clock())
        await context.write(halves.target, release)
    return False


async def _fail_attempt(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    arriving = halves.arriving
    failure = TargetFailure(NOT_LET_IN, retryable=False)
    recorded = False
    if arriving is not None and arriving.state == REFUSED and arriving.carried is not None:
        recorded = True
        failure = arriving.carried.failure or failure
    await fail_half(context, halves.source, halves.leaving, failure, is_recorded=recorded)
    return False


async def fail_half(
    context: SuperConductorContext, database: str, move: Move, failure: TargetFailure, *, is_recorded: bool
) -> None:
    """End the attempt of a leaving half. ``is_recorded``: the target's cell has recorded its end."""
    assert move.target is not None
    fail = fail_leaving(move.uuid, move.target.attempt, failure, context.clock(), is_recorded)
    ended = await context.write(database, fail)
    if ended is not None:
        context.record((), (ended,))


async def _recall(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    reason = halves.leaving.reason or "the source's cell has ended the attempt"
    await context.write(halves.target, recall_arriving(*halves.key, reason, context.clock()))
    return False


async def _switch(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    return await context.write(API, switch_mapping(halves.crossing, halves.crossing.target))


async def _leave(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    confirmed = halves.arrived.state not in (SWITCHED, REVERTING, RESUMING, CONTINUING)
    leave = let_leave(*halves.key, context.clock(), epoch=halves.crossing.epoch, confirmed=confirmed)
    await context.write(halves.source, leave)
    return not confirmed


async def _follow(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    follow = follow_arriving(*halves.key, halves.arrived, context.clock())
    await context.write(halves.source, follow)
    return False


async def _resume(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    """Give the start back to the source's cell, with the instance as it is at the target."""
    epoch = await context.write(API, turn_crossing(halves.crossing, halves.arrived_epoch))
    carried = await context.read(halves.target, read_carried(halves.crossing.instance))
    if epoch is not None and carried is not None:
        back = msgspec.structs.replace(carried, epoch=epoch)
        resume = resume_leaving(*halves.key, back, context.clock(), halves.arrived.reason)
        await context.write(halves.source, resume)
    return False


async def _continue(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    """Have the target start its guest again: the source has failed, or was given up."""
    leaving, seen = halves.leaving_or_none, halves.arrived_epoch
    carried = None if leaving is None else leaving.carried
    epoch = seen if carried is None else max(seen, carried.epoch)
    reason = (None if leaving is None else leaving.reason) or NOTHING_KEPT
    again = continue_arriving(halves.crossing.move, seen, epoch, reason, context.clock())
    await context.write(halves.target, again)
    return True


async def _return(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    return await context.write(API, switch_mapping(halves.crossing, halves.crossing.source))


async def _discard(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    held = halves.leaving.state not in ENDED
    await context.write(halves.target, discard_arriving(halves.crossing.move, context.clock(), held=held))
    return False


async def _free(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    await context.write(halves.source, free_leaving(*halves.key, context.clock()))
    return False


async def _finish(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    await context.write(halves.target, finish_arriving(halves.crossing.move, context.clock()))
    await context.write(API, end_crossing(halves.crossing))
    return False


async def _end(context: SuperConductorContext, work: Crossings, halves: Halves) -> bool:
    crossing = halves.crossing
    reason = "the source's cell has ended the move"
    ending = end_arriving(crossing.move, crossing.instance, crossing.epoch, reason, context.clock())
    await context.write(halves.target, ending)
    await context.write(API, end_crossing(crossing))
    # That of an instance that is being deleted ends with the deletion.
    work.due[crossing.move] = context.monotonic() + FULL_SECONDS
    return False


STEPS: Mapping[CrossingStep, Callable[[SuperConductorContext, Crossings, Halves], Awaitable[bool]]] = {
    "admit": _admit,
    "arrive": _arrive,
    "ready": _ready,
    "give": _give,
    "release": _release,
    "fail": _fail_attempt,
    "recall": _recall,
    "switch": _switch,
    "leave": _leave,
    "follow": _follow,
    "resume": _resume,
    "continue": _continue,
    "return": _return,
    "discard": _discard,
    "free": _free,
    "finish": _finish,
    "end": _end,
}
