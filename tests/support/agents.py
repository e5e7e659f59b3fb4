"""Hosts whose agents run in this process against a cell's endpoint on its database."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

from roost.agent.drivers import Driver
from roost.agent.hosted_agents import HostedAgents
from roost.agent.options import AgentTimes
from roost.agent.persistent_state import MemoryState
from roost.agent.protocol.questions import CellEndpoint
from roost.conductor.agent_endpoint.endpoint import EndpointTimes
from roost.conductor.agent_endpoint.service import AgentService
from roost.placement.service import PlacementService
from support.cells import NOW, opened_cell
from support.driven_cell import DrivenCell
from support.drivers import HeldDriver
from support.ledgers import opened
from support.waiting import patience

FAST = AgentTimes(
    poll=0.2, report=0.2, health=0.0, start=5.0, retry=0.01, longest_retry=0.05, keep=0.0, token=float("inf")
)
"""Times of agents that make tests short."""


class Hosts:
    """Hosts a and b of a cell, with their drivers and states."""

    def __init__(
        self,
        cell: DrivenCell,
        placement: PlacementService,
        build: float = 5.0,
        sharing: Collection[str] = (),
        poll: float = 0.2,
        look: float = 0.02,
    ) -> None:
        self.cell = cell
        self.placement = placement
        times = EndpointTimes(poll=poll, look=look, alone=look, build=build)
        self.service = AgentService(cell, placement, sharing=sharing, times=times, clock=lambda: NOW)
        self.a, self.b = HeldDriver(), HeldDriver()
        self.states = {"a": MemoryState(), "b": MemoryState()}

    @asynccontextmanager
    async def running(
        self, endpoint: CellEndpoint | None = None, times: AgentTimes = FAST
    ) -> AsyncIterator[HostedAgents]:
        """Run the agents, and the endpoint, until the end of the block."""
        through = endpoint or self.service
        drivers: dict[str, Driver] = {"a": self.a, "b": self.b}
        hosting = HostedAgents(
            [(name, through, driver, self.states[name]) for name, driver in drivers.items()], times=times
        )
        tasks = [asyncio.create_task(each.run()) for each in (self.service, hosting)]
        try:
            await asyncio.wait_for(hosting.started(), patience(20))
            yield hosting
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def state(self, uuid: str = "i") -> str | None:
        """The state of an instance."""
        outcomes = await self.cell.outcomes([uuid])
        return outcomes[0].state if outcomes else None

    async def reaches(self, state: str, uuid: str = "i") -> None:
        """Wait until an instance is in a state."""
        await until(lambda: self._is(uuid, state))

    async def _is(self, uuid: str, state: str) -> bool:
        return await self.state(uuid) == state


@asynccontextmanager
async def hosts(
    directory: Path,
    build: float = 5.0,
    sharing: Collection[str] = (),
    poll: float = 0.2,
    look: float = 0.02,
) -> AsyncIterator[Hosts]:
    """Hosts whose cell and ledger are in a directory. ``sharing``: the pools that they may write. ``poll``:
    the longest wait of a poll, of ``build`` a quarter at most. ``look``: seconds between two looks for work
    of which nobody tells."""
    async with opened(directory / "api.db") as [ledger], opened_cell(directory) as cell:
        yield Hosts(cell, PlacementService(ledger), build, sharing, poll, look)


async def until(condition, seconds: float = 20.0) -> None:
    """Wait until a condition (a coroutine function, or a plain one) is true."""
    async with asyncio.timeout(patience(seconds)):
        while True:
            holds = condition()
            if asyncio.iscoroutine(holds):
                holds = await holds
            if holds:
                return
            await asyncio.sleep(0.01)
