"""The work of super conductors on moves to other cells: they carry facts from one half to the other.

A super conductor is the only process that reaches all cells. Each crossing is owned by one, and taken over
when that is dead. It reads both halves, and `roost.model.crossings` says what is next. Each step is a
transaction in one database, which names the attempt and the states from which it goes on. So a step that is
repeated, comes late, or is made by two processes changes nothing, and a process that dies between two steps
is followed by another one that reads the halves as they are.

A cell that is down holds up its own half. The source's ends the move by its time limit as long as it has not
given the start away, so a guest is not away for as long as the other cell is.
"""

from collections.abc import Collection, Mapping

import msgspec

from roost.conductor.backoff import Backoff
from roost.conductor.context import SuperConductorContext
from roost.conductor.moves.claims import seek_targets
from roost.conductor.moves.crossing_steps import STEPS, Crossings, Halves, fail_half
from roost.conductor.moves.queue import MoveQueue
from roost.ledger import LedgerError
from roost.model.crossings import Half, next_step
from roost.model.move import ARRIVING, Move, TargetFailure
from roost.model.move_states import ENDED, PREPARING, SENDING, SWITCHED
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.crossings import (
    Crossing,
    NoCrossing,
    begin_crossing,
    has_free_crossings,
    read_crossings,
    take_crossings,
)
from roost.state.api_database.mappings import find_mappings
from roost.state.api_database.tables import API
from roost.state.cell_database.arriving_halves import end_arriving
from roost.state.cell_database.leaving_halves import FoundHalf, find_halves, read_halves
from roost.state.leases import Tenure, leases_of_kind
from roost.storage import StorageError

EVERY_SECONDS = 1.0
"""Seconds between two looks at all cells while no crossing is under way, or all wait for a word."""

BUSY_SECONDS = 0.2
"""Seconds between two looks at the halves of crossings: a guest may be stopped meanwhile."""

STEPS_AT_ONCE = 6
"""Steps of a crossing that follow each other without a pause, at most."""


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
        await fail_half(
            context, database, move, TargetFailure(why.reason, retryable=False), is_recorded=False
        )


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
            halves = Halves(crossing, leaving, arriving)
            if not await STEPS[step](context, work, halves):
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
