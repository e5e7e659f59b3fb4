"""The agents of one process: they take their work from the cell and report back to it.

One process may be one host or, simulated, a thousand; either way the cell is asked once for all of them.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Sequence

import structlog

from roost.cells import Cell
from roost.cells.cell import changed
from roost.compute.agent import Agent
from roost.compute.placement import ReportPlacement
from roost.model.instance import ACTIVE, ASSIGNED, DELETING, BuildResult, Instance
from roost.storage import StorageError

_Key = tuple[str, int, str]
_log = structlog.get_logger()

REGISTER_AT_ONCE = 64
"""So many hosts report to placement at the same time."""


class ComputeService:
    """Runs agents against one cell.

    ``poll_seconds``: how often the cell is looked at though nothing was heard. ``heartbeat_seconds``: how
    often every host says that it is alive.
    """

    def __init__(
        self,
        cell: Cell,
        placement: ReportPlacement,
        agents: Sequence[Agent],
        *,
        poll_seconds: float = 1.0,
        heartbeat_seconds: float = 10.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cell = cell
        self._placement = placement
        self._agents = {agent.host: agent for agent in agents}
        self._poll_seconds = poll_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._clock = clock
        self._wake = cell.listen(ASSIGNED, DELETING)
        # Work under way or done and not yet reported, by instance, attempt and state.
        self._busy: dict[_Key, asyncio.Task[None]] = {}
        self._done: list[tuple[_Key, BuildResult | None]] = []

    async def start(self) -> None:
        """Register every host, say that they are alive, and clean up what a crash left."""
        limit = asyncio.Semaphore(REGISTER_AT_ONCE)

        async def register(agent: Agent) -> None:
            async with limit:
                await agent.register(self._placement)

        await asyncio.gather(*(register(agent) for agent in self._agents.values()))
        running: defaultdict[str, list[str]] = defaultdict(list)
        for instance in await self._cell.in_state(ACTIVE, DELETING):
            running[instance.host or ""].append(instance.uuid)
        for host, agent in self._agents.items():
            await agent.recover(running[host])
        await self.reconcile()
        await self.beat()

    async def run(self) -> None:
        """Work until cancelled."""
        beating = asyncio.create_task(self._keep_beating())
        try:
            while True:
                try:
                    await self.step()
                except StorageError as error:
                    _log.warning("the cell cannot be reached", cell=self._cell.name, error=str(error))
                await changed(self._wake, self._poll_seconds)
        finally:
            beating.cancel()
            for task in self._busy.values():
                task.cancel()
            await asyncio.gather(beating, *self._busy.values(), return_exceptions=True)

    async def step(self) -> None:
        """Report what is done, start what is to be done."""
        done = self._done.copy()
        built = [result for _, result in done if result is not None]
        destroyed = [instance for (instance, _, _), result in done if result is None]
        if built:
            await self._cell.report(built)
        if destroyed:
            await self._cell.destroyed(destroyed)
        # Only now: work that is reported late would be taken for not begun.
        del self._done[: len(done)]
        for key, _ in done:
            del self._busy[key]
        for instance in await self._cell.in_state(ASSIGNED, DELETING):
            agent = self._agents.get(instance.host or "")
            key = (instance.uuid, instance.attempt, instance.state)
            if agent is not None and key not in self._busy:
                self._busy[key] = asyncio.create_task(self._carry_out(agent, instance, key))

    async def beat(self) -> None:
        """Tell the cell of every host's health."""
        now = self._clock()
        await self._cell.heartbeat([agent.health(now) for agent in self._agents.values()])

    async def reconcile(self) -> None:
        """Destroy every guest that the cell does not say belongs where it is."""
        # The guests first: one that comes after the cell was read would look like a stray.
        guests = {host: agent.guests() for host, agent in self._agents.items()}
        belongs: defaultdict[str, set[str]] = defaultdict(set)
        for instance in await self._cell.in_state(ACTIVE, ASSIGNED, DELETING):
            belongs[instance.host or ""].add(instance.uuid)
        for host, agent in self._agents.items():
            for stray in set(guests[host]) - belongs[host]:
                _log.info("destroying a guest that is not assigned here", host=host, instance=stray)
                await agent.destroy(stray)

    async def _carry_out(self, agent: Agent, instance: Instance, key: _Key) -> None:
        result = None
        if instance.state == ASSIGNED:
            result = await agent.build(instance)
        else:
            await agent.destroy(instance.uuid)
        self._done.append((key, result))
        self._wake.set()

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_seconds)
            try:
                await self.beat()
                await self.reconcile()
            except StorageError as error:
                _log.warning("the cell cannot be reached", cell=self._cell.name, error=str(error))
