"""An agent: what its host has, how it is, and what came of each build."""

import asyncio

import pytest

from roost.compute.agent import Agent
from roost.compute.drivers.simulated import Script, SimulatedDriver, SimulatedHost
from roost.compute.errors import BuildFailed
from roost.compute.provider_tree import provider_uuid
from roost.conductor.agents.endpoint import AgentEndpoint
from roost.model.instance import Instance
from roost.model.inventory import Inventory
from roost.model.node import NodeReport
from roost.model.vocabulary import DISABLED_TRAIT
from roost.placement.service import PlacementService
from support.cells import built, failed, instance
from support.drivers import HeldDriver
from support.ledgers import opened

AGGREGATE = "6f5b9c1e-8d0b-4c43-8a55-0d1f6a2b7c11"


def test_registered_host_is_in_placement_and_keeps_the_aggregates_that_others_gave_it(tmp_path) -> None:
    async def run() -> None:
        async with opened(tmp_path / "api.db") as [ledger]:
            service = PlacementService(ledger)
            agent = Agent("a", "cell1", HeldDriver())
            await agent.register(AgentEndpoint(service))
            await service.set_aggregates(agent.node, {AGGREGATE})
            await agent.register(AgentEndpoint(service))
            assert agent.node == provider_uuid("a")
            assert await service.inventories(agent.node) == {"VCPU": Inventory(4)}
            assert await service.aggregates(agent.node) == {AGGREGATE}

    asyncio.run(run())


def test_disabled_host_has_the_trait_until_it_is_enabled(tmp_path) -> None:
    async def run() -> None:
        async with opened(tmp_path / "api.db") as [ledger]:
            service = PlacementService(ledger)
            agent = Agent("a", "cell1", HeldDriver())
            agent.enabled = False
            await agent.register(AgentEndpoint(service))
            assert await service.traits(agent.node) == {DISABLED_TRAIT}
            agent.enabled = True
            await agent.register(AgentEndpoint(service))
            assert await service.traits(agent.node) == frozenset()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (BuildFailed("No more IP addresses"), "No more IP addresses"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
    ],
    ids=["failure", "defect of the driver"],
)
def test_whatever_goes_wrong_is_the_reason(error, reason) -> None:
    async def run() -> None:
        driver = HeldDriver()
        driver.failure = error
        agent = Agent("a", "cell1", driver)
        assert await agent.build(instance(attempt=2)) == failed(attempt=2, reason=reason)

    asyncio.run(run())


def test_health_counts_failed_builds_since_the_last_good_one() -> None:
    async def run() -> None:
        driver = HeldDriver()
        agent = Agent("a", "cell1", driver)
        driver.failure = BuildFailed("no")
        await agent.build(instance("i"))
        await agent.build(instance("j"))
        assert agent.health() == NodeReport(
            host="a",
            node=agent.node,
            cell="cell1",
            failed_builds=2,
            metrics={"heat": 40.0},
        )
        driver.failure = None
        assert await agent.build(instance("k")) == built("k")
        assert agent.health().failed_builds == 0

    asyncio.run(run())


class OddDriver(SimulatedDriver):
    """A driver whose sensors and lists fail, and whose errors have texts that cannot be encoded."""

    def metrics(self) -> dict[str, float]:
        raise OSError("\udc80")

    async def prepare(self, instance: Instance) -> None:
        raise BuildFailed("no \udc80 IP\0")


def test_driver_that_is_odd_costs_no_more_than_what_it_should_tell() -> None:
    agent = Agent("host-1", "cell1", OddDriver(SimulatedHost(name="host-1", inventory={}), Script()))
    assert agent.health().metrics == {}
    result = asyncio.run(agent.build(instance()))
    assert result.failure == "no \ufffd IP\ufffd"
