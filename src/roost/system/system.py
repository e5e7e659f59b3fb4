"""Opens everything in a data directory, runs it, and stops it."""

import asyncio
import random
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import structlog

from roost.cells import Cell
from roost.cells.cell import GONE, changed
from roost.compute.drivers.simulated import Script, SimulatedDriver
from roost.compute.host import AgentTimes
from roost.compute.hosting import Hosting
from roost.conductor.agents.endpoint import EndpointTimes
from roost.conductor.agents.service import AgentService
from roost.conductor.aggregates.host_aggregates import HostAggregates
from roost.conductor.aggregates.mirror import AggregateMirror
from roost.conductor.aggregates.store import AggregateStore
from roost.conductor.cell_conductor import CellConductor
from roost.conductor.cell_mappings import CELL0
from roost.conductor.node_feed import NodeFeed
from roost.conductor.requests import Requests
from roost.conductor.server_groups.store import ServerGroups
from roost.conductor.super_conductor import SuperConductor
from roost.conductor.time_limits import TimeLimits
from roost.ledger import Ledger
from roost.ledger.retention import Retention, keep_trimming
from roost.model.instance import ACTIVE, ERROR
from roost.placement.service import PlacementService
from roost.records import RecordQueue
from roost.records.errors import RecordsError
from roost.scheduler import Scheduler, SchedulerOptions
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.nodes import NodeTable
from roost.scheduler.scheduler import seeds_from
from roost.scheduler.sources.reported import ReportedGateway
from roost.scheduler.sources.switching import SwitchingGateway
from roost.storage import Database
from roost.system.layout import Layout, keep_layout
from roost.system.timings import TimedGateway
from roost.web.health import HealthOptions
from roost.web.limits import Limits

API_DB = "api.db"

_log = structlog.get_logger()


class SystemOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a system behaves.

    ``max_attempts``: hosts tried for an instance. ``time_limits``: of builds and deletions. ``retention``:
    which commits the ledger keeps. ``trim_records_seconds``: seconds between two removals of old records.
    ``health``: when it is ready. ``limits``: of its HTTP API.
    """

    script: Script = Script()
    scheduler: SchedulerOptions = SchedulerOptions()
    max_attempts: int = 3
    time_limits: TimeLimits = TimeLimits()
    seed: int = 0
    heartbeat_seconds: float = 10.0
    retention: Retention = Retention()
    trim_records_seconds: float = 60.0
    health: HealthOptions = HealthOptions()
    limits: Limits = Limits()


class System:
    """Placement, scheduler, conductors, cells and simulated hosts, on SQLite files in one directory.

    Open with `System.open`, which resumes whatever an earlier process left unfinished.
    """

    ledger: Ledger
    placement: PlacementService
    requests: Requests
    aggregates: HostAggregates
    groups: ServerGroups
    super_conductor: SuperConductor
    gateway: TimedGateway
    scheduler: Scheduler
    records: RecordQueue
    cells: dict[str, Cell]
    table: NodeTable

    def __init__(
        self, directory: Path, layout: Layout, options: SystemOptions, clock: Callable[[], float]
    ) -> None:
        self.directory = directory
        self.layout = layout
        self.options = options
        self._databases: list[Database] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._broken: BaseException | None = None
        self._clock = clock

    @classmethod
    async def open(
        cls,
        directory: Path,
        layout: Layout,
        records: RecordQueue,
        options: SystemOptions | None = None,
        clock: Callable[[], float] = time.time,
    ) -> "System":
        """Set up or take up the system in ``directory`` and start it. ``records`` is closed with it.

        ``clock``: seconds since 1970, for all parts of the system.

        Raises `OperatorError` naming the directory or file that cannot be used.
        """
        system = cls(directory, layout, options or SystemOptions(), clock)
        system.records = records
        try:
            await system._open()
        except BaseException:
            await system.close()
            raise
        return system

    async def close(self) -> None:
        """Stop everything. What is unfinished is taken up at the next start."""
        if hasattr(self, "super_conductor"):
            await self.super_conductor.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if hasattr(self, "_feed"):
            await self._feed.close()
        if hasattr(self, "ledger"):
            await self.ledger.close()
        await self.records.close()
        for database in self._databases:
            await database.close()

    async def settle(self) -> None:
        """Wait until nobody has work to do. Raises if a part of the system has died."""
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
        """Wait until a part of the system dies, which none ever should; returns the error."""
        while self._broken is None:
            await asyncio.sleep(0.2)
        return self._broken

    async def _open(self) -> None:
        options = self.options
        keep_layout(self.directory, self.layout)
        api = self._database(API_DB)
        self.ledger = await Ledger.open(api, self._clock)
        self.placement = PlacementService(self.ledger)
        self.requests = Requests(api)
        self.cells = {
            name: Cell(name, self._database(f"{name}.db"), self._clock, self.records)
            for name in (CELL0, *self.layout.cells)
        }
        await self.requests.map_cells(
            {
                name: cell.database.url.render_as_string(hide_password=False)
                for name, cell in self.cells.items()
            }
        )
        self.groups = ServerGroups(api)
        self.aggregates = HostAggregates(AggregateStore(api), self.cells.values())
        self.table = NodeTable()
        self._feed = feed = NodeFeed(
            self.cells.values(),
            self.table,
            journal=api,
            aggregates=self.aggregates.store,
            retention=options.retention,
            down_seconds=options.scheduler.service_down_time,
            clock=self._clock,
        )
        await self._start_hosts()
        mirror = AggregateMirror(
            self.aggregates.store, self.placement, self.aggregates.nodes, self.aggregates.changed
        )
        await self._make_aggregates()
        await mirror.heal()
        await feed.refresh()
        self.gateway = TimedGateway(SwitchingGateway(LocalGateway(self.ledger), ReportedGateway()))
        self.scheduler = scheduler = Scheduler(
            self.gateway,
            self.table,
            self.records,
            options.scheduler,
            self._clock,
            seeds=seeds_from(random.Random(options.seed)),
        )
        self.super_conductor = SuperConductor(
            api,
            scheduler,
            self.placement,
            self.cells,
            records=self.records,
            max_attempts=options.max_attempts,
            clock=self._clock,
        )
        self._start(feed.run())
        self._start(mirror.run())
        for cell in self.cells.values():
            conductor = CellConductor(
                cell,
                self.placement,
                scheduler,
                self.records,
                limits=options.time_limits,
                alone=True,
                clock=self._clock,
            )
            self._start(conductor.run())
        if self.options.retention.interval:
            self._start(keep_trimming(self.ledger, self.options.retention, self._clock))
        self._start(self._trim_records())
        # The lock of the data directory says that no other process works on it.
        await self.super_conductor.begin(alone=True)
        await self.super_conductor.resume()

    async def _make_aggregates(self) -> None:
        """Make the aggregates of the layout, unless there have been aggregates before."""
        if await self.aggregates.store.changes(0) is None:
            await self.aggregates.add(self.layout.aggregates())

    async def _start_hosts(self) -> None:
        """Start the hosts of all cells, and wait for their first reports."""
        seconds = self.options.heartbeat_seconds
        fleets = []
        for name, hosts in self.layout.cells.items():
            service = AgentService(
                self.cells[name],
                self.placement,
                self.records,
                times=EndpointTimes(poll=seconds, build=self.options.time_limits.build_seconds),
                clock=self._clock,
            )
            await service.free_sessions()
            fleet = Hosting(
                [
                    (there.host.name, service, SimulatedDriver(there.host, self.options.script), None)
                    for there in hosts
                ],
                times=AgentTimes(poll=seconds, health=seconds),
            )
            self._start(service.run())
            self._start(fleet.run())
            fleets.append(fleet)
        for fleet in fleets:
            await fleet.started()

    def _database(self, name: str) -> Database:
        database = Database(f"sqlite:///{self.directory.resolve() / name}")
        self._databases.append(database)
        return database

    async def _trim_records(self) -> None:
        while True:
            await asyncio.sleep(self.options.trim_records_seconds)
            try:
                await self.records.backend.trim(self._clock())
            except RecordsError as error:
                _log.warning("old records are removed later", error=str(error))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("a part of the system has died", exc_info=task.exception())
            self._broken = task.exception()
