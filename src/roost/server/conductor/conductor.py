"""A worker process of the super conductor: it runs the conductor and serves the API of instances."""

from contextlib import AsyncExitStack
from functools import partial

from roost.conductor.super_conductor import SuperConductor
from roost.model.errors import OperatorError
from roost.placement.access import open_authenticator
from roost.server.conductor.assembly import open_asked
from roost.server.conductor.options import ConductingOptions
from roost.server.conductor.parts import (
    conductor_application,
    open_aggregates,
    open_cell_conductor,
    open_cells,
    open_super_conductor,
)
from roost.server.conductor.readiness import conducting_health
from roost.server.placement.edge import with_edge
from roost.server.scheduler.assembly import open_database, open_recording
from roost.server.scheduler.runtime import run_for_ever
from roost.server.workers.worker import ServedApplication
from roost.state.api_database.cell_mappings import (
    CELL0,
    CellMapping,
    KnowCell,
    mapped_cells,
    section_of,
    url_of,
)
from roost.state.api_database.open_cells import OpenCells
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.storage import Database, DatabaseUnavailable


async def open_conductor(options: ConductingOptions, stack: AsyncExitStack) -> ServedApplication:
    """Open the super conductor and its API. Raises `OperatorError`."""
    assert options.api_database is not None
    api = open_database(stack, options.api_database, options)
    records = await open_recording(stack, options)
    CONDUCTOR.prepare(api)
    await _know_cell0(api, options)
    cells = await open_cells(stack, options, api, records)
    asked = await open_asked(stack, options, records, cells.values(), api)
    aggregates, mirror = open_aggregates(api, cells, asked.placement)
    run_for_ever(stack, "aggregates", mirror.run())
    conducting = await open_super_conductor(stack, options, api, cells, asked, records, aggregates)
    if CELL0 in cells:
        # cell0 has no hosts and no process of its own, but deletions of its instances must be finished.
        open_cell_conductor(stack, options, cells[CELL0], asked, records)
    application = conductor_application(conducting, options, open_authenticator(options), documented=True)
    health = conducting_health("api database", api, CONDUCTOR, asked, options)
    databases = [api] if asked.ledger is None else [api, asked.ledger.database]
    return ServedApplication(
        with_edge(application, asked.ledger, options, health),
        health,
        sections={"conductor": partial(_describe, conducting.conductor, cells)},
        databases=databases,
    )


async def _know_cell0(api: Database, options: ConductingOptions) -> None:
    """Write the mapping of cell0, which each conductor has, into the API database."""
    if CELL0 in await api.read(mapped_cells):
        return
    cell0 = CellMapping(CELL0, section_of(CELL0))
    try:
        url_of(cell0, options.source)
    except DatabaseUnavailable as error:
        # A configuration error is no outage: the start must not wait for it to pass.
        raise OperatorError(str(error)) from None
    await api.write(KnowCell(cell0))


def _describe(conductor: SuperConductor, cells: OpenCells) -> dict[str, object]:
    return {
        "requests": conductor.in_progress,
        "cells": {name: str(cell.database) for name, cell in cells.items()},
    }
