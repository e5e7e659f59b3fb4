"""A host with several nodes, as of bare metal: each has its report and its own providers."""

import asyncio

import pytest

from roost.agent.hosted_agents import HostedAgents
from roost.agent.protocol.errors import AccessRefused
from roost.agent.protocol.questions import Opening, WriteProviders
from roost.agent.protocol.types import CreateProvider
from roost.model.instance import ACTIVE
from roost.model.names import provider_uuid
from support.agents import FAST, until
from support.cells import instance
from support.served_agents import Served, served

ONE, TWO, THREE = (f"{number}0000000-0000-4000-8000-000000000000" for number in (1, 2, 3))


class Running:
    """The agent of host a with nodes, over HTTP."""

    def __init__(self, api: Served, *nodes: str) -> None:
        self.api = api
        self.has(*nodes)

    def has(self, *nodes: str) -> None:
        self.api.world.a.roots = {node: node for node in nodes}

    async def __aenter__(self) -> "Running":
        client = self.api.client(await self.api.token("a"))
        hosting = HostedAgents([("a", client, self.api.world.a, None)], times=FAST)
        self._tasks = [asyncio.create_task(each.run()) for each in (self.api.world.service, hosting)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def enabled(self) -> dict[str, bool]:
        return {each.node: each.enabled for each in await self.api.world.cell.nodes()}

    async def are_there(self, *nodes: str) -> None:
        async def there() -> bool:
            has = [await _has(self.api, each) for each in nodes]
            return all(has) and (await self.enabled()).keys() == {*nodes}

        await until(there)


def test_each_node_has_a_report_and_a_root_of_its_own(tmp_path) -> None:
    async def run() -> None:
        async with served(tmp_path) as api, Running(api, ONE, TWO) as agent:
            await agent.are_there(ONE, TWO)
            [root] = await api.world.placement.tree(TWO)
            assert (root.name, root.parent) == (TWO, None)
            assert await api.world.placement.tree(provider_uuid("a")) == []

    asyncio.run(run())


def test_guest_is_reported_with_the_node_that_it_was_claimed_on(tmp_path) -> None:
    async def run() -> None:
        async with served(tmp_path) as api, Running(api, ONE, TWO) as agent:
            await agent.are_there(ONE, TWO)
            await api.world.cell.add([instance("i", "a", node=TWO)])
            await api.world.reaches(ACTIVE, "i")

            async def counted() -> bool:
                reports = await api.world.cell.nodes()
                return {each.node: [*each.instances] for each in reports} == {ONE: [], TWO: ["i"]}

            await until(counted)

    asyncio.run(run())


def test_node_that_comes_later_is_added_and_one_that_is_gone_gets_nothing_more(tmp_path) -> None:
    async def run() -> None:
        async with served(tmp_path) as api, Running(api, ONE, TWO) as agent:
            await agent.are_there(ONE, TWO)
            agent.has(TWO, THREE)
            await agent.are_there(ONE, TWO, THREE)

            async def disabled() -> bool:
                return await agent.enabled() == {ONE: False, TWO: True, THREE: True}

            await until(disabled)

    asyncio.run(run())


def test_root_under_another_name_is_not_made_before_it_is_reported(tmp_path) -> None:
    async def run() -> None:
        async with served(tmp_path) as api:
            client = api.client(await api.token("a"))
            opened = await client.ask(Opening(host="a", nonce="1"))
            make = CreateProvider(ONE, ONE, None)
            with pytest.raises(AccessRefused, match="is no node that host a has reported"):
                await client.ask(WriteProviders(opened.session, ONE, (make,)))

    asyncio.run(run())


async def _has(api: Served, node: str) -> bool:
    return bool(await api.world.placement.tree(node)) and "VCPU" in await api.world.placement.inventories(
        node
    )
