"""What a worker process of a cell's conductor serves: the endpoint of its agents, beside its machines."""

from contextlib import AsyncExitStack
from functools import partial

from roost.agents.wire import POLL
from roost.auth.rules import Rules
from roost.cells import SCHEMA as CELL
from roost.cells import Cell
from roost.conducting.opening import open_asked
from roost.conducting.options import ConductingOptions
from roost.conducting.parts import open_agents, open_cell_conductor
from roost.conducting.readiness import conducting_health
from roost.conductor.agents.http import create_app, default_rules
from roost.conductor.agents.tokens import HostTokens
from roost.placement.http.edge import with_edge
from roost.scheduling.opening import open_database, open_recording
from roost.serving.worker import Served


async def open_cell(options: ConductingOptions, stack: AsyncExitStack) -> Served:
    """Open the cell's conductor and what its agents ask. Raises `OperatorError`."""
    http = options.http
    scheduling = options.scheduling
    assert options.cell is not None and options.cell_database is not None
    api = None
    if options.api_database is not None:
        api = open_database(stack, options.api_database, scheduling)
    records = await open_recording(stack, scheduling)
    database = open_database(stack, options.cell_database, scheduling)
    cell = Cell(options.cell, database, records=records)
    asked = await open_asked(stack, options, records, [cell], api)
    open_cell_conductor(stack, options, cell, asked, records)
    agents = open_agents(stack, options, cell, asked.placement, records, api=api)
    rules = Rules(default_rules(), options.source, http.enforce_new_defaults)
    application = create_app(agents, HostTokens(cell), rules)
    health = conducting_health(f"cell {cell.name}", database, CELL, asked, http)
    databases = [database] if asked.ledger is None else [database, asked.ledger.database]
    return Served(
        with_edge(application, asked.ledger, http, health, uncounted=(POLL,)),
        health,
        sections={"cell": partial(_describe, cell)},
        databases=databases,
    )


def _describe(cell: Cell) -> dict[str, object]:
    return {"name": cell.name, "database": str(cell.database)}
