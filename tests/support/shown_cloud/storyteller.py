"""Tells a system what happens in it: requests of tenants, words of operators, hosts that are lost."""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx

from roost.agent.drivers.simulated import Script, SimulatedDriver, SimulatedHost
from roost.agent.hosted_agents import HostedAgents
from roost.agent.options import AgentTimes
from roost.model.allocation import GroupPolicy
from roost.model.instance import ACTIVE, BuildRequest
from roost.model.spec import Flavor, RequestSpec, ServerGroup
from roost.process.option_source import Setting
from roost.server.all_in_one.system import System
from roost.server.parts.agents import open_agents
from roost.state.api_database.server_groups import StoredServerGroup
from support.shown_cloud.layout import aggregate_uuid

NOW: Final = 1_795_183_500.0
"""The time at which the clock stands still: Friday, 2026-11-20, 14:05 UTC."""

MINUTE, HOUR = 60.0, 3600.0

SETTINGS: Final = (
    Setting(
        "filter_scheduler",
        "enabled_filters",
        "ComputeFilter,AvailabilityZoneFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,"
        "ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter,NUMATopologyFilter,PciPassthroughFilter",
    ),
    Setting(
        "pci",
        "alias",
        '{"name": "a10", "vendor_id": "10de", "product_id": "2236", "device_type": "type-PCI", '
        '"numa_policy": "preferred"}',
    ),
)


class SteppedClock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.at = NOW - 30 * HOUR

    def __call__(self) -> float:
        return self.at

    def before(self, seconds: float) -> None:
        """Set it to a time before `NOW`."""
        assert NOW - seconds >= self.at, "the clock does not go back"
        self.at = NOW - seconds


class Storyteller:
    """Lets things happen in a system. A context manager.

    ``projects``: one of them makes each request that names none.
    """

    def __init__(self, system: System, projects: tuple[str, ...]) -> None:
        self._system = system
        self.random = random.Random(42)
        self._projects = projects
        self._requests = 0
        transport = httpx.ASGITransport(system.application())
        self._http = httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1", headers={"x-auth-token": "admin"}
        )

    async def __aenter__(self) -> "Storyteller":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def settle(self) -> None:
        """Wait until nothing is left to do."""
        await self._system.settle()

    async def reported(self) -> None:
        """Wait until the agents have reported all instances that run, and the scheduler has read it."""
        table = self._system.table
        while True:
            await self._see_hosts()
            cells = self._system.cells.values()
            running = {each.uuid for cell in cells for each in await cell.every() if each.state == ACTIVE}
            if all(table.indexes_of_instance(each) for each in running):
                return
            await asyncio.sleep(0.2)

    async def ask(
        self, flavor: Flavor, count: int = 1, *, name: str = "", project: str = "", **more: object
    ) -> list[str]:
        """Ask for instances; returns their uuids. ``more``: fields of the request spec."""
        self._requests += 1
        request_id = f"req-{uuid.uuid5(uuid.NAMESPACE_OID, f'request {self._requests}')}"
        instances = tuple(f"{uuid.uuid5(uuid.NAMESPACE_OID, f'{request_id} {n}')}" for n in range(count))
        project = project or self.random.choice(self._projects)
        spec = RequestSpec(project_id=project, user_id="alice", flavor=flavor, **more)  # type: ignore[arg-type]
        await self._system.super_conductor.accept(
            BuildRequest(
                request_id=request_id, spec=spec, instances=instances, min_count=count, name=name or None
            )
        )
        return list(instances)

    async def create_group(self, name: str, policy: GroupPolicy, project: str) -> ServerGroup:
        """Make a server group without members."""
        stored = StoredServerGroup(
            uuid=aggregate_uuid("group"), name=name, project_id=project, user_id="alice", policy=policy
        )
        await self._system.groups.create(stored)
        return ServerGroup(stored.uuid, stored.policy)

    async def disable(self, host: str, reason: str) -> None:
        """An operator disables a host."""
        answer = await self._http.put(f"/v1/hosts/{host}", json={"enabled": False, "reason": reason})
        assert answer.status_code == 200, answer.text

    async def maintain(self, *hosts: str) -> None:
        """An operator begins the maintenance of hosts."""
        body = {"hosts": [*hosts], "reserve": False, "keep_going": True}
        answer = await self._http.post("/v1/maintenances", json=body)
        assert answer.status_code == 202, answer.text

    @asynccontextmanager
    async def visiting_host(
        self, cell: str, host: SimulatedHost, script: Script, aggregates: tuple[str, ...]
    ) -> AsyncIterator[None]:
        """A host that joins a cell, and at the end is not heard of any more, so that it is down.

        ``aggregates``: the names of the aggregates that it is in.
        """
        system = self._system
        agents = open_agents(system, system.cells[cell], 0.5)
        driver = SimulatedDriver(host, script)
        fleet = HostedAgents(
            [(host.name, agents, driver, None)],
            times=AgentTimes(poll=0.5, health=0.5, token=float("inf")),
        )
        running = system.run_beside(fleet.run())
        await fleet.started()
        for name in aggregates:
            await system.aggregates.change_members(aggregate_uuid(name), [host.name], [])
        await self._see_hosts()
        yield
        await system.settle()
        await fleet.leave()
        running.cancel()
        await self._see_hosts()

    async def _see_hosts(self) -> None:
        """Let the scheduler see hosts that have come or gone."""
        assert self._system.hosts is not None
        await self._system.hosts.refresh_all()
