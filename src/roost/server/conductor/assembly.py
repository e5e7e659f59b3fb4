"""Opens the services that both conductors call: placement, and a scheduler in this process or over HTTP."""

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
from roost.server.scheduler.assembly import open_deciding, open_placement
from roost.state.cell_database import Cell
from roost.storage import Database


class ConductorServices(NamedTuple):
    """The services that a conductor calls.

    ``ledger``: the ledger of this process; None: placement is another service, ``http_placement``.
    """

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
) -> ConductorServices:
    """Open placement and the scheduler.

    ``cells``: a scheduler in this process has the nodes of these cells as hosts. Raises `OperatorError`.
    """
    opened = await open_placement(stack, options)
    ledger = opened if isinstance(opened, Ledger) else None
    over_http = None if isinstance(opened, Ledger) else opened
    placement: Placement = PlacementService(opened) if isinstance(opened, Ledger) else opened
    if options.uses_service:
        service = await stack.enter_async_context(HttpScheduler.configured(options.source))
        return ConductorServices(placement, service, ledger, over_http)
    deciding = await open_deciding(stack, options, opened, records, cells, api)
    return ConductorServices(placement, deciding.scheduler, ledger, over_http)
