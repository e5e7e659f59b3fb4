"""Drains with moves: instances on disabled subjects are asked to move, as many at once as the limits allow.

A drain may have guests move while they run. Those that cannot, and those whose first move has failed, are
stopped on the way.

A drain of a maintenance has planned targets. The first move of an instance asks for its target; after a
refusal there the scheduler chooses.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from roost.conductor.moves.departures import Asker, RetryTimes, ask_to_leave
from roost.model.departure import Departure
from roost.model.move import LIVE, Move, MoveKind
from roost.model.move_states import ENDED
from roost.model.service_version import ATTACHED_MOVES, CELL_MOVES, MOVES, Feature
from roost.model.service_version import LIVE as LIVE_MOVES
from roost.process.context import Context
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.drains import MovingDrain, read_moving_drains
from roost.state.api_database.maintenance_rows import read_planned_targets
from roost.state.api_database.tables import API
from roost.state.cell_database.departures import find_departures
from roost.state.cell_database.move_limits import MoveLimits
from roost.storage import StorageError

EVERY_SECONDS = 2.0
"""Seconds between two looks at the drains with moves while nothing moves."""

BUSY_SECONDS = 0.5
"""Seconds between two looks while moves from a drained host are under way: the next may soon begin."""

OF_DRAINS = uuid.UUID("6f1c1f52-58c5-4d0f-9a4e-5b1d3f0b7a11")
"""The namespace of the uuids of moves that drains ask for."""


class DrainTimes(RetryTimes):
    """The times of the instances on what is drained.

    ``targets``: the planned targets of the drains that are under way, by the version of their word.
    """

    def __init__(self) -> None:
        super().__init__()
        self.targets: Mapping[int, Mapping[str, str]] = {}

    def clear(self) -> None:
        """Forget all: nothing is drained."""
        super().clear()
        self.targets = {}


async def empty_subjects(
    context: Context,
    cells: Callable[[], Collection[str]],
    limits: MoveLimits,
    knows: Callable[[Feature], bool],
) -> None:
    """Ask for the moves of drains in the cells that answer, for ever.

    ``knows``: returns whether all processes know a feature.
    """
    times = DrainTimes()
    while True:
        is_busy = False
        try:
            is_busy = knows(MOVES) and await ask_for_moves(
                context,
                cells(),
                limits,
                times,
                attached=knows(ATTACHED_MOVES),
                across=knows(CELL_MOVES),
                live=knows(LIVE_MOVES),
            )
        except StorageError as error:
            context.log("drains are moved later", {"error": one_line(error)}, "debug")
        await context.sleep(BUSY_SECONDS if is_busy else EVERY_SECONDS)


async def ask_for_moves(
    context: Context,
    cells: Collection[str],
    limits: MoveLimits,
    times: DrainTimes,
    *,
    attached: bool = True,
    across: bool = True,
    live: bool = True,
) -> bool:
    """Ask for as many moves as may begin now; returns whether moves from drained hosts are under way.

    ``attached``: whether instances with ports or accelerators may move. ``across``: whether instances may
    move to other cells, as those of a drained cell do. ``live``: whether any may move while they run.

    Raises: `StorageError` of the API database.
    """
    drains = await context.read(API, read_moving_drains())
    if not drains:
        times.clear()
    await _read_targets(context, drains, times)
    by_cell: dict[str, list[MovingDrain]] = {}
    for drain in drains:
        if drain.subject.cell in cells and (across or drain.subject.host):
            drain = msgspec.structs.replace(drain, live=drain.live and live)
            by_cell.setdefault(drain.subject.cell, []).append(drain)
    asked = [_ask_in(context, cell, of, limits, times, attached) for cell, of in by_cell.items()]
    return any(await context.together(asked))


async def _read_targets(context: Context, drains: Sequence[MovingDrain], times: DrainTimes) -> None:
    """Read the planned targets of drains, once for each word. Raises `StorageError`."""
    versions = {drain.version for drain in drains}
    known = {version: of for version, of in times.targets.items() if version in versions}
    if new := tuple(sorted(versions - known.keys())):
        known |= await context.read(API, read_planned_targets(new))
    times.targets = known


async def _ask_in(
    context: Context,
    cell: str,
    drains: Sequence[MovingDrain],
    limits: MoveLimits,
    times: DrainTimes,
    attached: bool,
) -> bool:
    """Ask for the moves of drains in one cell, the earliest drain first; returns as `ask_for_moves`."""
    database, is_busy = f"cell/{cell}", False
    try:
        for drain in drains:
            counts, departures = await context.read(database, find_departures(drain.subject, limits))
            targets = times.targets.get(drain.version, {})
            of_hosts, room = Counter(counts.of_hosts), limits.per_cell - counts.in_cell
            for each in departures:
                if room <= 0:
                    break
                is_due = times.is_due(each, context.monotonic(), planned=each.instance in targets)
                if of_hosts[each.host] >= limits.per_host or not is_due:
                    continue
                if await _ask(context, database, drain, each, times, attached):
                    of_hosts[each.host] += 1
                    room -= 1
            is_busy = is_busy or (of_hosts[drain.subject.host] if drain.subject.host else counts.in_cell) > 0
            if room <= 0:
                break
    except StorageError as error:
        context.log("drains of a cell are moved later", {"cell": cell, "error": one_line(error)}, "debug")
    return is_busy


async def _ask(
    context: Context,
    database: str,
    drain: MovingDrain,
    departure: Departure,
    times: DrainTimes,
    attached: bool,
) -> bool:
    """Ask for the move of one instance; returns whether it has a move that is under way.

    Raises `StorageError`.
    """
    # A guest that has not arrived while it ran is stopped on the way the next time.
    kinds: tuple[MoveKind, ...] = (LIVE, "migrate") if drain.live and not departure.tries else ("migrate",)
    targets = times.targets.get(drain.version, {})
    asked = await ask_to_leave(
        context,
        database,
        departure,
        times,
        Asker("drain", OF_DRAINS, "/".join((*drain.subject, str(drain.version)))),
        kinds,
        to_host=None if departure.tries else targets.get(departure.instance),
        attached=attached,
        # Its own cell takes nothing.
        across=not drain.subject.host,
    )
    return isinstance(asked, Move) and asked.state not in ENDED
