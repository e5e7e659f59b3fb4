"""Availability zones in a whole system: made over HTTP, asked for, changed; those of a layout made once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from roost.agent.drivers.simulated import SimulatedHost
from roost.conductor.http import create_app
from roost.model.aggregate import HostAggregate
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from roost.server.all_in_one.layout import LayoutHost, SystemLayout
from roost.server.all_in_one.system import System
from roost.web.auth import NoAuth
from support.conductor_api import ADMIN, FLAVOR, detail
from support.systems import SMALL, opened_system
from support.waiting import patience

ALL = "/v1/aggregates"
HOST = "host-0002"
NODE = provider_uuid(HOST)


@asynccontextmanager
async def served(
    directory: Path, layout: SystemLayout = SMALL
) -> AsyncIterator[tuple[System, httpx.AsyncClient]]:
    async with opened_system(directory, layout) as system:
        app = create_app(
            system.super_conductor,
            system.requests,
            system.aggregates,
            system.groups,
            system.placement,
            NoAuth(),
        )
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://roost", headers=ADMIN) as client:
            yield system, client


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(patience(60)):
        while not await true():
            await asyncio.sleep(0.02)


async def in_force(system: System, aggregate: str, nodes: set[str]) -> None:
    """Wait until placement and the scheduler know the members of an aggregate."""

    async def known() -> bool:
        table = system.table
        members = {
            table.nodes[index]
            for index in range(table.size)
            if aggregate in (each.uuid for each in table.aggregates(index))
        }
        return members == nodes and await system.placement.providers_in_aggregate(aggregate) == nodes

    await until(known)


async def asked_in(system: System, client: httpx.AsyncClient, zone: str) -> dict[str, str]:
    """An instance that was asked for in a zone, as it is shown in the end."""
    asked = await client.post("/v1/instances", json={"flavor": FLAVOR, "availability_zone": zone})
    await system.settle()
    shown: dict[str, str] = (await client.get(f"/v1/instances/{asked.json()['instances'][0]}")).json()
    return shown


def test_zone_is_made_over_http_and_instances_follow_it(tmp_path) -> None:
    async def run() -> None:
        async with served(tmp_path) as (system, client):
            made = await client.post(ALL, json={"name": "edge", "metadata": {"availability_zone": "edge"}})
            zone = made.json()["uuid"]
            members = f"{ALL}/{zone}/members"
            assert (await client.post(members, json={"add": [HOST]})).status_code == 200
            await in_force(system, zone, {NODE})
            shown = await asked_in(system, client, "edge")
            assert (shown["state"], shown["host"]) == ("active", HOST)

            refused = await client.post(members, json={"remove": [HOST]})
            assert (refused.status_code, "has 1 instances" in detail(refused)) == (409, True)
            await client.delete(f"/v1/instances/{shown['uuid']}")
            await system.settle()
            assert (await client.post(members, json={"remove": [HOST]})).status_code == 200
            await in_force(system, zone, set())
            shown = await asked_in(system, client, "edge")
            assert (shown["state"], shown["cell"]) == ("error", "cell0")
            assert (await asked_in(system, client, "nova"))["state"] == "active"

    asyncio.run(run())


def test_aggregates_of_a_layout_are_made_at_the_first_start_only(tmp_path) -> None:
    fast = HostAggregate("00000000-0000-4000-8000-000000000001", "fast", {"availability_zone": "az1"})
    hosts = [SimulatedHost(name, {"VCPU": Inventory(4)}) for name in ("plain", "quick")]
    layout = SystemLayout({"cell1": (LayoutHost(hosts[0]), LayoutHost(hosts[1], (fast,)))})

    async def run() -> None:
        async with served(tmp_path, layout) as (system, client):
            await in_force(system, fast.uuid, {provider_uuid("quick")})
            shown = await asked_in(system, client, "az1")
            assert (shown["state"], shown["host"]) == ("active", "quick")
            await client.delete(f"/v1/instances/{shown['uuid']}")
            await system.settle()
            path = f"{ALL}/{fast.uuid}"
            assert (await client.post(f"{path}/members", json={"remove": ["quick"]})).status_code == 200
            assert (await client.delete(path)).status_code == 204
        async with served(tmp_path, layout) as (system, client):
            assert (await client.get(ALL)).json()["aggregates"] == []
            await in_force(system, fast.uuid, set())

    asyncio.run(run())


@pytest.mark.parametrize("lost", [False, True])
def test_members_are_in_placement_after_a_start(tmp_path, lost: bool) -> None:
    """Also if the process ended before it mirrored them, or others removed them."""

    async def run() -> None:
        async with served(tmp_path) as (system, client):
            made = await client.post(ALL, json={"name": "rack"})
            aggregate: str = made.json()["uuid"]
            await client.post(f"{ALL}/{aggregate}/members", json={"add": [HOST]})
            await in_force(system, aggregate, {NODE})
            if lost:
                await system.placement.set_aggregates(NODE, [])
        async with served(tmp_path) as (system, _):
            assert await system.placement.providers_in_aggregate(aggregate) == {NODE}
            index = system.table.index(HOST)
            assert index is not None
            assert [each.name for each in system.table.aggregates(index)] == ["rack"]

    asyncio.run(run())
