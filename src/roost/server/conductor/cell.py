"""A worker process of a cell's conductor: it runs the conductor and serves the endpoint of its agents."""

from contextlib import AsyncExitStack
from functools import partial

from roost.agent.protocol.wire import POLL
from roost.conductor.agent_endpoint.http import create_app, default_rules
from roost.conductor.agent_endpoint.tokens import HostTokens
from roost.server.conductor.assembly import open_asked
from roost.server.conductor.options import ConductingOptions
from roost.server.conductor.parts import open_agents, open_cell_conductor
from roost.server.conductor.readiness import conducting_health
from roost.server.placement.edge import with_edge
from roost.server.scheduler.assembly import open_database, open_recording
from roost.server.workers.worker import ServedApplication
from roost.state.cell_database import SCHEMA as CELL
from roost.state.cell_database import Cell
from roost.web.auth.rules import PolicyRules


async def open_cell(options: ConductingOptions, stack: AsyncExitStack) -> ServedApplication:
    """Open the cell's conductor and the endpoint of its agents. Raises `OperatorError`."""
    assert options.cell is not None and options.cell_database is not None
    api = None
    if options.needed_api_database is not None:
        api = open_database(stack, options.needed_api_database, options)
    records = await open_recording(stack, options)
    database = open_database(stack, options.cell_database, options)
    cell = Cell(options.cell, database, records=records)
    asked = await open_asked(stack, options, records, [cell], api)
    open_cell_conductor(stack, options, cell, asked, records)
    agents = open_agents(stack, options, cell, asked.placement, records, api=api)
    rules = PolicyRules(default_rules(), options.source, options.enforce_new_defaults)
    application = create_app(agents, HostTokens(cell), rules)
    health = conducting_health(f"cell {cell.name}", database, CELL, asked, options)
    databases = [database] if asked.ledger is None else [database, asked.ledger.database]
    return ServedApplication(
        with_edge(application, asked.ledger, options, health, uncounted=(POLL,)),
        health,
        sections={"cell": partial(_describe, cell)},
        databases=databases,
    )


def _describe(cell: Cell) -> dict[str, object]:
    return {"name": cell.name, "database": str(cell.database)}
