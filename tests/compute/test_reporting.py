"""Reports bring placement in line with a tree, and write only what differs."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from roost.compute.provider_tree import ProviderTree
from roost.compute.reporting import report
from roost.model.inventory import Inventory
from roost.placement.errors import ProviderInUse
from roost.placement.service import PlacementService
from support.ledgers import claim, opened


class CutShort(Exception):
    """The agent is gone."""


class Watched:
    """A placement service that keeps the names of writes, and fails after so many of them."""

    def __init__(self, service: PlacementService, last: int | None = None) -> None:
        self._service = service
        self._last = last
        self.writes: list[str] = []

    def __getattr__(self, name):
        call = getattr(self._service, name)
        if not name.startswith(("set_", "ensure_", "delete_")):
            return call

        async def write(*arguments):
            if len(self.writes) == self._last:
                raise CutShort
            self.writes.append(name)
            return await call(*arguments)

        return write


def host_tree(gpus: int = 4) -> ProviderTree:
    tree = ProviderTree("host")
    tree.update_inventory("host", {"VCPU": Inventory(8), "CUSTOM_LICENSE": Inventory(2)})
    tree.update_traits("host", ["HW_CPU_X86_AVX", "CUSTOM_FAST"])
    tree.update_aggregates("host", ["6f5b9c1e-8d0b-4c43-8a55-0d1f6a2b7c11"])
    tree.new_child("numa", "host")
    tree.new_child("gpu", "numa")
    tree.update_inventory("gpu", {"VGPU": Inventory(gpus)})
    return tree


async def is_there(service: PlacementService, tree: ProviderTree) -> bool:
    """Whether placement has exactly this tree."""
    found = {provider.uuid: provider for provider in await service.tree(tree.root.uuid)}
    if found.keys() != {provider.uuid for provider in tree}:
        return False
    for provider in tree:
        there = found[provider.uuid]
        assert (there.name, there.parent) == (provider.name, provider.parent)
        assert await service.inventories(provider.uuid) == provider.inventory
        assert await service.traits(provider.uuid) == provider.traits
        assert await service.aggregates(provider.uuid) == provider.aggregates
    return True


@asynccontextmanager
async def placement(directory):
    async with opened(directory / "api.db") as [ledger]:
        yield PlacementService(ledger)


def test_first_report_makes_the_tree_with_its_custom_names(tmp_path) -> None:
    async def run() -> None:
        async with placement(tmp_path) as service:
            await report(host_tree(), service)
            assert await is_there(service, host_tree())

    asyncio.run(run())


def test_second_report_commits_nothing(tmp_path) -> None:
    async def run() -> None:
        async with placement(tmp_path) as service:
            await report(host_tree(), service)
            version = (await service.ledger.current()).version
            await report(host_tree(), service)
            assert (await service.ledger.current()).version == version

    asyncio.run(run())


def test_only_what_differs_is_written(tmp_path) -> None:
    async def run() -> None:
        async with placement(tmp_path) as service:
            await report(host_tree(), service)
            watched = Watched(service)
            await report(host_tree(gpus=8), watched)
            assert [name for name in watched.writes if name != "ensure_provider"] == ["set_inventories"]
            assert await is_there(service, host_tree(gpus=8))

    asyncio.run(run())


def test_what_is_no_longer_in_the_tree_is_deleted_children_first(tmp_path) -> None:
    async def run() -> None:
        async with placement(tmp_path) as service:
            await report(host_tree(), service)
            smaller = host_tree()
            smaller.remove("numa")
            await report(smaller, service)
            assert await is_there(service, smaller)

    asyncio.run(run())


def test_provider_that_is_in_use_is_not_deleted(tmp_path) -> None:
    async def run() -> None:
        async with placement(tmp_path) as service:
            tree = host_tree()
            await report(tree, service)
            await service.ledger.execute(claim("consumer", tree.data("gpu").uuid, VGPU=1))
            smaller = host_tree()
            smaller.remove("numa")
            with pytest.raises(ProviderInUse):
                await report(smaller, service)
            assert await is_there(service, tree)

    asyncio.run(run())


@pytest.mark.parametrize("last", range(9))
def test_report_that_was_cut_short_is_completed_by_the_next(tmp_path, last) -> None:
    async def run() -> None:
        async with placement(tmp_path) as service:
            before = ProviderTree("host")
            before.new_child("old", "host")
            await report(before, service)
            with pytest.raises(CutShort):
                await report(host_tree(), Watched(service, last))
            await report(host_tree(), service)
            assert await is_there(service, host_tree())

    asyncio.run(run())
