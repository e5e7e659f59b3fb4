"""The agents of one process: they take their work from the cell and report back to it.

One process may be one host or, simulated, a thousand; either way the cell is asked once for all of them.
"""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Sequence

import structlog

from roost.agents.endpoint import CellEndpoint
from roost.agents.errors import EndpointUnavailable
from roost.cells import Cell
from roost.cells.cell import changed
from roost.compute.agent import Agent
from roost.metrics import catalogue as metrics
from roost.model.instance import ACTIVE, ASSIGNED, DELETING, BuildResult, Instance
from roost.model.text import error_text
from roost.storage import StorageError

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
        endpoint: CellEndpoint,
        agents: Sequence[Agent],
        *,
        poll_seconds: float = 1.0,
        heartbeat_seconds: float = 10.0,
    ) -> None:
        self._cell = cell
        self._endpoint = endpoint
        self._agents = {agent.host: agent for agent in agents}
        self._poll_seconds = poll_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._wake = cell.listen(ASSIGNED, DELETING)
        self._unregistered = set(self._agents)
        # Work under way or done and not yet reported, by instance. One thing at a time for each: what is to
        # be destroyed while it is built is destroyed afterwards.
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._done: dict[str, tuple[Instance, BuildResult | None]] = {}

    async def start(self) -> None:
        """Register every host, say that they are alive, and clean up what a crash left."""
        await self.register()
        running: defaultdict[str, list[Instance]] = defaultdict(list)
        for instance in await self._cell.in_state(ACTIVE, DELETING):
            running[instance.host or ""].append(instance)
        for host, agent in self._agents.items():
            await agent.recover(running[host])
        await self.reconcile()
        await self.beat()

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as parts:
                parts.create_task(self._keep_beating())
                parts.create_task(self._keep_working())
        finally:
            for task in self._busy.values():
                task.cancel()
            await asyncio.gather(*self._busy.values(), return_exceptions=True)

    async def register(self) -> None:
        """Have every host report to placement that has not yet. One that is refused is left for later: what
        a user did to its providers must not keep the others from starting. Raises `EndpointUnavailable`."""
        limit = asyncio.Semaphore(REGISTER_AT_ONCE)

        async def register(host: str) -> None:
            async with limit:
                try:
                    await self._agents[host].register(self._endpoint)
                except EndpointUnavailable:
                    raise
                except Exception as error:
                    _log.error("a host cannot report to placement", host=host, error=error_text(error))
                else:
                    self._unregistered.remove(host)

        await asyncio.gather(*(register(host) for host in sorted(self._unregistered)))

    async def step(self) -> None:
        """Report what is done, start what is to be done."""
        done = self._done.copy()
        built = [result for _, result in done.values() if result is not None]
        destroyed = [instance for instance, result in done.values() if result is None]
        if built:
            await self._cell.report(built)
            for result in built:
                metrics.BUILDS.labels("built" if result.failure is None else "failed").inc()
        if destroyed:
            await self._cell.destroyed(destroyed)
        # Only now: work that is reported late would be taken for not begun.
        for uuid in done:
            del self._done[uuid]
            del self._busy[uuid]
        for instance in await self._cell.in_state(ASSIGNED, DELETING):
            agent = self._agents.get(instance.host or "")
            if agent is not None and instance.uuid not in self._busy:
                self._busy[instance.uuid] = asyncio.create_task(self._carry_out(agent, instance))

    async def beat(self) -> None:
        """Tell the cell of every host's health."""
        await self._cell.heartbeat([agent.health() for agent in self._agents.values()])
        metrics.HEARTBEATS.inc(len(self._agents))

    async def reconcile(self) -> None:
        """Destroy every guest that the cell does not say belongs where it is."""
        # The guests first: one that comes after the cell was read would look like a stray.
        guests = {host: self._guests(agent) for host, agent in self._agents.items()}
        belong = await self._cell.guests()
        for host, agent in self._agents.items():
            for stray in set(guests[host]) - belong.get(host, set()):
                _log.info("destroying a guest that is not assigned here", host=host, instance=stray)
                await self._destroy(agent, stray)

    def _guests(self, agent: Agent) -> Collection[str]:
        """The guests of a host; none if its driver cannot tell: then nothing there is destroyed."""
        try:
            return agent.guests()
        except Exception as error:
            _log.error("the driver cannot list its guests", host=agent.host, error=error_text(error))
            return ()

    async def _carry_out(self, agent: Agent, instance: Instance) -> None:
        if instance.state == ASSIGNED:
            self._done[instance.uuid] = instance, await agent.build(instance)
        elif await self._destroy(agent, instance.uuid):
            self._done[instance.uuid] = instance, None
        else:
            # Free to be tried again, the next time that the cell is looked at.
            del self._busy[instance.uuid]
            return
        self._wake.set()

    async def _destroy(self, agent: Agent, instance: str) -> bool:
        """Destroy an instance; returns whether its driver could."""
        try:
            await agent.destroy(instance)
        except Exception:
            _log.exception("the driver failed to destroy", host=agent.host, instance=instance)
            return False
        return True

    async def _keep_working(self) -> None:
        while True:
            try:
                await self.step()
            except (StorageError, EndpointUnavailable) as error:
                _log.warning("a database cannot be reached", cell=self._cell.name, error=str(error))
            await changed(self._wake, self._poll_seconds)

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat_seconds)
            try:
                await self.register()
                await self.beat()
                await self.reconcile()
            except (StorageError, EndpointUnavailable) as error:
                _log.warning("a database cannot be reached", cell=self._cell.name, error=str(error))
