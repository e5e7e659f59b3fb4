"""The work of super conductors on moves to other cells: they carry facts from one half to the other.

A super conductor is the only process that reaches all cells. Each crossing is owned by one, and taken over
when that is dead. It reads both halves, and `roost.model.crossings` says what is next. Each step is a
transaction in one database, which names the attempt and the states from which it goes on. So a step that is
repeated, comes late, or is made by two processes changes nothing, and a process that dies between two steps
is followed by another one that reads the halves as they are.

A cell that is down holds up its own half. The source's ends the move by its time limit as long as it has not
given the start away, so a guest is not away for as long as the other cell is.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping

import msgspec

from roost.conductor.backoff import Backoff
from roost.conductor.context import SuperConductorContext
from roost.conductor.moves.claims import seek_targets
from roost.conductor.moves.queue import MoveQueue
from roost.ledger import LedgerError
from roost.model.crossings import CrossingStep, Half, next_step
from roost.model.move import (
    ARRIVING,
    CONTINUING,
    ENDED,
    ON_TARGET,
    PREPARING,
    REFUSED,
    RESUMING,
    REVERTING,
    SENDING,
    SWITCHED,
    Carried,
    Move,
    TargetFailure,
)
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.crossings import (
    Crossing,
    NoCrossing,
    begin_crossing,
    end_crossing,
    has_free_crossings,
    read_crossings,
    switch_mapping,
    take_crossings,
    turn_crossing,
)
from roost.state.api_database.mappings import find_mappings
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
    FoundHalf,
    admit_leaving,
    fail_leaving,
    find_halves,
    follow_arriving,
    free_leaving,
    hold_back,
    let_leave,
    let_start,
    note_ready,
    read_carried,
    read_halves,
    resume_leaving,
)
from roost.state.cell_database.move_limits import MoveLimits
from roost.state.leases import Tenure, leases_of_kind
from roost.storage import StorageError

EVERY_SECONDS = 1.0
"""Seconds between two looks at all cells while no crossing is under way, or all wait for a word."""

BUSY_SECONDS = 0.2
"""Seconds between two looks at the halves of crossings: a guest may be stopped meanwhile."""

FULL_SECONDS = 3.0
"""Seconds until the target's cell is asked again whether it has room."""

NOT_LET_IN = "the target's cell does not let the instance in"
"""Why a move fails whose instance was deleted in the target's cell, or whose move has ended there."""

NOTHING_KEPT = "the source keeps nothing to which the instance could go back"
"""Why a revert fails whose source was given up before the move had reached its target."""

STEPS_AT_ONCE = 6
"""Steps of a crossing that follow each other without a pause, at most."""


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


async def carry_crossings(context: SuperConductorContext, work: Crossings) -> None:
    """Carry all crossings of this process, for ever."""
    while True:
        is_busy = False
        try:
            is_busy = await step_crossings(context, work)
        except StorageError as error:
            context.log("moves to other cells go on later", {"error": one_line(error)}, "debug")
        await context.sleep(BUSY_SECONDS if is_busy else EVERY_SECONDS)


async def step_crossings(context: SuperConductorContext, work: Crossings) -> bool:
    """Take the crossings of this process on; returns whether some of them go on by themselves. Raises
    `StorageError` of the API database."""
    if not work.tenure.holds(context.monotonic()):
        return False
    owner = work.tenure.holder
    if await _is_first(context, work.tenure):
        await context.together([_seek(context, work, cell) for cell in work.cells()])
    known = await context.read(API, read_crossings())
    cells = [*work.cells()]
    for cell, halves in zip(
        cells, await context.together([_halves_of(context, each) for each in cells]), strict=True
    ):
        for half in halves:
            if half.move not in known:
                await _begin(context, work, cell, half)
    if await context.read(API, has_free_crossings()):
        await context.write(API, take_crossings(owner))
    known = await context.read(API, read_crossings())
    mine = {move: each for move, each in known.items() if each.owner == owner}
    work.due = {move: due for move, due in work.due.items() if move in mine}
    now = context.monotonic()
    due = [each for move, each in mine.items() if work.due.get(move, now) <= now]
    read = await _read_all(context, due)
    going = await context.together([_carry(context, work, each, read) for each in due])
    return len(due) < len(mine) or any(going)


async def _is_first(context: SuperConductorContext, tenure: Tenure) -> bool:
    """Return whether of all super conductors this one seeks targets. It does no harm if two do."""
    leases = await context.read(API, leases_of_kind(tenure.kind))
    first = next((lease for lease in leases if not lease.vacant), None)
    return first is not None and first.holder == tenure.holder


async def _seek(context: SuperConductorContext, work: Crossings, cell: str) -> None:
    queue = work.seeking.setdefault(cell, MoveQueue(cell, work.tenure, Backoff(), work.limits))
    try:
        await seek_targets(context, queue)
    except (StorageError, LedgerError) as error:
        values: Mapping[str, object] = {"cell": cell, "error": one_line(error)}
        context.log("targets in other cells are claimed later", values, "debug")


async def _read_all(
    context: SuperConductorContext, crossings: Collection[Crossing]
) -> dict[str, dict[str, Move] | None]:
    """Read the halves of crossings by cell and move; None for a cell that does not answer."""
    wanted: dict[str, set[str]] = {}
    for each in crossings:
        for cell in (each.source, each.target):
            wanted.setdefault(cell, set()).add(each.move)
    found = await context.together([_read(context, cell, tuple(sorted(of))) for cell, of in wanted.items()])
    return dict(zip(wanted, found, strict=True))


async def _halves_of(context: SuperConductorContext, cell: str) -> list[FoundHalf]:
    try:
        return await context.read(f"cell/{cell}", find_halves())
    except StorageError:
        return []


async def _begin(context: SuperConductorContext, work: Crossings, cell: str, half: FoundHalf) -> None:
    """Store the crossing of a half that was found; one that cannot begin is ended."""
    mapping = (await context.read(API, find_mappings((half.instance,)))).get(half.instance)
    # After the mapping, whose epoch tells then whether the move has ended since.
    there = (await _read(context, cell, (half.move,)) or {}).get(half.move)
    if there is None or there.state in ENDED:
        return
    leaves = half.side != ARRIVING
    source, target = (cell, half.other_cell) if leaves else (half.other_cell, cell)
    begun = await context.write(
        API,
        begin_crossing(
            move=half.move,
            instance=half.instance,
            source=source,
            target=target,
            owner=work.tenure.holder,
            seen=0 if mapping is None else mapping.epoch,
            epoch=half.epoch,
        ),
    )
    if isinstance(begun, Crossing) or not begun.is_over:
        return
    try:
        if leaves:
            await _refuse(context, cell, half, begun)
        else:
            ending = end_arriving(half.move, half.instance, half.epoch, begun.reason, context.clock())
            await context.write(f"cell/{cell}", ending)
    except StorageError as error:
        _later(context, half.move, error)


async def _refuse(context: SuperConductorContext, cell: str, half: FoundHalf, why: NoCrossing) -> None:
    """End the attempt of a move that cannot leave its cell: the instance stays."""
    database = f"cell/{cell}"
    move = (await context.read(database, read_halves((half.move,)))).get(half.move)
    if move is not None and move.state in (SENDING, PREPARING):
        await _fail(context, database, move, TargetFailure(why.reason, retryable=False), is_recorded=False)


async def _carry(
    context: SuperConductorContext,
    work: Crossings,
    crossing: Crossing,
    read: Mapping[str, dict[str, Move] | None],
) -> bool:
    """Take a crossing on as far as it goes now; returns whether it goes on by itself.

    ``read``: its halves by cell and move.
    """
    try:
        for number in range(STEPS_AT_ONCE):
            if number:
                read = await _read_all(context, [crossing])
            leaving = _half(read[crossing.source], crossing.move)
            arriving = _half(read[crossing.target], crossing.move)
            step = next_step(
                leaving,
                arriving,
                is_switched=crossing.is_mapped_to(crossing.target) or crossing.deleted,
                is_returned=crossing.is_mapped_to(crossing.source) or crossing.deleted,
            )
            if step == "wait":
                # One that waits for a word does so for hours.
                return not (isinstance(arriving, Move) and arriving.state == SWITCHED)
            halves = _Halves(crossing, leaving, arriving)
            if not await _STEPS[step](context, work, halves):
                break
            if step in ("switch", "return"):
                cell = crossing.target if step == "switch" else crossing.source
                crossing = msgspec.structs.replace(crossing, mapped=cell)
    except StorageError as error:
        _later(context, crossing.move, error)
    return True


def _later(context: SuperConductorContext, move: str, error: Exception) -> None:
    values: Mapping[str, object] = {"move": move, "error": one_line(error)}
    context.log("a move to another cell goes on later", values, "debug")


async def _read(context: SuperConductorContext, cell: str, moves: tuple[str, ...]) -> dict[str, Move] | None:
    try:
        return await context.read(f"cell/{cell}", read_halves(moves))
    except StorageError:
        return None


def _half(read: Mapping[str, Move] | None, move: str) -> Half:
    return "silent" if read is None else read.get(move)


class _Halves:
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


async def _admit(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
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


async def _hold_back(context: SuperConductorContext, work: Crossings, halves: _Halves) -> None:
    work.due[halves.crossing.move] = context.monotonic() + FULL_SECONDS
    ended = await context.write(halves.source, hold_back(*halves.key, context.clock()))
    if ended is not None:
        context.record((), (ended,))


async def _arrive(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
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
    await _fail(context, halves.source, move, failure, is_recorded=False)
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


async def _ready(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
    await context.write(halves.source, note_ready(*halves.key, context.clock()))
    return True


async def _give(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
    arriving = halves.arriving
    started = arriving is not None and arriving.state in ON_TARGET and arriving.state != "stopping"
    await context.write(halves.source, let_start(*halves.key, context.clock(), started=started))
    return True


async def _release(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
    carried = await context.read(halves.source, read_carried(halves.crossing.instance))
    if carried is not None:
        release = release_arriving(*halves.key, carried, context.clock())
        await context.write(halves.target, release)
    return False


async def _fail_attempt(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
    arriving = halves.arriving
    failure = TargetFailure(NOT_LET_IN, retryable=False)
    recorded = False
    if arriving is not None and arriving.state == REFUSED and arriving.carried is not None:
        recorded = True
        failure = arriving.carried.failure or failure
    await _fail(context, halves.source, halves.leaving, failure, is_recorded=recorded)
    return False


async def _fail(
    context: SuperConductorContext, database: str, move: Move, failure: TargetFailure, *, is_recorded: bool
) -> None:
    assert move.target is not None
    fail = fail_leaving(move.uuid, move.target.attempt, failure, context.clock(), is_recorded)
    ended = await context.write(database, fail)
    if ended is not None:
        context.record((), (ended,))


async def _recall(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
    reason = halves.leaving.reason or "the source's cell has ended the attempt"
    await context.write(halves.target, recall_arriving(*halves.key, reason, context.clock()))
    return False


async def _switch(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
    return await context.write(API, switch_mapping(halves.crossing, halves.crossing.target))


async def _leave(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
    confirmed = halves.arrived.state not in (SWITCHED, REVERTING, RESUMING, CONTINUING)
    leave = let_leave(*halves.key, context.clock(), epoch=halves.crossing.epoch, confirmed=confirmed)
    await context.write(halves.source, leave)
    return not confirmed


async def _follow(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
    follow = follow_arriving(*halves.key, halves.arrived, context.clock())
    await context.write(halves.source, follow)
    return False


async def _resume(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
    """Give the start back to the source's cell, with the instance as it is at the target."""
    epoch = await context.write(API, turn_crossing(halves.crossing, halves.arrived_epoch))
    carried = await context.read(halves.target, read_carried(halves.crossing.instance))
    if epoch is not None and carried is not None:
        back = msgspec.structs.replace(carried, epoch=epoch)
        resume = resume_leaving(*halves.key, back, context.clock(), halves.arrived.reason)
        await context.write(halves.source, resume)
    return False


async def _continue(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
    """Have the target start its guest again: the source has failed, or was given up."""
    leaving, seen = halves.leaving_or_none, halves.arrived_epoch
    carried = None if leaving is None else leaving.carried
    epoch = seen if carried is None else max(seen, carried.epoch)
    reason = (None if leaving is None else leaving.reason) or NOTHING_KEPT
    again = continue_arriving(halves.crossing.move, seen, epoch, reason, context.clock())
    await context.write(halves.target, again)
    return True


async def _return(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
    return await context.write(API, switch_mapping(halves.crossing, halves.crossing.source))


async def _discard(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
    held = halves.leaving.state not in ENDED
    await context.write(halves.target, discard_arriving(halves.crossing.move, context.clock(), held=held))
    return False


async def _free(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
    await context.write(halves.source, free_leaving(*halves.key, context.clock()))
    return False


async def _finish(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
    await context.write(halves.target, finish_arriving(halves.crossing.move, context.clock()))
    await context.write(API, end_crossing(halves.crossing))
    return False


async def _end(context: SuperConductorContext, work: Crossings, halves: _Halves) -> bool:
    crossing = halves.crossing
    reason = "the source's cell has ended the move"
    ending = end_arriving(crossing.move, crossing.instance, crossing.epoch, reason, context.clock())
    await context.write(halves.target, ending)
    await context.write(API, end_crossing(crossing))
    # That of an instance that is being deleted ends with the deletion.
    work.due[crossing.move] = context.monotonic() + FULL_SECONDS
    return False


_STEPS: Mapping[CrossingStep, Callable[[SuperConductorContext, Crossings, _Halves], Awaitable[bool]]] = {
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
