"""Reshapes of hosts whose placement service is OpenStack's, over HTTP."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from differential.services import Upstream
from roost.agent.drivers.simulated import SimulatedDriver
from roost.model.inventory import Inventory
from roost.placement.client import HttpPlacement
from roost.state.cell_database.hosts import describe_hosts
from roost.state.cell_database.reshapes import ReshapeMark, begin_reshape, read_reshape_marks
from roost.web.auth.credentials import FixedCredentials
from support.agents import Hosts, until
from support.cells import opened_cell
from support.reshaping import CPUS, FLAT, ROOT, cards, claimed, described, follows, held, put
from support.told_calls import ToldService
from support.waiting import patience

ONE, TWO, VOLUME = (f"44444444-0000-4000-8000-{number:012}" for number in range(3))
NUMA = {"VCPU": Inventory(4), "MEMORY_MB": Inventory(512)}


@pytest.fixture(scope="module")
def openstack() -> Iterator[Upstream]:
    service = Upstream()
    yield service
    service.close()


@asynccontextmanager
async def hosts_at(service: ToldService, directory: Path) -> AsyncIterator[Hosts]:
    """Hosts whose cell asks a placement service."""
    with service.served() as url:
        client = httpx.AsyncClient(timeout=patience(30))
        async with (
            HttpPlacement(FixedCredentials(url, "admin"), client=client) as placement,
            opened_cell(directory) as cell,
        ):
            yield Hosts(cell, placement)


async def reshaped(world: Hosts, driver: SimulatedDriver) -> None:
    """Run the agent of host a once with another driver."""
    world.a = driver
    async with world.running():
        pass


def reshapers(service: ToldService) -> list[int]:
    """The status of each reshape that was asked for."""
    return [call.status for call in service.calls if call.path == "/reshaper"]


@pytest.mark.parametrize(
    ("driver", "one", "two"),
    [
        (
            lambda: cards(4, 4),
            {"a": {"VCPU": 2, "MEMORY_MB": 64}, "a-gpu1": {"VGPU": 3}},
            {"a": {"VCPU": 2, "MEMORY_MB": 64}, "a-gpu2": {"VGPU": 3}},
        ),
        (
            lambda: described({"PCPU": Inventory(8), "MEMORY_MB": Inventory(1024), "VGPU": Inventory(8)}),
            {"a": {"PCPU": 2, "MEMORY_MB": 64, "VGPU": 3}},
            {"a": {"PCPU": 2, "MEMORY_MB": 64, "VGPU": 3}},
        ),
        (
            lambda: described({"VGPU": Inventory(8)}, numa0=NUMA, numa1=NUMA),
            {"a": {"VGPU": 3}, "a-numa0": {"VCPU": 2, "MEMORY_MB": 64}},
            {"a": {"VGPU": 3}, "a-numa1": {"VCPU": 2, "MEMORY_MB": 64}},
        ),
    ],
    ids=["vgpu to cards", "vcpu to pcpu", "numa nodes"],
)
def test_host_is_reshaped_with_its_instances_and_flat_again(
    tmp_path: Path, openstack: Upstream, driver, one, two
) -> None:
    async def run() -> None:
        openstack.reset()
        service = ToldService(openstack)
        async with hosts_at(service, tmp_path) as world:
            await reshaped(world, described(FLAT))
            flat = {"a": {"VCPU": 2, "MEMORY_MB": 64, "VGPU": 3}}
            for uuid in (ONE, TWO):
                await put(world, uuid, VCPU=2, MEMORY_MB=64, VGPU=3)
            await reshaped(world, driver())
            assert reshapers(service) == [204]
            assert [await held(world, uuid) for uuid in (ONE, TWO)] == [one, two]
            assert await follows(world, ONE) and await follows(world, TWO)
            assert await world.cell.read(read_reshape_marks()) == []
            service.calls.clear()
            await reshaped(world, driver())
            assert service.calls == []
            await reshaped(world, described(FLAT))
            assert [await held(world, uuid) for uuid in (ONE, TWO)] == [flat, flat]
            assert await follows(world, ONE) and await follows(world, TWO)
            assert [each.name for each in await world.placement.tree(ROOT)] == ["a"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("driver", "kind", "reason"),
    [
        (lambda: cards(1, 1), "VOLUME", f"consumer {ONE} holds 3 VGPU, of which 1 fit nowhere"),
        (
            lambda: cards(4, 4),
            "INSTANCE",
            f"instances {ONE} hold something of the node, but the cell has none",
        ),
    ],
    ids=["does not fit", "not of the cell"],
)
def test_reshape_is_refused_with_nothing_changed(
    tmp_path: Path, openstack: Upstream, driver, kind, reason
) -> None:
    async def run() -> None:
        openstack.reset()
        service = ToldService(openstack)
        async with hosts_at(service, tmp_path) as world:
            await reshaped(world, described(FLAT))
            await claimed(world, ONE, kind, VGPU=3)
            world.a = driver()
            async with world.running():

                async def is_shown() -> bool:
                    shown = (await world.cell.read(describe_hosts(("a",))))["a"]
                    return reason in (shown.refused or "")

                await until(is_shown)
            assert reshapers(service) == []
            assert await world.placement.inventories(ROOT) == FLAT
            assert await held(world, ONE) == {"a": {"VGPU": 3}}

    asyncio.run(run())


class Wrong(SimulatedDriver):
    """A driver that moves more to a card than the card has."""

    def update_provider_tree(self, tree, nodename, allocations=None) -> None:
        super().update_provider_tree(tree, nodename, allocations)
        for uuid in tree.get_provider_uuids() if allocations else ():
            if tree.data(uuid).name == "a-gpu1":
                tree.update_inventory(uuid, {"VGPU": Inventory(2)})


def test_what_placement_refuses_itself_is_told_and_changes_nothing(
    tmp_path: Path, openstack: Upstream
) -> None:
    async def run() -> None:
        openstack.reset()
        service = ToldService(openstack)
        async with hosts_at(service, tmp_path) as world:
            await reshaped(world, described(FLAT))
            await put(world, ONE, VCPU=2, VGPU=3)
            world.a = Wrong(cards(4)._host, cards(4)._script)
            async with world.running():

                async def is_shown() -> bool:
                    shown = (await world.cell.read(describe_hosts(("a",))))["a"]
                    return "not reshaped" in (shown.refused or "")

                await until(is_shown)

                # The agent tries again and again: each try makes a mark and takes it away.
                async def is_unmarked() -> bool:
                    return await world.cell.read(read_reshape_marks()) == []

                await until(is_unmarked)
            assert set(reshapers(service)) == {409}
            assert await world.placement.inventories(ROOT) == FLAT
            assert await held(world, ONE) == {"a": {"VCPU": 2, "VGPU": 3}}
            assert await follows(world, ONE)
            await reshaped(world, cards(4))
            assert await held(world, ONE) == {"a": {"VCPU": 2}, "a-gpu1": {"VGPU": 3}}
            assert await world.cell.read(read_reshape_marks()) == []

    asyncio.run(run())


def test_what_others_hold_keeps_its_type_and_a_mark_of_before_is_settled(
    tmp_path: Path, openstack: Upstream
) -> None:
    async def run() -> None:
        openstack.reset()
        service = ToldService(openstack)
        async with hosts_at(service, tmp_path) as world:
            await reshaped(world, described(FLAT))
            await put(world, ONE, VGPU=2)
            await claimed(world, VOLUME, "VOLUME", VGPU=4)
            root = await world.placement.provider(ROOT)
            assert root is not None
            # As an agent leaves it that was killed before its message to placement.
            await world.cell.write(begin_reshape(ReshapeMark(ROOT, root.generation, 0.0), {}))
            await reshaped(world, cards(4, 4))
            assert await held(world, VOLUME) == {"a-gpu1": {"VGPU": 4}}
            assert await held(world, ONE) == {"a-gpu2": {"VGPU": 2}}
            there = await world.placement.allocations_of(VOLUME)
            assert there is not None
            assert replace(there.consumer, generation=0).consumer_type == "VOLUME"
            assert await world.placement.inventories(ROOT) == CPUS
            assert await world.cell.read(read_reshape_marks()) == []

    asyncio.run(run())
