"""Runs a whole system in this process, and stops it."""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import sqlalchemy as sa
import structlog

from roost.agent.drivers.simulated import Script, SimulatedDriver
from roost.agent.hosted_agents import HostedAgents
from roost.agent.options import AgentTimes
from roost.conductor.agent_endpoint.service import AgentService
from roost.conductor.aggregates.host_aggregates import HostAggregates
from roost.conductor.super_conductor import SuperConductor
from roost.ledger import Ledger
from roost.ledger.retention import keep_trimming
from roost.model.errors import OperatorError
from roost.model.instance import ACTIVE, ERROR
from roost.placement.service import PlacementService
from roost.records import RecordQueue
from roost.scheduler import Scheduler
from roost.scheduler.gateways import Gateway
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.scheduler import seeds_from
from roost.server.all_in_one.layout import SystemLayout, keep_layout
from roost.server.all_in_one.timings import TimedGateway
from roost.server.conductor.assembly import ConductorServices
from roost.server.conductor.options import ConductingOptions
from roost.server.conductor.parts import (
    Conducting,
    open_agents,
    open_aggregates,
    open_cell_conductor,
    open_cells,
    open_super_conductor,
)
from roost.server.scheduler.assembly import Deciding, keep_records, open_database, open_deciding, open_ledger
from roost.server.scheduler.runtime import Runtime, run_beside, run_for_ever
from roost.state.api_database.cell_mappings import CELL0, CellMapping, MapCells, mapped_cells, section_of
from roost.state.api_database.open_cells import OpenCells
from roost.state.api_database.requests import Requests
from roost.state.api_database.server_groups import ServerGroups
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database import Cell
from roost.state.cell_database.cell import GONE, changed
from roost.storage import Database, DatabaseUnavailable, StorageError

API_DB = "api.db"

JOIN_SECONDS = 1.0
"""Seconds between two checks of the database of a cell that was down at the start."""

_log = structlog.get_logger()


class SystemOptions(ConductingOptions, frozen=True, kw_only=True):
    """The options of a system, with those of all services.

    ``configured``: the cells, cell0 among them, whose databases the configuration names; the databases of
    other cells are files in the data directory. ``script``: the behaviour of the simulated hosts. ``seed``:
    seeds all random numbers. ``heartbeat_seconds``: the longest wait of a host's poll.
    ``trim_records_seconds``: seconds between two removals of old records.
    """

    configured: frozenset[str] = frozenset()
    script: Script = Script()
    seed: int = 0
    heartbeat_seconds: float = 10.0
    trim_records_seconds: float = 60.0


class System:
    """Placement, scheduler, conductors, cells and simulated hosts in one process.

    They are the same parts that the separate programs open. Databases are SQLite files in one directory,
    unless the options name others. A cell whose database is away is opened later, and its hosts join then.
    Open with `System.open`, which resumes the work that an earlier process left unfinished.
    """

    api: Database
    ledger: Ledger
    placement: PlacementService
    asked: ConductorServices
    aggregates: HostAggregates
    conducting: Conducting
    gateway: TimedGateway
    deciding: Deciding
    cells: OpenCells

    def __init__(
        self,
        directory: Path,
        layout: SystemLayout,
        records: RecordQueue,
        options: SystemOptions,
        clock: Callable[[], float],
    ) -> None:
        self.directory = directory
        self.layout = layout
        self.records = records
        self.options = options
        self._stack = AsyncExitStack()
        self._runtime = Runtime(clock, self._end)
        self._broken: BaseException | None = None

    @classmethod
    async def open(
        cls,
        directory: Path,
        layout: SystemLayout,
        records: RecordQueue,
        options: SystemOptions,
        clock: Callable[[], float] = time.time,
    ) -> "System":
        """Set up or resume the system in ``directory`` and start it. ``records`` is closed with it.

        ``clock``: seconds since 1970, for all parts of the system.

        Raises `OperatorError` naming the directory or database that cannot be used.
        """
        system = cls(directory, layout, records, options, clock)
        try:
            await system._open()
        except BaseException:
            await system.close()
            raise
        return system

    @property
    def super_conductor(self) -> SuperConductor:
        """The super conductor."""
        return self.conducting.conductor

    @property
    def requests(self) -> Requests:
        """The accepted requests."""
        return self.conducting.requests

    @property
    def groups(self) -> ServerGroups:
        """The server groups."""
        return self.conducting.groups

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler that all conductors call."""
        return self.deciding.scheduler

    @property
    def table(self) -> NodeTable:
        """The scheduler's node table."""
        return self.deciding.hosts.table

    @property
    def databases(self) -> list[Database]:
        """All databases that are open."""
        return [self.api, self.ledger.database, *(cell.database for cell in self.cells.values())]

    async def close(self) -> None:
        """Stop all parts. The next start resumes unfinished work."""
        await self._stack.aclose()

    async def settle(self) -> None:
        """Wait until no part has work to do. Raises if a part of the system has died."""
        changes = {name: cell.listen(ACTIVE, ERROR, GONE) for name, cell in self.cells.items()}
        try:
            while True:
                await self.super_conductor.idle()
                failure = self._broken or self.super_conductor.failure
                if failure is not None:
                    raise failure
                busy = [name for name, cell in self.cells.items() if await cell.unsettled()]
                if not busy:
                    return
                await changed(changes[busy[0]], 0.2)
        finally:
            for name, cell in self.cells.items():
                cell.unlisten(changes[name])

    async def broken(self) -> BaseException:
        """Wait until a part of the system dies, which is a defect, and return its error."""
        while self._broken is None:
            await asyncio.sleep(0.2)
        return self._broken

    async def _open(self) -> None:
        stack, options, runtime = self._stack, self.options, self._runtime
        assert options.api_database is not None and options.database is not None
        keep_records(stack, self.records, self.options.trim_records_seconds, runtime.clock)
        keep_layout(self.directory, self.layout)
        self.api = api = open_database(stack, options.api_database, options)
        # One database object for both: two writers on one SQLite file would wait for each other.
        shared = options.database == options.api_database
        placement_database = api if shared else open_database(stack, options.database, options)
        self.ledger = await open_ledger(stack, placement_database, runtime.clock)
        self.placement = PlacementService(self.ledger)
        CONDUCTOR.prepare(api)
        await self._map_cells()
        self.cells = await open_cells(stack, options, api, self.records, runtime)
        there = [name for name in (CELL0, *self.layout.cells) if await self._is_there(name)]
        for name in self.layout.cells:
            fleet = self._open_hosts(name)
            if name in there:
                # Cell after cell, so that the providers of equal replays are made in the same order.
                await fleet.started()
        self.aggregates, mirror = open_aggregates(api, self.cells, self.placement)
        await self._make_aggregates()
        await mirror.heal()
        self.deciding = await open_deciding(
            stack,
            options,
            self.ledger,
            self.records,
            self.cells.values(),
            api,
            runtime=runtime,
            around=self._timed,
            seeds=seeds_from(random.Random(self.options.seed)),
        )
        run_for_ever(stack, "aggregates", mirror.run(), runtime)
        self.asked = ConductorServices(self.placement, self.deciding.scheduler, self.ledger, None)
        for name in (CELL0, *self.layout.cells):
            cell = self.cells[name]
            open_cell_conductor(
                stack, options, cell, self.asked, self.records, runtime, alone=self._owns(cell.database)
            )
        run_beside(stack, keep_trimming(self.ledger, options.retention, runtime.clock))
        self.conducting = await open_super_conductor(
            stack,
            options,
            api,
            self.cells,
            self.asked,
            self.records,
            self.aggregates,
            runtime,
            alone=self._owns(api),
        )

    async def _map_cells(self) -> None:
        """Write the mappings of the layout's cells and of cell0 into the API database."""
        known = await self.api.read(mapped_cells)
        directory = self.directory.resolve()
        wanted = []
        for name in (CELL0, *self.layout.cells):
            if name in self.options.configured:
                wanted.append(CellMapping(name, section_of(name)))
            elif name not in known or known[name].section is None:
                wanted.append(CellMapping(name, database_url=f"sqlite:///{directory / name}.db"))
        await self.api.write(MapCells(tuple(wanted)))

    async def _is_there(self, name: str) -> bool:
        """Return whether the database of a cell answers.

        Raises:
            OperatorError: it is not configured, or its tables are of another revision.
        """
        if name not in self.cells:
            raise OperatorError(
                f"cell {name} has no database: set connection in [{section_of(name)}] to its URL"
            )
        try:
            await self.cells[name].database.read(_look)
        except DatabaseUnavailable as error:
            _log.warning("a cell is down; it joins when its database answers", cell=name, error=str(error))
            return False
        return True

    def _owns(self, database: Database) -> bool:
        """Return whether a database is in the data directory, whose lock keeps other processes away."""
        if not database.is_sqlite or database.url.database is None:
            return False
        return Path(database.url.database).resolve().parent == self.directory.resolve()

    async def _make_aggregates(self) -> None:
        """Create the aggregates of the layout, unless there have been aggregates before."""
        if await self.aggregates.store.changes(0) is None:
            await self.aggregates.add(self.layout.aggregates())

    def _open_hosts(self, name: str) -> HostedAgents:
        """Open the agents of a cell's hosts; they run as soon as the cell's database answers."""
        seconds, cell = self.options.heartbeat_seconds, self.cells[name]
        agents = open_agents(
            self._stack,
            self.options,
            cell,
            self.placement,
            self.records,
            self._runtime,
            api=self.api,
            poll_seconds=seconds,
        )
        fleet = HostedAgents(
            [
                (there.host.name, agents, SimulatedDriver(there.host, self.options.script), None)
                for there in self.layout.cells[name]
            ],
            times=AgentTimes(poll=seconds, health=seconds, token=float("inf")),
        )
        if not self._owns(cell.database):
            self._stack.push_async_callback(fleet.leave)
        if self.layout.cells[name]:
            run_for_ever(self._stack, f"hosts of {name}", self._run_hosts(cell, agents, fleet), self._runtime)
        return fleet

    async def _run_hosts(self, cell: Cell, agents: AgentService, fleet: HostedAgents) -> None:
        while True:
            try:
                if self._owns(cell.database):
                    await agents.free_sessions()
                else:
                    await cell.database.read(_look)
                break
            except StorageError as error:
                _log.debug("the hosts of a cell wait for it", cell=cell.name, error=str(error))
            await asyncio.sleep(JOIN_SECONDS)
        await fleet.run()

    def _timed(self, gateway: Gateway) -> Gateway:
        self.gateway = TimedGateway(gateway)
        return self.gateway

    def _end(self, error: BaseException | None) -> None:
        self._broken = error or RuntimeError("a part of the system ended by itself")


def _look(connection: sa.Connection) -> None:
    connection.scalar(sa.select(1))
