"""An agent whose disk fails for a while goes on when it works again, and forgets nothing that is its own."""

import asyncio

import msgspec
import structlog.testing

from roost.agent.errors import StateUnusable
from roost.agent.persistent_state import MemoryState
from roost.agent.protocol.errors import EndpointUnavailable
from roost.agent.protocol.questions import WriteProviders
from roost.model.instance import ACTIVE
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from support.agents import FAST, Hosts, hosts, until
from support.cells import instance

OVER = "a trouble of a host is over"


class Disk(MemoryState):
    """A state that cannot be used while it is ``full``."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False
        self.refused: set[str] = set()

    async def keep_session(self, session):
        self._check("session")
        await super().keep_session(session)

    async def keep_applied(self, node, applied):
        self._check("applied")
        await super().keep_applied(node, applied)

    async def keep_token(self, token):
        self._check("token")
        await super().keep_token(token)

    def _check(self, what: str) -> None:
        if self.full:
            self.refused.add(what)
            raise StateUnusable("no space left on device")


def test_disk_that_was_full_ends_nothing_of_an_agent(tmp_path) -> None:
    """Polls, reports of providers and the renewal of tokens go on when it has room again."""

    async def run() -> None:
        async with hosts(tmp_path) as world:
            disk = world.states["a"] = Disk()
            amounts = [4]
            world.a.update_provider_tree = lambda tree, node, allocations=None: tree.update_inventory(
                node, {"VCPU": Inventory(amounts[0])}
            )
            times = msgspec.structs.replace(FAST, token=0.05)
            with structlog.testing.capture_logs() as logs:
                async with world.running(times=times) as hosting:
                    disk.full = True
                    amounts[0] = 8
                    await until(lambda: disk.refused >= {"session", "applied", "token"})
                    disk.full = False
                    tokens = disk.tokens
                    await until(lambda: disk.tokens != tokens)

                    async def is_reported() -> bool:
                        found = await world.placement.inventories(provider_uuid("a"))
                        return found["VCPU"].total == 8

                    await until(is_reported)
                    await world.cell.add([instance()])
                    await world.reaches(ACTIVE)
                    assert hosting.agents["a"].agent.session is not None
                    await until(lambda: len([each for each in logs if each["event"] == OVER]) >= 3)
            # Each is told once, however many polls it fails, and once when it is over.
            troubles = [
                "a host cannot report to placement",
                "the state of a host cannot be kept",
                "the token of a host is renewed later",
            ]
            assert sorted(each["event"] for each in logs if "no space" in each.get("error", "")) == troubles
            over = [each for each in logs if each["event"] == OVER]
            assert sorted(each["trouble"] for each in over) == troubles
            assert {each["log_level"] for each in over} == {"warning"}

    asyncio.run(run())


def test_provider_whose_making_had_no_answer_is_the_agents_own(tmp_path) -> None:
    """It was kept before it was made, so it is deleted when the host has it no more."""

    async def run() -> None:
        async with hosts(tmp_path) as world:
            has_child = False

            def update(tree, node, allocations=None) -> None:
                tree.update_inventory(node, {"VCPU": Inventory(4)})
                if has_child:
                    tree.put_child("a-child", node)
                elif "a-child" in tree:
                    tree.remove("a-child")

            async def number() -> int:
                return len(await world.placement.tree(provider_uuid("a")))

            async def is_there() -> bool:
                return await number() == 2

            async def is_gone() -> bool:
                return await number() == 1

            endpoint = Losing(world)
            world.a.update_provider_tree = update
            async with world.running(endpoint):
                has_child = endpoint.loses = True
                await until(is_there)
                await until(lambda: not endpoint.loses)
                has_child = False
                await until(is_gone)

    asyncio.run(run())


class Losing:
    """An endpoint that loses the answer to host a's next write of providers."""

    def __init__(self, world: Hosts) -> None:
        self._world = world
        self.loses = False

    async def ask(self, question):
        answer = await self._world.service.ask(question)
        if self.loses and isinstance(question, WriteProviders) and question.session.host == "a":
            self.loses = False
            raise EndpointUnavailable("the answer was lost")
        return answer
