"""The conductor of one cell: moves failed builds to alternates, frees claims, enforces time limits.

It needs its cell, placement, and a scheduler that claims alternates and targets of moves. It needs no other
cell.
"""

import asyncio
import os
import socket
import time
import uuid
from collections.abc import Callable
from functools import partial

import structlog

from roost.conductor.announced_work import WakeOptions, take_announcements
from roost.conductor.backoff import Backoff
from roost.conductor.cell_work import CellQueue, warn, work_through
from roost.conductor.context import AsyncioConductorContext, CellConductorContext, CellScheduler
from roost.conductor.moves.claims import work_on_moves
from roost.conductor.time_limits import (
    TimeLimits,
    confirm_moves,
    limit_builds,
    limit_deletions,
    limit_moves,
    limit_restarts,
    trim_past,
)
from roost.model.record import RecordSink
from roost.placement.interface import Placement
from roost.process.context import Routine, lasting
from roost.state.cell_database import Cell
from roost.state.cell_database.conductor_work import work_topic
from roost.state.cell_database.move_limits import MoveLimits
from roost.state.leases import Tenure, keep_lease, release_lease, renew, vacate_all, watch_leases
from roost.storage import StorageError

_log = structlog.get_logger()

KIND = "cell-conductor"
"""The kind of the leases of cell conductors."""


def tenure_of(name: str | None = None) -> Tenure:
    """Return the lease of a conductor of a cell.

    ``name``: the last part of the lease's name, by default one that no other process has: the process id
    alone would not do, as many containers have the same.
    """
    host = socket.gethostname()
    return Tenure(f"{KIND}/{host}/{name or f'{os.getpid()}-{uuid.uuid4().hex[:8]}'}", KIND, host)


async def keep_working(context: CellConductorContext, work: CellQueue, poll_seconds: float) -> None:
    """Do all due work, whenever the cell's topic is woken or ``poll_seconds`` have passed, for ever."""
    wakes = context.listen(work_topic(work.cell))
    failures = 0
    while True:
        pause = poll_seconds
        try:
            await context.together([work_through(context, work), work_on_moves(context, work.moves)])
            failures = 0
        except Exception as error:
            failures += 1
            pause = max(pause, work.backoff.pause(failures))
            warn(context, "a step of the cell conductor failed", error, failures, cell=work.cell)
        await wakes.wait(pause)


async def free_work_of_all(context: CellConductorContext, database: str) -> None:
    """Free the work that earlier processes owned, which are dead. Waits for the database."""
    while True:
        try:
            await context.write(database, vacate_all(KIND))
            return
        except StorageError as error:
            context.log("a cell cannot be reached", {"error": str(error)}, "warning")
        await context.sleep(1.0)


def routines_of(
    context: CellConductorContext, work: CellQueue, limits: TimeLimits, poll_seconds: float
) -> list[Routine[None]]:
    """Return the coroutines that a process runs as a conductor of a cell."""
    return [
        lasting(context, "keep_lease", lambda: keep_lease(context, work.database, work.tenure)),
        lasting(
            context, "watch_leases", lambda: watch_leases(context, work.database, KIND, work.tenure.times)
        ),
        lasting(context, "keep_working", lambda: keep_working(context, work, poll_seconds)),
        lasting(context, "limit_builds", lambda: limit_builds(context, work.cell, limits)),
        lasting(context, "limit_moves", lambda: limit_moves(context, work.cell, limits)),
        *(
            [lasting(context, "confirm_moves", lambda: confirm_moves(context, work.cell, limits))]
            if limits.confirm_hours
            else []
        ),
        lasting(context, "limit_deletions", lambda: limit_deletions(context, work.cell, limits)),
        lasting(context, "limit_restarts", lambda: limit_restarts(context, work.cell, limits)),
        lasting(context, "trim_past", lambda: trim_past(context, work.cell, limits)),
    ]


class CellConductor:
    """Runs the coroutines of a cell's conductor in this process.

    ``name``: the end of the lease's name, by default a new one. ``poll_seconds``: seconds between two looks
    at the cell while its topic is not woken. ``backoff``: how often the move of an instance is tried, and
    after which pauses. ``monotonic``: the clock of these pauses and of ``limits``. ``alone``: no other
    process is a conductor of the cell, so that the work of an earlier one is free at once. ``wakes``: where
    other processes announce work; None: nowhere. ``move_limits``: the limits of moves at once.
    """

    def __init__(
        self,
        cell: Cell,
        placement: Placement,
        scheduler: CellScheduler,
        records: RecordSink,
        *,
        name: str | None = None,
        poll_seconds: float = 1.0,
        backoff: Backoff = Backoff(),  # noqa: B008 - it is frozen
        limits: TimeLimits = TimeLimits(),  # noqa: B008 - it is frozen
        move_limits: MoveLimits = MoveLimits(),  # noqa: B008 - it is frozen
        alone: bool = False,
        wakes: WakeOptions | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cell = cell
        self._poll_seconds = poll_seconds
        self._limits = limits
        self._alone = alone
        self._wakes = wakes
        self.work = CellQueue(cell.name, tenure_of(name), backoff, move_limits)
        self._context = AsyncioConductorContext(
            lambda _: cell,
            placement,
            scheduler,
            records=records,
            wakes=cell.wakes,
            clock=clock,
            monotonic=monotonic,
        )

    async def run(self) -> None:
        """Work until cancelled."""
        if self._alone:
            await free_work_of_all(self._context, self.work.database)
        async with asyncio.TaskGroup() as tasks:
            for routine in routines_of(self._context, self.work, self._limits, self._poll_seconds):
                tasks.create_task(routine)
            if (wakes := self._wakes) is not None:
                taking = partial(take_announcements, self._cell, self.work.tenure, wakes)
                tasks.create_task(lasting(self._context, "take_announcements", taking))

    async def close(self) -> None:
        """Give the lease back, so that others take up the work at once. `run` must have been cancelled."""
        tenure = self.work.tenure
        if tenure.holder:
            try:
                await self._cell.write(release_lease(tenure.name, tenure.holder))
            except StorageError as error:
                _log.warning("the lease could not be given back", cell=self._cell.name, error=str(error))

    async def step(self) -> None:
        """Do all work that is due now. Raises `StorageError` and what placement raises."""
        await renew(self._context, self.work.database, self.work.tenure)
        await work_through(self._context, self.work)
        await work_on_moves(self._context, self.work.moves)
