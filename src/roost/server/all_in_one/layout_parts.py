"""The parts of a system that follow its layout: cells, simulated hosts, host aggregates."""

import asyncio

import sqlalchemy as sa
import structlog

from roost.agent.drivers.simulated import SimulatedDriver
from roost.agent.drivers.simulated_migrations import SimulatedNetwork
from roost.agent.hosted_agents import HostedAgents
from roost.agent.options import AgentTimes
from roost.conductor.agent_endpoint.service import AgentService
from roost.model.errors import OperatorError
from roost.server.all_in_one.system import System, SystemOptions
from roost.server.parts.agents import open_agents
from roost.server.process import Process, ProcessPart
from roost.state.api_database.cell_mappings import (
    CELL0,
    CellMapping,
    mapped_cells,
    section_of,
    write_cell_mappings,
)
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database import Cell
from roost.storage import DatabaseUnavailable, StorageError

JOIN_SECONDS = 1.0
"""Seconds between two checks of the database of a cell that was down at the start."""

_log = structlog.get_logger()


class LayoutMappingsPart(ProcessPart[SystemOptions]):
    """The tables of the API database, and the mappings of the layout's cells and of cell0 in it."""

    async def open(self, process: Process[SystemOptions]) -> None:
        assert isinstance(process, System) and process.api is not None
        CONDUCTOR.prepare(process.api)
        known = await process.api.read(mapped_cells)
        directory = process.directory.resolve()
        wanted = []
        for name in (CELL0, *process.layout.cells):
            if name in process.options.configured:
                wanted.append(CellMapping(name, section_of(name)))
            elif name not in known or known[name].section is None:
                wanted.append(CellMapping(name, database_url=f"sqlite:///{directory / name}.db"))
        await process.api.write(write_cell_mappings(tuple(wanted)))


class SimulatedHostsPart(ProcessPart[SystemOptions]):
    """The agents of all hosts. They run as soon as the database of their cell answers."""

    async def open(self, process: Process[SystemOptions]) -> None:
        assert isinstance(process, System)
        names = (CELL0, *process.layout.cells)
        there = [name for name in names if await _is_there(process, name)]
        process.conducted = [process.cells[name] for name in names]
        for name in process.layout.cells:
            fleet = _open_hosts(process, name)
            if name in there:
                # Cell after cell, so that the providers of equal replays are made in the same order.
                await fleet.started()


class LayoutAggregatesPart(ProcessPart[SystemOptions]):
    """The host aggregates of the layout, which are created unless there have been aggregates before."""

    async def open(self, process: Process[SystemOptions]) -> None:
        assert isinstance(process, System)
        if await process.aggregates.store.changes(0) is None:
            await process.aggregates.add(process.layout.aggregates())
        await process.mirror.heal()


async def _is_there(system: System, name: str) -> bool:
    """Return whether the database of a cell answers.

    Raises:
        OperatorError: it is not configured, or its tables are of another revision.
    """
    if name not in system.cells:
        raise OperatorError(f"cell {name} has no database: set connection in [{section_of(name)}] to its URL")
    try:
        await system.cells[name].database.read(_look)
    except DatabaseUnavailable as error:
        _log.warning("a cell is down; it joins when its database answers", cell=name, error=str(error))
        return False
    return True


def _open_hosts(system: System, name: str) -> HostedAgents:
    """Open the agents of a cell's hosts."""
    seconds, cell, hosts = system.options.heartbeat_seconds, system.cells[name], system.layout.cells[name]
    script = system.options.script
    agents = open_agents(system, cell, seconds)
    network = SimulatedNetwork()
    fleet = HostedAgents(
        [
            (there.host.name, agents, SimulatedDriver(there.host, script, network=network), None)
            for there in hosts
        ],
        times=AgentTimes(poll=seconds, health=seconds, token=float("inf")),
    )
    if not system.owns(cell.database):
        system.stack.push_async_callback(fleet.leave)
    if hosts:
        system.run_for_ever(f"hosts of {name}", _run_hosts(system, cell, agents, fleet))
    return fleet


async def _run_hosts(system: System, cell: Cell, agents: AgentService, fleet: HostedAgents) -> None:
    while True:
        try:
            if system.owns(cell.database):
                await agents.free_sessions()
            else:
                await cell.database.read(_look)
            break
        except StorageError as error:
            _log.debug("the hosts of a cell wait for it", cell=cell.name, error=str(error))
        await asyncio.sleep(JOIN_SECONDS)
    await fleet.run()


def _look(connection: sa.Connection) -> None:
    connection.scalar(sa.select(1))
