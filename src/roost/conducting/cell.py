"""A worker process of a cell's conductor: its machines, and the endpoint of the cell's agents."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from roost.agents.wire import POLL
from roost.auth.rules import Rules
from roost.cells import Cell
from roost.conducting.opening import open_asked, run_for_ever
from roost.conducting.options import ConductingOptions, shown_options
from roost.conducting.readiness import conducting_health
from roost.conducting.waiting import open_when_there
from roost.conductor.agents.endpoint import EndpointTimes
from roost.conductor.agents.http import create_app, default_rules
from roost.conductor.agents.service import AgentService
from roost.conductor.agents.tokens import HostTokens
from roost.conductor.cell_conductor import CellConductor
from roost.placement.http.edge import with_edge
from roost.scheduling.opening import open_database, open_recording
from roost.serving import worker
from roost.serving.supervision import Cause
from roost.serving.worker import Served

STOP_SECONDS = 1.0
"""Seconds that a database has for each answer after SIGTERM or SIGINT."""


class CellWorker(worker.Worker):
    """Serves the questions of a cell's agents, and runs the cell's conductor."""

    def __init__(
        self,
        options: ConductingOptions,
        report: Callable[[str | None], None] = lambda _: None,
        metrics: Path | None = None,
        cause: Cause = "start",
        drain_seconds: float = 10.0,
    ) -> None:
        super().__init__(
            options.http.tracing, partial(shown_options, options), report, metrics, cause, drain_seconds
        )
        self._options = options

    async def open(self, stack: AsyncExitStack) -> Served:
        return await open_when_there(stack, self._open)

    async def _open(self, stack: AsyncExitStack) -> Served:
        options, http = self._options, self._options.http
        scheduling = options.scheduling
        assert options.cell is not None and options.cell_database is not None
        api = None
        if scheduling.api_database is not None and not options.uses_service:
            api = open_database(stack, scheduling.api_database, scheduling)
        records = await open_recording(stack, scheduling)
        database = open_database(stack, options.cell_database, scheduling)
        cell = Cell(options.cell, database, records=records)
        asked = await open_asked(stack, options, records, [cell], api)
        conductor = CellConductor(cell, asked.placement, asked.scheduler, records, limits=options.time_limits)
        stack.push_async_callback(conductor.close)
        run_for_ever(stack, "conductor", conductor.run())
        agents = AgentService(
            cell, asked.placement, records, times=EndpointTimes(build=options.time_limits.build_seconds)
        )
        run_for_ever(stack, "agents", agents.run())
        rules = Rules(default_rules(), options.source, http.enforce_new_defaults)
        application = create_app(agents, HostTokens(cell), rules)
        health = conducting_health(f"cell {cell.name}", database, asked, http)
        stop = [partial(database.stop_within, STOP_SECONDS)]
        if asked.ledger is not None:
            stop.append(partial(asked.ledger.database.stop_within, STOP_SECONDS))
        return Served(
            with_edge(application, asked.ledger, http, health, uncounted=(POLL,)),
            health,
            sections={"cell": partial(_describe, cell)},
            stop=stop,
        )


def _describe(cell: Cell) -> dict[str, object]:
    return {"name": cell.name, "database": str(cell.database)}
