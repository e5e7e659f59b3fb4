"""A worker process of the Placement API: it opens a database and its ledger."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import msgspec

from roost.fleet.feasibility import feasibilities
from roost.ledger import Ledger
from roost.ledger.capacity_metrics import CapacityMetrics
from roost.ledger.retention import keep_trimming
from roost.placement.http.app import create_app
from roost.placement.http.document import document_at
from roost.placement.options import PlacementOptions, shown_options
from roost.placement.queries import QueryBudget
from roost.placement.readiness import placement_health
from roost.placement.v1.app import V1
from roost.server.placement.edge import with_edge
from roost.server.workers import worker
from roost.server.workers.database_wait import DatabaseWait
from roost.server.workers.supervision import Cause
from roost.server.workers.worker import ServedApplication
from roost.storage import Database, DatabaseUrl
from roost.web.dispatch import Application, dispatch
from roost.web.health_operations import DOCUMENTED
from roost.web.operation import Operation


class PlacementWorker(worker.Worker):
    """Serves the Placement API and ``/v1`` on a replica. ``database``: its SQLAlchemy URL."""

    def __init__(
        self,
        database: DatabaseUrl | str,
        options: PlacementOptions,
        report: Callable[[str | None], None] = lambda _: None,
        metrics: Path | None = None,
        cause: Cause = "start",
        drain_seconds: float = 10.0,
        waiting: DatabaseWait | None = None,
    ) -> None:
        super().__init__(
            options.tracing,
            partial(shown_options, options),
            report,
            metrics,
            cause,
            drain_seconds,
            waiting,
        )
        self._url = database
        self._options = options

    async def open(self, stack: AsyncExitStack) -> ServedApplication:
        database = Database(self._url, answer_seconds=self._options.answer_seconds)
        stack.push_async_callback(database.close)
        ledger = await Ledger.open(database)
        stack.push_async_callback(ledger.close)
        fleet = ledger.known()
        if fleet.has_trees:
            feasibilities(fleet).prepare()
        health = placement_health(ledger, self._options)
        placement, v1 = open_api(stack, ledger, self._options, DOCUMENTED)
        services = dispatch({"/v1": v1}, placement)
        trimming = asyncio.create_task(keep_trimming(ledger, self._options.retention, time.time))
        stack.callback(trimming.cancel)
        counting = asyncio.create_task(CapacityMetrics(ledger).run(), name="capacity")
        stack.callback(counting.cancel)
        return ServedApplication(
            with_edge(services, ledger, self._options, health),
            health,
            sections={"ledger": partial(_describe, ledger)},
            databases=(database,),
            stop=(v1.close,),
        )


def open_api(
    stack: AsyncExitStack, ledger: Ledger, options: PlacementOptions, documented: Sequence[Operation]
) -> tuple[Application, V1]:
    """Return the Placement API of a ledger, and ``/v1``, which share a limit of queries.

    ``documented``: further operations that the OpenAPI document of ``/v1`` describes. Raises `OperatorError`
    for options of tokens or policies that cannot work.
    """
    queries = QueryBudget(ledger, options.limits)
    v1 = V1(ledger, options, queries, document_at, documented)
    stack.callback(v1.close)
    return create_app(ledger, options, queries), v1


def _describe(ledger: Ledger) -> dict[str, object]:
    return {"database": str(ledger.database), **msgspec.structs.asdict(ledger.status())}
