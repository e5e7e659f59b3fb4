"""Runs the agents of the hosts of one process, by asyncio."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from roost.agent.agent_context import AsyncioAgentContext
from roost.agent.driver_calls import DriverService
from roost.agent.drivers import Driver
from roost.agent.host import HostAgent, start_topic
from roost.agent.options import AgentTimes
from roost.agent.persistent_state import AgentState, MemoryState
from roost.agent.protocol.errors import AgentProtocolError
from roost.agent.protocol.questions import Call, CellEndpoint, Closing
from roost.agent.provider_config import ProviderConfig


class HostedAgent(NamedTuple):
    """An agent and its context."""

    agent: HostAgent
    context: AsyncioAgentContext


class HostedAgents:
    """The agents of one process, each with its own connection to the endpoint of a cell.

    ``hosts``: the name of each host, its endpoint, driver and state (None: in memory).
    ``config``: inventories and traits that operators add to those of the drivers.
    """

    def __init__(
        self,
        hosts: Sequence[tuple[str, CellEndpoint, Driver, AgentState | None]],
        *,
        times: AgentTimes | None = None,
        config: ProviderConfig | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.agents: dict[str, HostedAgent] = {}
        self._endpoints = {host: endpoint for host, endpoint, _, _ in hosts}
        for host, endpoint, driver, state in hosts:
            context = AsyncioAgentContext(
                endpoint, DriverService(driver, config), state or MemoryState(), monotonic=monotonic
            )
            self.agents[host] = HostedAgent(HostAgent(context, host, times=times), context)

    async def run(self) -> None:
        """Run all agents until cancelled. Raises the error of one that ends, which none should."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for agent, _ in self.agents.values():
                    tasks.create_task(agent.run())
        finally:
            await asyncio.gather(*(context.close() for _, context in self.agents.values()))

    async def leave(self, seconds: float = 2.0) -> None:
        """Close the sessions at an orderly end, as far as that is possible within ``seconds``."""

        async def close(agent: HostAgent, ask: Callable[[Call[Any]], Awaitable[Any]]) -> None:
            # A session that cannot be closed gets no more polls, and is free after a while.
            with suppress(AgentProtocolError, TimeoutError):
                if agent.session is not None:
                    async with asyncio.timeout(seconds):
                        await ask(Closing(agent.session))

        await asyncio.gather(
            *(close(hosted.agent, self._endpoints[host].ask) for host, hosted in self.agents.items())
        )

    async def started(self) -> None:
        """Wait until the first poll and the first report of each host have ended, with success or not."""
        for agent, context in self.agents.values():
            wakes = context.listen(start_topic(agent.host))
            while not (agent.polled and agent.reported):
                await wakes.wait(1.0)
