"""What both conductors open: placement, and a scheduler in this process or over HTTP."""

import asyncio
import os
import signal
from collections.abc import Coroutine, Iterable
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import structlog

from roost.cells import Cell
from roost.conducting.options import ConductingOptions
from roost.conductor.questions import SchedulerLike
from roost.ledger import Ledger
from roost.placement.client import HttpPlacement
from roost.placement.interface import Placement
from roost.placement.service import PlacementService
from roost.records import RecordQueue
from roost.scheduling.client import HttpScheduler
from roost.scheduling.opening import open_deciding, open_placement, run_beside
from roost.storage import Database

_log = structlog.get_logger()


class Asked(NamedTuple):
    """What a conductor asks. ``ledger``: of this process; None: another service has it."""

    placement: Placement
    scheduler: SchedulerLike
    ledger: Ledger | None
    http_placement: HttpPlacement | None


async def open_asked(
    stack: AsyncExitStack,
    options: ConductingOptions,
    records: RecordQueue,
    cells: Iterable[Cell],
    api: Database | None,
) -> Asked:
    """Open placement and the scheduler.

    ``cells``: whose nodes a scheduler in this process knows. Raises `OperatorError`.
    """
    opened = await open_placement(stack, options.scheduling)
    ledger = opened if isinstance(opened, Ledger) else None
    over_http = None if isinstance(opened, Ledger) else opened
    placement: Placement = PlacementService(opened) if isinstance(opened, Ledger) else opened
    if options.uses_service:
        service = await stack.enter_async_context(HttpScheduler.configured(options.source))
        return Asked(placement, service, ledger, over_http)
    deciding = await open_deciding(stack, options.scheduling, opened, records, cells, api)
    return Asked(placement, deciding.scheduler, ledger, over_http)


def run_for_ever(stack: AsyncExitStack, name: str, work: Coroutine[Any, Any, None]) -> None:
    """Run work that must not end. If it does, which is a defect, this process ends, and its parent starts
    another one."""
    task = run_beside(stack, work)

    def ended(task: "asyncio.Task[None]") -> None:
        if not task.cancelled():
            _log.error("a part of the process has died", part=name, exc_info=task.exception())
            os.kill(os.getpid(), signal.SIGTERM)

    task.add_done_callback(ended)
