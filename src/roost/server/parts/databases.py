"""The records, the API database, and the databases of cells."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import sqlalchemy as sa
import structlog

from roost.model.errors import OperatorError
from roost.placement.readiness import database_verdict
from roost.process.metrics import catalogue as metrics
from roost.records import RecordQueue, RecordsError, open_records
from roost.server.options import ConductingOptions, SchedulingOptions, open_conf
from roost.server.process import Process, ProcessPart, prepare_database
from roost.state.api_database.cell_mappings import (
    CELL0,
    CellMapping,
    map_unknown_cell,
    mapped_cells,
    section_of,
    url_of,
)
from roost.state.api_database.open_cells import OpenCells
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database import SCHEMA as CELL
from roost.state.cell_database import Cell
from roost.storage import (
    Database,
    DatabaseMisconfigured,
    DatabaseUnavailable,
    ForeignTables,
    Schema,
    check_writes,
)
from roost.web.health import HealthCheck

TRIM_SECONDS = 60.0
"""Seconds between two removals of old records."""

_log = structlog.get_logger()


class RecordsPart(ProcessPart[SchedulingOptions]):
    """The history of scheduling runs and attempts, without expired records."""

    async def open(self, process: Process[SchedulingOptions]) -> None:
        process.records = records = await open_records(open_conf(process.options.source))
        process.stack.push_async_callback(records.close)
        if not process.only_reads:
            process.run_beside(_trim(records, process.clock))
        metrics.WAITING_RECORDS.follow(lambda: records.waiting)


class ApiDatabasePart(ProcessPart[SchedulingOptions]):
    """The API database, if the process needs it."""

    def prepare(self, options: SchedulingOptions) -> None:
        url = options.needed_api_database
        if url is None:
            return
        database = Database(url)
        try:
            CONDUCTOR.refuse_foreign(database)
        except ForeignTables as error:
            raise OperatorError(
                f"[api_database] connection: {error}; in a nova.conf the option of this name is Nova's"
            ) from error
        except DatabaseMisconfigured:
            raise
        except DatabaseUnavailable as error:
            # Not an error here: placement is prepared after this, and what needs the database waits for it.
            _log.warning("the API database cannot be checked", error=str(error))
        finally:
            asyncio.run(database.close())

    async def open(self, process: Process[SchedulingOptions]) -> None:
        if process.options.needed_api_database is not None:
            process.api = process.open_database(process.options.needed_api_database)

    def readiness(self, process: Process[SchedulingOptions]) -> Sequence[HealthCheck]:
        assert process.api is not None
        return (_check("api database", process.api, CONDUCTOR),)


class Cell0MappingPart(ProcessPart[ConductingOptions]):
    """The tables of the API database, and the mapping of cell0 in it, which each conductor has."""

    def prepare(self, options: ConductingOptions) -> None:
        assert options.api_database is not None
        prepare_database(options.api_database, schema=CONDUCTOR)

    async def open(self, process: Process[ConductingOptions]) -> None:
        assert process.api is not None
        CONDUCTOR.prepare(process.api)
        if CELL0 in await process.api.read(mapped_cells):
            return
        cell0 = CellMapping(CELL0, section_of(CELL0))
        try:
            url_of(cell0, process.options.source)
        except DatabaseUnavailable as error:
            # A configuration error is no outage: the start must not wait for it to pass.
            raise OperatorError(str(error)) from None
        await process.api.write(map_unknown_cell(cell0))


class CellsPart(ProcessPart[SchedulingOptions]):
    """The cells that the API database names, if the process has it. They follow its mappings."""

    async def open(self, process: Process[SchedulingOptions]) -> None:
        if process.api is None:
            process.cells = {}
            return
        process.cells = cells = OpenCells(
            process.api,
            process.options.source,
            process.records,
            without=frozenset() if "super_conductor" in process.parts else frozenset((CELL0,)),
            answer_seconds=process.options.answer_seconds,
            clock=process.clock,
        )
        process.stack.push_async_callback(cells.close)
        await cells.refresh()
        process.run_for_ever("cells", cells.run())
        # cell0 has no hosts and no process of its own, but deletions of its instances must be finished.
        process.conducted = [cells[CELL0]] if CELL0 in cells else []


class CellPart(ProcessPart[ConductingOptions]):
    """The cell of a cell's conductor, which needs no API database to find it."""

    def prepare(self, options: ConductingOptions) -> None:
        if options.needed_api_database is not None:
            prepare_database(options.needed_api_database, schema=CONDUCTOR)
        assert options.cell_database is not None
        prepare_database(options.cell_database, schema=CELL)

    async def open(self, process: Process[ConductingOptions]) -> None:
        name, url = process.options.cell, process.options.cell_database
        assert name is not None and url is not None
        cell = Cell(name, process.open_database(url), process.clock, process.records)
        process.cells, process.conducted = {name: cell}, [cell]
        process.sections["cell"] = lambda: {"name": name, "database": str(cell.database)}

    def readiness(self, process: Process[ConductingOptions]) -> Sequence[HealthCheck]:
        return [_check(f"cell {cell.name}", cell.database, CELL) for cell in process.conducted]


async def _trim(records: RecordQueue, clock: Callable[[], float]) -> None:
    """Remove records past their retention periodically, until cancelled."""
    while True:
        await asyncio.sleep(TRIM_SECONDS)
        try:
            await records.backend.trim(clock())
        except RecordsError as error:
            _log.warning("old records are removed later", error=str(error))


def _check(name: str, database: Database, schema: Schema) -> HealthCheck:
    """Return the check that a database can be read, and that its tables, those of a schema, be written."""
    return HealthCheck(name, partial(_use, database, schema), database_verdict)


async def _use(database: Database, schema: Schema) -> None:
    await database.read(lambda connection: connection.scalar(sa.select(1)))
    await check_writes(database, schema)
