"""Drains with moves: instances on disabled subjects are asked to move, as many at once as the limits allow.

Several super conductors may ask at the same time. The uuid of a move is made of the drain, the instance and
the number of its tries, so that they ask for the same move, which begins once. An instance whose move has
failed is asked again, after pauses that grow. They are measured by this process's own clock, and begin anew
with it.

A drain may have guests move while they run. Those that cannot, and those whose first move has failed, are
stopped on the way.

A drain of a maintenance has planned targets. The first move of an instance asks for its target; after a
refusal there the scheduler chooses.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from roost.conductor.backoff import Backoff
from roost.model.departure import Departure
from roost.model.instance import Requester
from roost.model.move import ENDED, LIVE, Move, MoveKind, MoveRefused
from roost.model.service_version import ATTACHED_MOVES, CELL_MOVES, MOVES, Feature
from roost.model.service_version import LIVE as LIVE_MOVES
from roost.process.context import Context
from roost.scheduler.selection.claim_result import one_line
from roost.state.api_database.drains import MovingDrain, read_moving_drains
from roost.state.api_database.maintenance_rows import read_planned_targets
from roost.state.api_database.tables import API
from roost.state.cell_database.departures import find_departures
from roost.state.cell_database.move_limits import MoveLimits
from roost.state.cell_database.moves import begin_move
from roost.storage import StorageError

EVERY_SECONDS = 2.0
"""Seconds between two looks at the drains with moves while nothing moves."""

BUSY_SECONDS = 0.5
"""Seconds between two looks while moves from a drained host are under way: the next may soon begin."""

RETRIES = Backoff(first_seconds=10.0, longest_seconds=900.0)
"""The pauses before an instance whose move has failed is asked to move again."""

EARLY = Backoff(first_seconds=5.0, longest_seconds=30.0)
"""The pauses before an instance is asked again that was asked too early: what keeps it ends by itself."""

OF_DRAINS = uuid.UUID("6f1c1f52-58c5-4d0f-9a4e-5b1d3f0b7a11")
"""The namespace of the uuids of moves that drains ask for."""


class _Failed(NamedTuple):
    """An instance that has not moved: its failed moves, requests that were refused, and when it is due.

    ``early``: requests in a row that came too early.
    """

    tries: int
    refusals: int
    due: float
    early: int = 0


class RetryTimes:
    """The times at which instances whose moves have failed are asked again, by a monotonic clock.

    ``targets``: the planned targets of the drains that are under way, by the version of their word.
    """

    def __init__(self) -> None:
        self._failed: dict[str, _Failed] = {}
        self.targets: Mapping[int, Mapping[str, str]] = {}

    def is_due(self, departure: Departure, now: float, *, planned: bool = False) -> bool:
        """Return whether an instance may be asked at ``now``. A failure counts from when it is seen first.

        ``planned``: the first move asked for a target of a plan, so that the next follows without a pause.
        """
        known = self._failed.get(departure.instance)
        if known is None or known.tries != departure.tries:
            if departure.tries <= planned:
                return True
            known = self._note(departure, 0 if known is None else known.refusals, now)
        return now >= known.due

    def refuse(self, departure: Departure, now: float, refused: MoveRefused) -> None:
        """Note that the cell has refused to move an instance.

        A request that came too early is no failure, after which the pauses grow up to 15 minutes.
        """
        known = self._failed.get(departure.instance, _Failed(departure.tries, 0, now))
        if refused.is_early:
            early = known.early + 1
            due = now + EARLY.pause(early)
            self._failed[departure.instance] = _Failed(departure.tries, known.refusals, due, early)
        else:
            self._note(departure, known.refusals + 1, now)

    def clear(self) -> None:
        """Forget all: nothing is drained."""
        self._failed.clear()
        self.targets = {}

    def _note(self, departure: Departure, refusals: int, now: float) -> _Failed:
        pause = RETRIES.pause(departure.tries + refusals)
        failed = self._failed[departure.instance] = _Failed(departure.tries, refusals, now + pause)
        return failed


async def empty_subjects(
    context: Context,
    cells: Callable[[], Collection[str]],
    limits: MoveLimits,
    knows: Callable[[Feature], bool],
) -> None:
    """Ask for the moves of drains in the cells that answer, for ever.

    ``knows``: returns whether all processes know a feature.
    """
    times = RetryTimes()
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
    times: RetryTimes,
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


async def _read_targets(context: Context, drains: Sequence[MovingDrain], times: RetryTimes) -> None:
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
    times: RetryTimes,
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
    times: RetryTimes,
    attached: bool,
) -> bool:
    """Ask for the move of one instance; returns whether it has a move that is under way.

    Raises `StorageError`.
    """
    targets = times.targets.get(drain.version, {})
    of_drain = "/".join((*drain.subject, str(drain.version)))
    by = Requester("drain", "", f"req-{uuid.uuid5(OF_DRAINS, of_drain)}")
    of_try = f"{of_drain}/{departure.instance}/{departure.attempt}/{departure.tries}"
    # A guest that has not arrived while it ran is stopped on the way the next time.
    kinds: tuple[MoveKind, ...] = (LIVE, "migrate") if drain.live and not departure.tries else ("migrate",)
    asked: Move | MoveRefused | None = None
    for kind in kinds:
        begin = begin_move(
            uuid=str(uuid.uuid5(OF_DRAINS, of_try)),
            instance=departure.instance,
            kind=kind,
            by=by,
            at=context.clock(),
            to_host=None if departure.tries else targets.get(departure.instance),
            attached=attached,
            # Its own cell takes nothing.
            across=not drain.subject.host,
        )
        asked = await context.write(database, begin)
        if not isinstance(asked, MoveRefused):
            break
    if isinstance(asked, MoveRefused):
        times.refuse(departure, context.monotonic(), asked)
        return False
    return asked is not None and asked.state not in ENDED
