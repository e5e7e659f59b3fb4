"""The polls of a host: lost answers cost no work, results wait for no poll, and refusals are told once."""

import asyncio
from typing import Any

import msgspec
import structlog.testing

from roost.agent.host import NOT_TAKEN
from roost.agent.protocol.errors import EndpointUnavailable
from roost.agent.protocol.questions import Confirm, Opening, Poll
from roost.agent.protocol.types import EMPTY, Order, PowerResult, StartGuest, StopGuest, digest_of
from roost.model.instance import (
    ACTIVE,
    DESTROYED,
    AttemptKey,
)
from roost.state.cell_database.building import fail_attempts
from roost.state.cell_database.host_work import work_of_hosts
from support.agents import FAST, Hosts, hosts, until
from support.cells import NOW, instance


class Through:
    """An endpoint behind a network: ``lost`` answers are counted down by type of question."""

    def __init__(self, world: Hosts) -> None:
        self._world = world
        self.lost: dict[type, int] = {}
        self.asked: list[object] = []
        self.out = False

    async def ask(self, question):
        self.asked.append(question)
        if self.out:
            raise EndpointUnavailable("no route")
        answer = await self._world.service.ask(question)
        if self.lost.get(type(question), 0):
            self.lost[type(question)] -= 1
            raise EndpointUnavailable("the answer was lost")
        return answer


def test_lost_answers_cost_time_and_no_work(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            network = Through(world)
            network.lost = {Opening: 2, Poll: 6, Confirm: 2}
            await world.cell.add([instance()])
            async with world.running(network):
                await world.reaches(ACTIVE)
            assert world.a.calls[0] == "recover"
            assert world.a.calls[1:] == ["build i 1", "built i"]

    asyncio.run(run())


def polls_of(network: Through, host: str = "a") -> list[Poll]:
    """The polls that a host has sent."""
    return [each for each in network.asked if isinstance(each, Poll) and each.session.host == host]


def test_results_of_what_is_quickly_done_cost_no_message_of_their_own(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            network = Through(world)
            async with world.running(network, msgspec.structs.replace(FAST, gather=60.0)):
                await world.cell.add([instance("i"), instance("j")])
                for uuid in "ij":
                    await world.reaches(ACTIVE, uuid)
                await world.cell.delete(["i", "j"])
                for uuid in "ij":
                    await world.reaches(DESTROYED, uuid)
            assert {each.instance for poll in polls_of(network) for each in poll.results} == {"i", "j"}
            assert all(poll.wants_orders for poll in polls_of(network))

    asyncio.run(run())


def test_a_long_build_keeps_no_order_and_no_result_waiting(tmp_path) -> None:
    """Polls wait for a minute: what comes before is by an order that arrives, or by a poll of its own."""

    async def run() -> None:
        async with hosts(tmp_path, build=240.0, poll=60.0) as world:
            network = Through(world)
            times = msgspec.structs.replace(FAST, gather=0.05, poll=60.0)
            async with world.running(network, times):
                world.a.go.clear()
                await world.cell.add([instance("i")])
                await until(lambda: world.a.calls[-1] == "build i 1")
                await world.cell.add([instance("j")])
                await until(lambda: world.a.calls[-1] == "build j 1")
                before = len(polls_of(network))
                await until(lambda: len(polls_of(network)) > before)
                world.a.go.set()
                for uuid in "ij":
                    await world.reaches(ACTIVE, uuid)
            assert world.a.there == {"i": 1, "j": 1}
            assert any(poll.results and not poll.wants_orders for poll in polls_of(network))

    asyncio.run(run())


def test_host_that_is_cut_off_during_its_build_does_not_start_it(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path, build=0.5) as world:
            network = Through(world)
            world.a.go.clear()
            async with world.running(network):
                await world.cell.add([instance()])
                await until(lambda: "build i 1" in world.a.calls)
                network.out = True
                await world.cell.write(fail_attempts((AttemptKey("i", 1),), "silent", NOW, "cell1"))
                world.a.go.set()
                await until(lambda: world.a.calls[-1] == "destroy i")
                network.out = False

                async def is_acknowledged() -> bool:
                    return not (await world.cell.read(work_of_hosts(("a",)))).orders

                await until(is_acknowledged)
            assert "built i" not in world.a.calls

    asyncio.run(run())


class Refusing:
    """An endpoint whose answers to polls of host a tell that the reports of nodes are refused."""

    def __init__(self, world: Hosts) -> None:
        self._world = world
        self.refused: dict[str, str] | None = {"n": "the name n is that of another host"}

    async def ask(self, question: Any) -> Any:
        answer = await self._world.service.ask(question)
        if isinstance(question, Poll) and question.session.host == "a":
            return msgspec.structs.replace(answer, refused=self.refused)
        return answer


def test_an_agent_whose_node_is_refused_tells_it_once_and_keeps_it(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            endpoint = Refusing(world)
            with structlog.testing.capture_logs() as logs:
                async with world.running(endpoint):
                    await until(
                        lambda: (
                            world.states["a"].session.refused == {"n": "the name n is that of another host"}
                        )
                    )
                    # An older cell does not tell it: nothing is known then.
                    endpoint.refused = None
                    await asyncio.sleep(0.3)
                    assert world.states["a"].session.refused
                    endpoint.refused = {}
                    await until(lambda: world.states["a"].session.refused == {})
            told = [each["event"] for each in logs if each.get("trouble", each["event"]) == NOT_TAKEN]
            assert told == [NOT_TAKEN, "a trouble of a host is over"]
            assert world.states["b"].session.refused == {}

    asyncio.run(run())


def test_outage_of_the_endpoint_is_survived_and_nothing_is_built_again(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            network = Through(world)
            async with world.running(network):
                world.a.go.clear()
                await world.cell.add([instance()])
                await until(lambda: "build i 1" in world.a.calls)
                network.out = True
                asked = len(network.asked)
                await until(lambda: len(network.asked) > asked + 3)
                network.out = False
                world.a.go.set()
                await world.reaches(ACTIVE)
            assert world.a.calls == ["recover", "build i 1", "built i"]

    asyncio.run(run())


class Switching:
    """An endpoint whose answers bring host a an order that its poll does not know.

    The first answer to a poll with the result of an order is lost.
    """

    def __init__(self, world: Hosts) -> None:
        self._world = world
        self.order: Order | None = None
        self.loses = True
        self.told: list[Poll] = []
        self.polls: list[Poll] = []

    async def ask(self, question: Any) -> Any:
        answer = await self._world.service.ask(question)
        if not isinstance(question, Poll) or question.session.host != "a":
            return answer
        self.polls.append(question)
        if question.powered:
            self.told.append(question)
            if self.loses:
                self.loses = False
                raise EndpointUnavailable("the answer was lost")
            self.order = None
        if self.order is None or self.order.key in (*question.stopping, *question.starting):
            return answer
        return msgspec.structs.replace(answer, orders=(*answer.orders, self.order))


def test_results_of_stops_and_starts_are_brought_until_an_answer_has_come(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            endpoint = Switching(world)
            async with world.running(endpoint):
                await world.cell.add([instance()])
                await world.reaches(ACTIVE)
                endpoint.order = StopGuest("i", 1)
                # A poll beside the one that waits may carry it as well.
                await until(lambda: len(endpoint.told) >= 2)
                await until(lambda: not endpoint.polls[-1].powered)
                assert (world.a.there, world.a.stopped) == ({}, {"i": 1})
                for poll in endpoint.told:
                    assert (poll.powered, poll.digest) == ((PowerResult("i", 1, runs=False),), EMPTY)
                endpoint.told.clear()
                endpoint.order = StartGuest(instance())
                await until(lambda: endpoint.told)
                await until(lambda: not endpoint.polls[-1].powered)
                for poll in endpoint.told:
                    assert poll.powered == (PowerResult("i", 1, runs=True),)
                    assert poll.digest == digest_of([("i", 1)])
            assert world.a.calls == ["recover", "build i 1", "built i", "stop i", "start i again"]

    asyncio.run(run())
