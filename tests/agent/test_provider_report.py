"""Reports bring a real placement in line with a tree, through the relay of the cell's endpoint."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from roost.agent.agent_context import AsyncioAgentContext
from roost.agent.driver_calls import DriverService
from roost.agent.errors import BadProviderName
from roost.agent.persistent_state import MemoryState
from roost.agent.protocol.errors import AccessRefused, EndpointUnavailable
from roost.agent.protocol.questions import ReadTree, WriteProviders
from roost.agent.protocol.types import (
    CreateProvider,
    DeleteProvider,
    MoveProvider,
    ProviderState,
    SessionKey,
    SetTraits,
)
from roost.agent.provider_report import Reported, report_providers
from roost.agent.provider_tree import ProviderTree
from roost.conductor.agent_endpoint.relay import ProviderRelay
from roost.ledger import LedgerBusy
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from roost.placement.service import PlacementService
from support.drivers import HeldDriver
from support.ledgers import claim, opened

SESSION = SessionKey("host", "nonce", 1)
ROOT, NUMA, GPU = (provider_uuid(name) for name in ("host", "numa", "gpu"))
AGGREGATE = "6f5b9c1e-8d0b-4c43-8a55-0d1f6a2b7c11"


class TreeDriver(HeldDriver):
    """A driver whose host has ``gpus`` in a NUMA cell, and no cell without."""

    gpus = 4
    name = "gpu"

    def update_provider_tree(self, tree: ProviderTree, nodename: str, allocations=None) -> None:
        tree.update_inventory(nodename, {"VCPU": Inventory(8), "CUSTOM_LICENSE": Inventory(2)})
        tree.update_traits(nodename, ["HW_CPU_X86_AVX", "CUSTOM_FAST"])
        tree.update_aggregates(nodename, [AGGREGATE])
        if not self.gpus and "numa" in tree:
            tree.remove("numa")
        if self.gpus:
            tree.put_child("numa", nodename)
            tree.put_child(self.name, "numa")
            tree.update_inventory(self.name, {"VGPU": Inventory(self.gpus)})


class Relayed:
    """An endpoint that relays what concerns providers, whoever asks."""

    def __init__(self, service: PlacementService) -> None:
        self._relay = ProviderRelay(service)

    async def ask(self, question):
        if isinstance(question, ReadTree):
            return await self._relay.read(question.root)
        assert isinstance(question, WriteProviders)
        return await self._relay.write(question.root, question.writes)


class Reporter:
    """An agent's report, to a placement."""

    def __init__(self, service: PlacementService) -> None:
        self.service = service
        self.driver = TreeDriver()
        self.state = MemoryState()

    async def report(self, read: tuple[ProviderState, ...] | None = None) -> Reported:
        applied = self.state.applied.get("host", {})
        context = AsyncioAgentContext(Relayed(self.service), DriverService(self.driver), self.state)
        return await report_providers(context, SESSION, "host", ROOT, applied, read=read)


@asynccontextmanager
async def reporting(directory):
    async with opened(directory / "api.db") as [ledger]:
        yield Reporter(PlacementService(ledger))


def test_report_makes_the_tree_with_its_custom_names_and_the_next_one_commits_nothing(tmp_path) -> None:
    async def run() -> None:
        async with reporting(tmp_path) as reporter:
            service = reporter.service
            assert (await reporter.report()).refusals == ()
            tree = {each.uuid: (each.name, each.parent) for each in await service.tree(ROOT)}
            assert tree == {ROOT: ("host", None), NUMA: ("numa", ROOT), GPU: ("gpu", NUMA)}
            assert await service.inventories(ROOT) == {"VCPU": Inventory(8), "CUSTOM_LICENSE": Inventory(2)}
            assert await service.traits(ROOT) == {"COMPUTE_NODE", "HW_CPU_X86_AVX", "CUSTOM_FAST"}
            assert await service.aggregates(ROOT) == {AGGREGATE}
            assert await service.inventories(GPU) == {"VGPU": Inventory(4)}
            version = (await service.ledger.current()).version
            await reporter.report()
            assert (await service.ledger.current()).version == version

    asyncio.run(run())


def test_capabilities_are_traits_of_the_node_and_leave_what_an_operator_has_set(tmp_path) -> None:
    attaches, trusted = "COMPUTE_NET_ATTACH_INTERFACE", "COMPUTE_TRUSTED_CERTS"

    class Capable(TreeDriver):
        can = True

        def capabilities(self) -> dict[str, bool]:
            return {attaches: self.can, trusted: False}

    async def run() -> None:
        async with reporting(tmp_path) as reporter:
            reporter.driver = driver = Capable()
            await reporter.report()
            has = await reporter.service.traits(ROOT)
            assert has == {"COMPUTE_NODE", "HW_CPU_X86_AVX", "CUSTOM_FAST", attaches}
            assert await reporter.service.traits(NUMA) == frozenset()
            await reporter.service.set_traits(ROOT, has | {trusted})
            driver.can = False
            await reporter.report()
            assert await reporter.service.traits(ROOT) == has - {attaches} | {trusted}

    asyncio.run(run())


def test_provider_in_use_is_kept_until_it_is_free(tmp_path) -> None:
    async def run() -> None:
        async with reporting(tmp_path) as reporter:
            await reporter.report()
            await reporter.service.ledger.execute(claim("consumer", GPU, VGPU=1))
            reporter.driver.gpus = 0
            reported = await reporter.report()
            assert [text.partition(":")[0] for text in reported.refusals] == [
                f"Unable to delete resource provider {GPU}",
                f"Unable to delete parent resource provider {NUMA}",
            ]
            assert len(await reporter.service.tree(ROOT)) == 3
            await reporter.service.delete_allocations(["consumer"])
            assert (await reporter.report()).refusals == ()
            assert [each.uuid for each in await reporter.service.tree(ROOT)] == [ROOT]

    asyncio.run(run())


def test_name_that_cannot_be_stored_is_refused_before_anything_is_written(tmp_path) -> None:
    async def run() -> None:
        async with reporting(tmp_path) as reporter:
            reporter.driver.name = "gpu\0"
            with pytest.raises(BadProviderName, match="gpu"):
                await reporter.report()
            assert await reporter.service.tree(ROOT) == []

    asyncio.run(run())


def test_agent_reaches_no_provider_outside_of_its_tree(tmp_path) -> None:
    async def run() -> None:
        async with reporting(tmp_path) as reporter:
            await reporter.report()
            await reporter.service.ensure_provider("other", "other")
            relay = ProviderRelay(reporter.service)
            for write in (
                DeleteProvider("other"),
                SetTraits("other", frozenset(), 0),
                MoveProvider("other", "other", ROOT),
                MoveProvider(GPU, "gpu", "other"),
                CreateProvider("new", "new", "other"),
                CreateProvider("other", "other", ROOT),
            ):
                with pytest.raises(AccessRefused):
                    await relay.write(ROOT, [write])
            made = await relay.write(ROOT, [CreateProvider("new", "new", None)])
            assert made.done == 0 and made.refusal is not None
            with pytest.raises(AccessRefused, match="not the root"):
                await relay.read(GPU)
            assert len(await reporter.service.tree(ROOT)) == 3
            assert await reporter.service.provider("new") is None

    asyncio.run(run())


def test_provider_that_others_delete_meanwhile_is_made_again_by_the_same_report(
    tmp_path, monkeypatch
) -> None:
    async def run() -> None:
        async with reporting(tmp_path) as reporter:
            await reporter.report()
            written = ProviderRelay.write

            async def after_a_deletion(relay, root, writes):
                monkeypatch.setattr(ProviderRelay, "write", written)
                await reporter.service.delete_provider(GPU)
                return await written(relay, root, writes)

            monkeypatch.setattr(ProviderRelay, "write", after_a_deletion)
            reporter.driver.gpus = 2
            assert (await reporter.report()).refusals == ()
            assert (await reporter.service.inventories(GPU))["VGPU"].total == 2
            gone = await ProviderRelay(reporter.service).write(ROOT, [SetTraits("gone", frozenset(), 0)])
            assert gone.refusal is not None and gone.refusal.conflict

    asyncio.run(run())


def test_placement_that_is_busy_is_no_refusal(tmp_path, monkeypatch) -> None:
    async def busy(*_) -> None:
        raise LedgerBusy("busy")

    async def run() -> None:
        async with reporting(tmp_path) as reporter:
            relay = ProviderRelay(reporter.service)
            monkeypatch.setattr(reporter.service, "tree", busy)
            for call in (relay.read(ROOT), relay.write(ROOT, [CreateProvider(ROOT, "host", None)])):
                with pytest.raises(EndpointUnavailable, match="placement cannot be reached"):
                    await call

    asyncio.run(run())


def test_a_tree_that_was_read_not_long_ago_is_read_again_only_for_a_change(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with reporting(tmp_path) as reporter:
            await reporter.report()
            read = (await reporter.report()).unchanged
            assert read is not None
            with monkeypatch.context() as away:
                away.setattr(Relayed, "ask", None)
                assert (await reporter.report(read)).unchanged == read
            reporter.driver.gpus = 2
            changed = await reporter.report(read)
            assert (changed.unchanged, changed.refusals) == (None, ())
            assert (await reporter.service.inventories(GPU))["VGPU"].total == 2

    asyncio.run(run())
