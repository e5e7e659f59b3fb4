"""Runs the agents of the hosts of one process, by asyncio."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import structlog

from roost.agent.agent_context import AsyncioAgentContext
from roost.agent.driver_calls import DriverService
from roost.agent.drivers import Driver
from roost.agent.errors import StateUnusable
from roost.agent.host import HostAgent, start_topic
from roost.agent.options import AgentTimes
from roost.agent.persistent_state import AgentState, MemoryState
from roost.agent.protocol.errors import AgentProtocolError
from roost.agent.protocol.questions import Call, CellEndpoint, Closing
from roost.agent.provider_config import ProviderConfig
from roost.agent.watchdog import Watchdog
from roost.model.fence import Fence
from roost.model.text import error_text

_log = structlog.get_logger()


class HostedAgent(NamedTuple):
    """An agent and its context."""

    agent: HostAgent
    context: AsyncioAgentContext


class HostedAgents:
    """The agents of one process, each with its own connection to the endpoint of a cell.

    ``hosts``: the name of each host, its endpoint, driver and state (None: in memory).
    ``config``: inventories and traits that operators add to those of the drivers. ``fence``: of each host,
    and ``watchdog`` that of the machine, if it is guarded by one.
    """

    def __init__(
        self,
        hosts: Sequence[tuple[str, CellEndpoint, Driver, AgentState | None]],
        *,
        times: AgentTimes | None = None,
        config: ProviderConfig | None = None,
        fence: Fence | None = None,
        watchdog: Watchdog | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._watchdog = watchdog
        self.agents: dict[str, HostedAgent] = {}
        self._endpoints = {host: endpoint for host, endpoint, _, _ in hosts}
        for host, endpoint, driver, state in hosts:
            context = AsyncioAgentContext(
                endpoint, DriverService(driver, config), state or MemoryState(), watchdog, monotonic=monotonic
            )
            agent = HostAgent(context, host, times=times, fence=fence)
            self.agents[host] = HostedAgent(agent, context)

    async def run(self) -> None:
        """Run all agents until cancelled. Raises the error of one that ends, which none should."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for agent, _ in self.agents.values():
                    tasks.create_task(agent.run())
        finally:
            await asyncio.gather(*(context.close() for _, context in self.agents.values()))

    async def leave(self, seconds: float = 2.0) -> None:
        """Close the sessions at an orderly end, as far as that is possible within ``seconds``.

        Only then does a fence end: the cell relies on that of a session that was not closed, so the watchdog
        stays armed, and the next agent of the host counts on from the last answer.
        """

        async def close(hosted: HostedAgent, ask: Callable[[Call[Any]], Awaitable[Any]]) -> None:
            # A session that cannot be closed gets no more polls, and is free after a while.
            with suppress(AgentProtocolError, TimeoutError, StateUnusable):
                if hosted.agent.session is not None:
                    async with asyncio.timeout(seconds):
                        await ask(Closing(hosted.agent.session))
                    await hosted.context.state.keep_answered(None)

        await asyncio.gather(
            *(close(hosted, self._endpoints[host].ask) for host, hosted in self.agents.items())
        )
        await self.release_watchdog()

    async def release_watchdog(self) -> None:
        """Disarm the watchdog if no cell relies on the fence of a host; else leave it armed."""
        if self._watchdog is None:
            return
        try:
            answered = [await context.state.load_answered() for _, context in self.agents.values()]
            is_free = all(each is None for each in answered)
        except StateUnusable as error:
            _log.error("it is not known whether a cell relies on the watchdog", error=error_text(error))
            is_free = False
        if not is_free:
            _log.error("a session is not closed: the watchdog resets the machine unless an agent starts")
            self._watchdog.leave()
            return
        try:
            self._watchdog.disarm()
        except OSError as error:
            _log.error("the watchdog cannot be disarmed", error=error_text(error))

    async def started(self) -> None:
        """Wait until the first poll and the first report of each host have ended, with success or not."""
        for agent, context in self.agents.values():
            wakes = context.listen(start_topic(agent.host))
            while not (agent.polled and agent.reported):
                await wakes.wait(1.0)
