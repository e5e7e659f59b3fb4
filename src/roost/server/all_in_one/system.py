"""A whole system in this process: all parts that the separate programs open, and simulated hosts."""

import asyncio
import random
import time
from array import array
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from msgspec import structs

from roost.agent.drivers.simulated import Script
from roost.ledger import Ledger
from roost.model.instance import ACTIVE, ERROR
from roost.placement.unsupported import groups_in
from roost.process.option_source import Source
from roost.process.report import ProcessReport
from roost.scheduler.gateways import Decided, Gateway, GatewayWrapper
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.scheduler import seeds_from
from roost.server.all_in_one.layout import SystemLayout, keep_layout
from roost.server.options import ConductingOptions, read_conducting_options
from roost.server.process import Process
from roost.server.programs import COMMANDS, open_parts
from roost.state.api_database.cell_mappings import CELL0, cell_options, section_of
from roost.state.cell_database.cell import GONE, changed
from roost.storage import Database, DatabaseUrl

APIS: Final = {"conductor_api", "scheduler_api", "dashboard", "placement_api"}
"""The parts that are open only while the system serves requests."""

MOST = 10_000_000
"""Durations recorded at most: a server that runs for months makes more decisions."""


class SystemOptions(ConductingOptions, frozen=True, kw_only=True):
    """The options of a system, with those of all services.

    ``configured``: the cells, cell0 among them, whose databases the configuration names; the databases of
    other cells are files in the data directory. ``script``: the behaviour of the simulated hosts. ``seed``:
    seeds all random numbers. ``heartbeat_seconds``: the longest wait of a host's poll.
    """

    configured: frozenset[str] = frozenset()
    script: Script = Script()
    seed: int = 0
    heartbeat_seconds: float = 10.0

    @property
    def decides(self) -> bool:
        return True


class TimedGateway(GatewayWrapper):
    """Wraps a gateway and records the durations of its first `MOST` requests.

    ``instances``: the number of instances that hosts were requested for. ``decisions``: milliseconds of each
    decision (filter, weigh, pick, prepare the claim), divided by its instances. ``claims``: milliseconds
    from the request until the claim is durable.
    """

    def __init__(self, gateway: Gateway) -> None:
        super().__init__(gateway)
        self.instances = 0
        self.decisions = array("f")
        self.claims = array("f")

    async def decide(self, request: SchedulingRequest) -> Decided:
        asked = time.perf_counter()
        decided = await super().decide(request)
        self.instances += len(request.instances)
        if len(self.decisions) < MOST:
            self.claims.append((time.perf_counter() - asked) * 1000)
            self.decisions.append(decided.seconds * 1000 / len(request.instances))
        return decided


def configured_cells(source: Source) -> tuple[str, ...]:
    """Return the cells whose databases the source names, in order of names; cell0, if named, is the last."""
    prefix = section_of("")
    names = sorted(group.removeprefix(prefix) for group in groups_in(source) if group.startswith(prefix))
    return tuple(name for name in (*names, CELL0) if _connection(source, name) is not None)


def read_system_options(source: Source, configured: tuple[str, ...] = (), **others: object) -> SystemOptions:
    """Read the options of a system from a source.

    ``configured``: the cells whose databases the source names; ``others``: further options. Raises
    `OperatorError` for a file or value that cannot be used.
    """
    return SystemOptions(
        **structs.asdict(read_conducting_options(source)),
        configured=frozenset(configured),
        **others,  # type: ignore[arg-type]
    )


class System(Process[SystemOptions]):
    """Placement, scheduler, conductors, cells and simulated hosts in one process.

    Databases are SQLite files in one directory, unless the options name others. A cell whose database is away
    is opened later, and its hosts join then. Open with `System.open`, which resumes the work that an earlier
    process left unfinished.
    """

    api: Database
    ledger: Ledger
    gateway: TimedGateway

    def __init__(
        self, directory: Path, layout: SystemLayout, options: SystemOptions, clock: Callable[[], float]
    ) -> None:
        super().__init__(options, COMMANDS["up"].parts, AsyncExitStack(), clock)
        self.directory = directory
        self.layout = layout
        self.seeds = seeds_from(random.Random(options.seed))
        self._broken: BaseException | None = None

    @classmethod
    async def open(
        cls,
        directory: Path,
        layout: SystemLayout,
        options: SystemOptions,
        clock: Callable[[], float] = time.time,
    ) -> "System":
        """Set up or resume the system in ``directory``, with all parts but the APIs.

        ``clock``: seconds since 1970, for all parts of the system.

        Raises `OperatorError` naming the directory or database that cannot be used.
        """
        system = cls(directory, layout, options, clock)
        try:
            keep_layout(directory, layout)
            await open_parts(system, COMMANDS["up"].parts - APIS)
        except BaseException:
            await system.close()
            raise
        return system

    @property
    def table(self) -> NodeTable:
        """The scheduler's node table."""
        assert self.hosts is not None
        return self.hosts.table

    async def close(self) -> None:
        """Stop all parts. The next start resumes unfinished work."""
        await self.stack.aclose()

    async def settle(self) -> None:
        """Wait until no part has work to do. Raises if a part of the system has died."""
        changes = {name: cell.listen(ACTIVE, ERROR, GONE) for name, cell in self.cells.items()}
        try:
            while True:
                owned = await self.super_conductor.take_up()
                await self.super_conductor.idle()
                failure = self._broken or self.super_conductor.failure
                if failure is not None:
                    raise failure
                busy = [name for name, cell in self.cells.items() if await cell.unsettled()]
                if owned and not busy:
                    return
                if busy:
                    await changed(changes[busy[0]], 0.2)
                else:
                    await asyncio.sleep(0.2)  # until this process has its lease again
        finally:
            for name, cell in self.cells.items():
                cell.unlisten(changes[name])

    async def broken(self) -> BaseException:
        """Wait until a part of the system dies, which is a defect, and return its error."""
        while self._broken is None:
            await asyncio.sleep(0.2)
        return self._broken

    def report(self) -> ProcessReport:
        """Return the report of this process, which runs the system in the running event loop."""

        def describe() -> Mapping[str, object]:
            return {
                "directory": str(self.directory),
                "cells": {name: str(cell.database) for name, cell in sorted(self.cells.items())},
                "hosts": self.layout.hosts,
                **structs.asdict(self.ledger.status()),
            }

        return ProcessReport(asyncio.get_running_loop(), self.options.shown, {"system": describe})

    def open_database(self, url: DatabaseUrl | str) -> Database:
        """Open a database, or return it if it is open.

        Two writers on one SQLite file would wait for each other.
        """
        if url == self.options.api_database and self.api is not None:
            return self.api
        return super().open_database(url)

    def owns(self, database: Database) -> bool:
        """Return whether a database is in the data directory, whose lock keeps other processes away."""
        if not database.is_sqlite or database.url.database is None:
            return False
        return Path(database.url.database).resolve().parent == self.directory.resolve()

    def around(self, gateway: Gateway) -> Gateway:
        self.gateway = TimedGateway(gateway)
        return self.gateway

    def died(self, error: BaseException | None) -> None:
        """Note that a part has died, so that the system ends."""
        self._broken = error or RuntimeError("a part of the system ended by itself")


def _connection(source: Source, cell: str) -> str | None:
    conf = source.open()
    source.register(conf, cell_options(section_of(cell)))
    return conf[section_of(cell)].connection  # type: ignore[no-any-return]
