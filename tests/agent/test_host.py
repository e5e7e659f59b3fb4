"""The agent of a host against a real endpoint: an attempt is built once, no guest ends without an order."""

import asyncio
from collections.abc import Collection
from typing import Any

import msgspec
import pytest
import structlog.testing

from roost.agent.errors import BuildFailed
from roost.agent.host import NOT_TAKEN
from roost.agent.host_session import EMPTY_LIST, OTHER_DATABASE, TAKEN_BACK
from roost.agent.persistent_state import KeptSession
from roost.agent.protocol.errors import EndpointUnavailable, LateMessage, SessionLost, SessionTaken
from roost.agent.protocol.questions import Confirm, Opening, Poll
from roost.agent.protocol.types import SessionKey
from roost.agent.workload import OVERTIME
from roost.conductor.agent_endpoint.endpoint import EndpointTimes
from roost.conductor.agent_endpoint.service import AgentService
from roost.model.instance import (
    ABANDONED,
    ACTIVE,
    ASSIGNED,
    DELETING,
    DESTROYED,
    FAILED,
    LOST,
    AttemptKey,
    DestroyOrder,
    Instance,
)
from roost.model.names import provider_uuid
from roost.state.cell_database.building import fail_attempts
from roost.state.cell_database.host_admission import HeldHost, accept_held_host, read_held_hosts
from roost.state.cell_database.host_work import give_orders, work_of_hosts
from roost.storage.identity import set_incarnation
from support.agents import FAST, Hosts, hosts, until
from support.cells import NOW, built, failed, instance, selection


def test_assigned_instance_is_prepared_confirmed_started_and_reported(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            await world.cell.add([instance("i"), instance("j", "b"), instance("k", "not ours")])
            for uuid in "ij":
                await world.reaches(ACTIVE, uuid)
            assert await world.state("k") == ASSIGNED
            assert (world.a.there, world.b.there) == ({"i": 1}, {"j": 1})

    asyncio.run(run())


def test_hosts_report_their_nodes_and_providers(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            [a, b] = await world.cell.nodes()
            assert (a.host, a.node, a.cell) == ("a", provider_uuid("a"), "cell1")
            assert (b.host, a.metrics) == ("b", {"heat": 40.0})
            assert "VCPU" in await world.placement.inventories(provider_uuid("b"))

    asyncio.run(run())


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (BuildFailed("No more IP addresses"), FAILED, "No more IP addresses"),
        (ZeroDivisionError("division by zero"), FAILED, "ZeroDivisionError: division by zero"),
        (BuildFailed("no \udc80 image\0"), FAILED, "no \ufffd image\ufffd"),
        (BuildFailed("no such image", "ImageNotFound", retryable=False), ABANDONED, "no such image"),
    ],
    ids=["failure", "defect of the driver", "odd text", "no other host can cure it"],
)
def test_whatever_goes_wrong_is_the_reason(tmp_path, error, state, reason) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            world.a.failure = error
            await world.cell.add([instance()])
            await world.reaches(state)
            [fault] = await world.cell.faults_of("i")
            assert (fault.host, fault.reason) == ("a", reason)
            await until(lambda: failed_builds(world, 1))
            assert world.a.there == {}

    asyncio.run(run())


async def failed_builds(world: Hosts, number: int) -> bool:
    [a, _] = await world.cell.nodes()
    return a.failed_builds == number


def test_attempt_that_takes_too_long_fails_and_is_ended(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path, build=0.3) as world, world.running():
            world.a.go.clear()
            await world.cell.add([instance()])
            await world.reaches(FAILED)
            [fault] = await world.cell.faults_of("i")
            assert fault.reason == "the build took longer than 0.3 seconds"
            assert world.a.calls[-1] == "destroy i"
            assert OVERTIME == "TimedOut"

    asyncio.run(run())


def test_next_attempt_on_the_same_host_is_built_again(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            world.a.failure = BuildFailed("no disk")
            await world.cell.add([instance()])
            await world.reaches(FAILED)
            world.a.failure = None
            await world.cell.reassign("i", 1, selection("a"), ())
            await world.reaches(ACTIVE)
            assert world.a.there == {"i": 2}
            assert [call for call in world.a.calls if call.startswith("b")] == [
                "build i 1",
                "build i 2",
                "built i",
            ]

    asyncio.run(run())


def test_build_that_hangs_does_not_block_its_deletion(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            world.a.go.clear()
            await world.cell.add([instance()])
            await until(lambda: world.a.calls)
            await world.cell.delete(["i"])
            await world.reaches(DESTROYED)
            assert world.a.there == {}
            assert "built i" not in world.a.calls

    asyncio.run(run())


def test_driver_that_cannot_take_up_its_guests_at_once_keeps_no_other_host(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            recover, failures = world.a.recover, [RuntimeError("not yet"), RuntimeError("not yet")]

            async def recovers(instances: Collection[Instance]) -> None:
                if failures:
                    raise failures.pop()
                await recover(instances)

            world.a.recover = recovers
            async with world.running():
                await world.cell.add([instance("i"), instance("j", host="b", node="node-b")])
                await world.reaches(ACTIVE, "j")
                await world.reaches(ACTIVE, "i")
            assert failures == []

    asyncio.run(run())


def test_destruction_that_fails_is_tried_again(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            await world.cell.add([instance()])
            await world.reaches(ACTIVE)
            world.a.destroy_failures = 1
            await world.cell.delete(["i"])
            await world.reaches(DESTROYED)
            assert world.a.calls[-2:] == ["destroy i", "destroy i"]

    asyncio.run(run())


def test_order_to_destroy_an_earlier_attempt_leaves_a_later_guest_alone(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            await world.cell.add([instance(attempt=3)])
            await world.reaches(ACTIVE)
            order = DestroyOrder("i", 2, "a")
            await world.cell.database.write(give_orders([order], NOW))

            async def acknowledged() -> bool:
                return not (await world.cell.read(work_of_hosts(("a",)))).orders

            await until(acknowledged)
            assert world.a.there == {"i": 3}
            assert await world.state() == ACTIVE

    asyncio.run(run())


def test_guests_that_the_cell_does_not_know_are_left_alone(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            world.a.there["foreign"] = 1
            await world.cell.add([instance("i", state=ACTIVE), instance("j", state=DELETING)])
            async with world.running():
                await world.reaches(DESTROYED, "j")
                assert world.a.there == {"foreign": 1, "i": 1}
                assert "destroy foreign" not in world.a.calls

    asyncio.run(run())


def test_guest_that_vanished_is_lost_until_it_is_there_again(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            await world.cell.add([instance()])
            await world.reaches(ACTIVE)
            del world.a.there["i"]
            await world.reaches(LOST)
            world.a.there["i"] = 1
            await world.reaches(ACTIVE)

    asyncio.run(run())


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


def test_attempt_that_is_over_is_not_started(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world, world.running():
            world.a.go.clear()
            await world.cell.add([instance(alternates="b")])
            await until(lambda: "build i 1" in world.a.calls)
            await world.cell.report([failed(reason="an operator ended it")])
            await world.cell.reassign("i", 1, selection("b"), ())
            await world.reaches(ACTIVE)
            world.a.go.set()
            await until(lambda: world.a.calls[-1] == "destroy i")
            assert (world.a.there, world.b.there) == ({}, {"i": 2})
            assert await world.state() == ACTIVE

    asyncio.run(run())


def test_second_agent_of_a_host_is_refused_and_a_restarted_one_is_not(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            async with world.running() as hosting:
                await world.cell.add([instance()])
                await world.reaches(ACTIVE)
                assert hosting.agents["a"].agent.held is None
            second = Hosts(world.cell, world.placement)
            second.a.there = dict(world.a.there)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3), second.running():
                    pass
            assert not [call for call in second.a.calls if call.startswith(("build", "destroy"))]
            async with world.running() as hosting:
                assert hosting.agents["a"].agent.polled
                await world.cell.delete(["i"])
                await world.reaches(DESTROYED)

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
                    await until(lambda: kept(world).refused == {"n": "the name n is that of another host"})
                    # An older cell does not tell it: nothing is known then.
                    endpoint.refused = None
                    await asyncio.sleep(0.3)
                    assert kept(world).refused
                    endpoint.refused = {}
                    await until(lambda: kept(world).refused == {})
            told = [each["event"] for each in logs if each.get("trouble", each["event"]) == NOT_TAKEN]
            assert told == [NOT_TAKEN, "a trouble of a host is over"]
            assert world.states["b"].session.refused == {}

    asyncio.run(run())


def kept(world: Hosts) -> KeptSession:
    return world.states["a"].session


async def nothing_is_done(world: Hosts, reason: str) -> None:
    async with world.running() as hosting:
        await until(lambda: hosting.agents["a"].agent.held == reason)
        await world.cell.delete(["i"])
        await world.cell.add([instance("new")])

        async def is_disabled() -> bool:
            [a, *_] = await world.cell.nodes()
            return not a.enabled

        await until(is_disabled)
        await asyncio.sleep(0.1)
        assert world.a.there == {"i": 1}
        assert await world.state("new") == ASSIGNED
    assert kept(world).held == reason


def test_restored_database_is_not_obeyed_until_an_operator_accepts_it(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            async with world.running():
                await world.cell.add([instance()])
                await world.reaches(ACTIVE)
            await world.cell.database.write(lambda connection: set_incarnation(connection, 2))
            await nothing_is_done(world, OTHER_DATABASE)
            world.states["a"].session = KeptSession(nonces=kept(world).nonces, accepted=True)
            async with world.running():
                await world.reaches(DESTROYED)
                await world.reaches(ACTIVE, "new")

    asyncio.run(run())


def test_operator_accepts_a_restored_database_through_the_cell(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            async with world.running():
                await world.cell.add([instance()])
                await world.reaches(ACTIVE)
            await world.cell.database.write(lambda connection: set_incarnation(connection, 2))
            async with world.running() as hosting:
                await until(lambda: held(world))
                assert (await held(world))["a"].reason == OTHER_DATABASE
                await world.cell.add([instance("new")])
                assert await world.cell.write(accept_held_host("a"))
                assert not await world.cell.write(accept_held_host("unknown"))
                await world.reaches(ACTIVE, "new")
                assert hosting.agents["a"].agent.held is None
                assert "a" not in await held(world)
            # What was accepted is not doubted at the next start.
            async with world.running() as hosting:
                assert hosting.agents["a"].agent.held is None

    asyncio.run(run())


async def held(world: Hosts) -> dict[str, HeldHost]:
    return await world.cell.read(read_held_hosts())


def test_late_word_of_a_held_agent_holds_no_host_that_goes_on(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            # It believes for so long what it has stored of a session.
            service = AgentService(world.cell, world.placement, times=EndpointTimes(poll=600.0))
            first = await service.ask(Opening(host="a", nonce="n1", held=OTHER_DATABASE))
            late = [
                Poll(session=first.session, counter=number, held=OTHER_DATABASE, wait_seconds=0.0)
                for number in (1, 2)
            ]
            await service.ask(late[0])
            assert list(await held(world)) == ["a"]
            await world.cell.write(accept_held_host("a"))
            await service.ask(Opening(host="a", nonce="n2", previous=("n1",)))
            with pytest.raises(SessionLost):
                await service.ask(late[1])
            assert await held(world) == {}

    asyncio.run(run())


def test_database_that_was_taken_back_is_not_obeyed(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            async with world.running():
                await world.cell.add([instance()])
                await world.reaches(ACTIVE)
            position = kept(world).position
            assert position is not None
            ahead = msgspec.structs.replace(position, counter=position.counter + 1000)
            world.states["a"].session = msgspec.structs.replace(kept(world), position=ahead)
            await nothing_is_done(world, TAKEN_BACK)

    asyncio.run(run())


def test_empty_cell_is_not_believed_where_guests_are(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            world.a.there["i"] = 1
            await nothing_is_done(world, EMPTY_LIST)

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


def test_host_that_placement_refuses_keeps_no_other_from_starting(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            await world.placement.ensure_provider("somebody-else", "a")
            async with world.running() as hosting:
                assert hosting.agents["b"].agent.providers.registered
                assert not hosting.agents["a"].agent.providers.registered
                await world.placement.delete_provider("somebody-else")
                await until(lambda: hosting.agents["a"].agent.providers.registered)

    asyncio.run(run())


def test_stale_session_is_answered_nothing(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as world:
            first = await world.service.ask(Opening(host="a", nonce="n1"))
            second = await world.service.ask(Opening(host="a", nonce="n2", previous=("n1",)))
            assert second.session == SessionKey("a", "n2", first.session.epoch + 1)
            assert second.position > first.position
            again = await world.service.ask(Opening(host="a", nonce="n2", previous=("n1",)))
            assert again.session == second.session
            await world.cell.add([instance()])
            with pytest.raises(SessionLost):
                await world.service.ask(Poll(session=first.session, counter=9))
            with pytest.raises(SessionLost):
                await world.service.ask(Confirm(first.session, "i", 1))
            with pytest.raises(SessionTaken, match="free when that agent"):
                await world.service.ask(Opening(host="a", nonce="n3"))
            answer = await world.service.ask(Poll(session=second.session, counter=2))
            assert [order.key for order in answer.orders] == [("i", 1)]
            with pytest.raises(LateMessage):
                await world.service.ask(Poll(session=second.session, counter=2, results=(built(),)))
            known = Poll(session=second.session, counter=3, building=(("i", 1),))
            assert (await world.service.ask(known)).orders == ()

    asyncio.run(run())
