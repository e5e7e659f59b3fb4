"""What both conductors open: placement, and a scheduler in this process or over HTTP."""

from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import NamedTuple

from roost.conductor.questions import SchedulerLike
from roost.ledger import Ledger
from roost.placement.client import HttpPlacement
from roost.placement.interface import Placement
from roost.placement.service import PlacementService
from roost.records import RecordQueue
from roost.scheduler.client import HttpScheduler
from roost.server.conductor.options import ConductingOptions
from roost.server.scheduler.opening import open_deciding, open_placement
from roost.state.cell_database import Cell
from roost.storage import Database


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
