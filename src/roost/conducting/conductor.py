"""What a worker process of the super conductor serves: the API of what it accepts, beside its machines."""

from contextlib import AsyncExitStack
from functools import partial

from roost.auth.rules import Rules
from roost.conducting.opening import open_asked, run_for_ever
from roost.conducting.options import ConductingOptions
from roost.conducting.readiness import conducting_health
from roost.conductor import http as conductor_http
from roost.conductor.aggregates.host_aggregates import HostAggregates
from roost.conductor.aggregates.mirror import AggregateMirror
from roost.conductor.aggregates.store import AggregateStore
from roost.conductor.cell_conductor import CellConductor
from roost.conductor.cell_mappings import CELL0, CellMapping, KnowCell, mapped_cells, section_of, url_of
from roost.conductor.open_cells import OpenCells
from roost.conductor.requests import Requests
from roost.conductor.server_groups.store import ServerGroups
from roost.conductor.super_conductor import SuperConductor
from roost.metrics import catalogue as metrics
from roost.model.errors import OperatorError
from roost.placement.access import open_authenticator
from roost.placement.http.edge import with_edge
from roost.scheduling.opening import open_database, open_recording
from roost.serving.worker import Served
from roost.storage import Database, DatabaseRefused, DatabaseUnavailable


async def open_conductor(options: ConductingOptions, stack: AsyncExitStack) -> Served:
    """Open the super conductor and its API. Raises `OperatorError`."""
    http = options.http
    assert options.scheduling.api_database is not None
    api = open_database(stack, options.scheduling.api_database, options.scheduling)
    requests = Requests(api)
    records = await open_recording(stack, options.scheduling)
    cells = OpenCells(api, options.source, records, answer_seconds=http.answer_seconds)
    stack.push_async_callback(cells.close)
    await _know_cell0(api, options)
    await cells.refresh()
    run_for_ever(stack, "cells", cells.run())
    asked = await open_asked(stack, options, records, cells.values(), api)
    aggregates = HostAggregates(AggregateStore(api), cells.values())
    mirror = AggregateMirror(aggregates.store, asked.placement, aggregates.nodes, aggregates.changed)
    run_for_ever(stack, "aggregates", mirror.run())
    conductor = SuperConductor(
        api, asked.scheduler, asked.placement, cells, records=records, max_attempts=options.max_attempts
    )
    stack.push_async_callback(conductor.close)
    await conductor.begin()
    await conductor.resume()
    if CELL0 in cells:
        # It has no hosts and no process of its own, but what is deleted there must be forgotten.
        of_cell0 = CellConductor(
            cells[CELL0], asked.placement, asked.scheduler, records, limits=options.time_limits
        )
        stack.push_async_callback(of_cell0.close)
        run_for_ever(stack, "cell0", of_cell0.run())
    metrics.BUILD_REQUESTS.follow(lambda: conductor.in_progress)
    rules = Rules(conductor_http.default_rules(), options.source, http.enforce_new_defaults)
    application = conductor_http.create_app(
        conductor,
        requests,
        aggregates,
        ServerGroups(api),
        asked.placement,
        open_authenticator(http),
        rules,
        http,
    )
    health = conducting_health("api database", api, asked, http)
    databases = [api] if asked.ledger is None else [api, asked.ledger.database]
    return Served(
        with_edge(application, asked.ledger, http, health),
        health,
        sections={"conductor": partial(_describe, conductor, cells)},
        databases=databases,
    )


async def _know_cell0(api: Database, options: ConductingOptions) -> None:
    """Have the API database name cell0, which each conductor has."""
    if CELL0 in await api.read(mapped_cells):
        return
    cell0 = CellMapping(CELL0, section_of(CELL0))
    try:
        url_of(cell0, options.source)
    except DatabaseUnavailable as error:
        # Waiting would not help.
        raise OperatorError(str(error)) from None
    try:
        await api.write(KnowCell(cell0))
    except DatabaseRefused:
        # Another conductor, which starts at the same time, has written it.
        if CELL0 not in await api.read(mapped_cells):
            raise


def _describe(conductor: SuperConductor, cells: OpenCells) -> dict[str, object]:
    return {
        "requests": conductor.in_progress,
        "cells": {name: str(cell.database) for name, cell in cells.items()},
    }
