"""Sharing providers, such as pools of storage, that agents of hosts make and change."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from roost.agent.drivers.simulated import Script, SimulatedDriver, SimulatedHost, SimulatedPool
from roost.agent.protocol.errors import AccessRefused
from roost.agent.protocol.types import CreateProvider, DeleteProvider, MoveProvider, SetInventories
from roost.conductor.agent_endpoint.relay import ProviderRelay
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from roost.model.vocabulary import SHARING_TRAIT
from roost.placement.client.http import HttpPlacement
from roost.state.cell_database.hosts import describe_hosts
from roost.web.auth.credentials import FixedCredentials
from support.agents import Hosts, hosts, until
from support.placement_api import Api, uuid_of

POOL = provider_uuid("storage")
GROUP = uuid_of("nears")
OTHER_GROUP = uuid_of("fars")
DISKS = {"DISK_GB": Inventory(1000)}


def sharing(host: str, disks: int = 1000, name: str = "storage") -> SimulatedDriver:
    """The driver of a host whose disks are in a pool."""
    pool = SimulatedPool(name, GROUP, {"DISK_GB": Inventory(disks)}, ("STORAGE_DISK_SSD",))
    return SimulatedDriver(SimulatedHost(host, {"VCPU": Inventory(8)}, pools=(pool,)), Script())


def without(host: str) -> SimulatedDriver:
    """The driver of the same host with nothing but CPUs."""
    return SimulatedDriver(SimulatedHost(host, {"VCPU": Inventory(8)}), Script())


@asynccontextmanager
async def two_hosts(folder: Path, *names: str) -> AsyncIterator[Hosts]:
    async with hosts(folder, sharing=names) as world:
        world.a, world.b = without("a"), without("b")
        yield world


async def reported(world: Hosts) -> None:
    """Run the agents until both have reported."""
    async with world.running():
        pass


async def refused(world: Hosts, host: str) -> str | None:
    return (await world.cell.read(describe_hosts((host,))))[host].refused


def test_agents_make_one_pool_together_and_leave_what_an_operator_sets(tmp_path: Path) -> None:
    async def run() -> None:
        async with two_hosts(tmp_path, "storage") as world:
            world.a = sharing("a")
            await reported(world)
            assert [each.name for each in await world.placement.tree(POOL)] == ["storage"]
            assert await world.placement.inventories(POOL) == DISKS
            assert await world.placement.traits(POOL) == {SHARING_TRAIT, "STORAGE_DISK_SSD"}
            assert await world.placement.aggregates(POOL) == {GROUP}
            assert await world.placement.aggregates(provider_uuid("a")) == {GROUP}
            # The second host comes when an operator has been there: it is not in the pool's aggregate yet.
            overcommitted = {"DISK_GB": Inventory(1000, reserved=50, allocation_ratio=1.5)}
            await world.placement.set_inventories(POOL, overcommitted)
            await world.placement.set_traits(POOL, [SHARING_TRAIT, "STORAGE_DISK_SSD", "CUSTOM_FAST"])
            world.b = sharing("b")
            await reported(world)
            assert await world.placement.inventories(POOL) == overcommitted
            assert "CUSTOM_FAST" in await world.placement.traits(POOL)
            assert await world.placement.aggregates(provider_uuid("b")) == {GROUP}
            # A pool that grows: one of the hosts finds it first.
            world.a = sharing("a", disks=2000)
            async with world.running():

                async def has_grown() -> bool:
                    return (await world.placement.inventories(POOL))["DISK_GB"].total == 2000

                await until(has_grown)
            grown = {"DISK_GB": Inventory(2000, reserved=50, allocation_ratio=1.5)}
            assert await world.placement.inventories(POOL) == grown

    asyncio.run(run())


def test_pool_that_the_conductor_does_not_name_is_refused_and_the_host_is_reported(tmp_path: Path) -> None:
    async def run() -> None:
        async with two_hosts(tmp_path, "another") as world:
            world.a = sharing("a")
            async with world.running():

                async def is_told() -> bool:
                    return "sharing_providers" in (await refused(world, "a") or "")

                await until(is_told)
            told = await refused(world, "a") or ""
            assert told.count("may not change the sharing provider storage") == 1
            assert await world.placement.tree(POOL) == []
            assert await world.placement.inventories(provider_uuid("a")) == {"VCPU": Inventory(8)}
            assert await refused(world, "b") is None

    asyncio.run(run())


def test_pool_of_an_operator_is_used_without_leave_to_change_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with two_hosts(tmp_path) as world:
            made = uuid_of("pool")
            await world.placement.ensure_provider(made, "storage")
            await world.placement.set_inventories(made, DISKS)
            await world.placement.set_traits(made, [SHARING_TRAIT, "STORAGE_DISK_SSD"])
            await world.placement.set_aggregates(made, [GROUP])
            await world.placement.ensure_provider(provider_uuid("a"), "a")
            await world.placement.set_aggregates(provider_uuid("a"), [GROUP])
            world.a = sharing("a")
            await reported(world)
            assert await refused(world, "a") is None
            assert await world.placement.tree(POOL) == []
            [there] = await world.placement.tree(made)
            # Another amount than the operator's is told, and not written.
            world.a = sharing("a", disks=5)
            async with world.running():

                async def is_told() -> bool:
                    return "sharing_providers" in (await refused(world, "a") or "")

                await until(is_told)
            assert await world.placement.tree(made) == [there]

    asyncio.run(run())


def test_pool_stays_when_its_maker_leaves_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with two_hosts(tmp_path, "storage") as world:
            world.a, world.b = sharing("a"), sharing("b")
            await reported(world)
            world.a = without("a")
            await reported(world)
            assert await world.placement.inventories(POOL) == DISKS
            assert await world.placement.aggregates(provider_uuid("a")) == set()

    asyncio.run(run())


@pytest.fixture(params=["in process", "over HTTP"])
def relayed(request: pytest.FixtureRequest, tmp_path: Path):
    """A placement with a host, a pool in its aggregate and one that is not, and a relay for one name."""
    api = Api(tmp_path)
    root = api.provider("host", VCPU=8)
    api.run(api.service.set_aggregates(root, [GROUP]))
    for name, group in (("near", GROUP), ("far", OTHER_GROUP)):
        pool = api.provider(name, DISK_GB=10)
        api.run(api.service.set_traits(pool, [SHARING_TRAIT]))
        api.run(api.service.set_aggregates(pool, [group]))
    if request.param == "in process":
        yield api, ProviderRelay(api.service, ["near", "new"])
    else:
        transport = httpx.AsyncClient(transport=httpx.ASGITransport(app=api.app))
        client = HttpPlacement(FixedCredentials("http://placement", "admin"), client=transport)
        yield api, ProviderRelay(client, ["near", "new"])
        api.run(client.close())
    api.close()


def test_a_tree_is_served_by_the_pools_in_its_aggregates(relayed) -> None:
    api, relay = relayed
    near, far = uuid_of("near"), uuid_of("far")
    assert [each.uuid for each in api.run(relay.sharing([GROUP], []))] == [near]
    assert {each.uuid for each in api.run(relay.sharing([GROUP, OTHER_GROUP], []))} == {near, far}
    assert api.run(relay.sharing([], [])) == ()
    # By its uuid, one that agents may write, and that does not serve the tree yet.
    assert [each.uuid for each in api.run(relay.sharing([], [near, far]))] == [near]


def test_agents_write_the_pools_that_are_named_and_no_others(relayed) -> None:
    api, relay = relayed
    root, near, far, new = uuid_of("host"), uuid_of("near"), uuid_of("far"), uuid_of("new")
    grown = {"DISK_GB": Inventory(20)}
    generation = api.run(api.service.provider(near)).generation
    assert api.run(relay.write(root, [SetInventories(near, grown, generation)])).refusal is None
    made = [CreateProvider(new, "new", None), SetInventories(new, grown, 0)]
    assert api.run(relay.write(root, made)).done == 2
    assert api.run(api.service.inventories(near)) == api.run(api.service.inventories(new)) == grown
    at = api.run(api.service.provider(far)).generation
    for write in (
        SetInventories(far, grown, at),
        DeleteProvider(far),
        MoveProvider(near, "far-off", None),
        CreateProvider(uuid_of("own"), "own", None),
    ):
        written = api.run(relay.write(root, [write]))
        assert written.done == 0 and written.refusal is not None
        assert "sharing_providers" in written.refusal.text
    assert api.run(api.service.inventories(far)) == {"DISK_GB": Inventory(10)}
    for outside in (MoveProvider(near, "near", root), CreateProvider(uuid_of("own"), "own", near)):
        with pytest.raises(AccessRefused):
            api.run(relay.write(root, [outside]))
    assert api.run(relay.write(root, [DeleteProvider(new)])).done == 1
    assert api.run(api.service.provider(new)) is None
