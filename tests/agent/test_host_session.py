"""The states of a host's agent."""

import asyncio

import msgspec
import pytest

from roost.agent.host_session import (
    EMPTY_LIST,
    OTHER_DATABASE,
    TAKEN_BACK,
    TRANSITIONS,
    SessionEvent,
    SessionState,
    why_doubted,
)
from roost.agent.persistent_state import KeptSession
from roost.agent.protocol.errors import LateMessage, SessionLost, SessionTaken
from roost.agent.protocol.questions import Confirm, Opening, Poll
from roost.agent.protocol.types import HistoryPosition, SessionKey
from roost.conductor.agent_endpoint.endpoint import EndpointTimes
from roost.conductor.agent_endpoint.service import AgentService
from roost.model.instance import (
    ACTIVE,
    ASSIGNED,
    DESTROYED,
)
from roost.state.cell_database.host_admission import HeldHost, accept_held_host, read_held_hosts
from roost.storage.identity import set_incarnation
from support.agents import Hosts, hosts, until
from support.cells import built, instance

BEFORE = HistoryPosition("database", 1, 2, 3)


@pytest.mark.parametrize("state", SessionState)
@pytest.mark.parametrize("event", SessionEvent)
def test_each_event_changes_one_thing_in_each_state(state: SessionState, event: SessionEvent) -> None:
    """Two polls of a host are under way at times: no event may find a state that does not know it."""
    after = TRANSITIONS[state][event]
    has_session = {SessionEvent.OPENED: True, SessionEvent.ENDED: False}.get(event, state.has_session)
    is_held = {SessionEvent.DOUBTED: True, SessionEvent.ACCEPTED: False}.get(event, state.is_held)
    assert (after.has_session, after.is_held) == (has_session, is_held)


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        (None, BEFORE, None),
        (BEFORE, BEFORE, None),
        (BEFORE, HistoryPosition("database", 1, 3, 0), None),
        (BEFORE, HistoryPosition("database", 1, 2, 2), TAKEN_BACK),
        (BEFORE, HistoryPosition("other", 1, 9, 9), OTHER_DATABASE),
        (BEFORE, HistoryPosition("database", 2, 9, 9), OTHER_DATABASE),
    ],
)
def test_positions_of_one_database_rise(
    before: HistoryPosition | None, now: HistoryPosition, reason: str | None
) -> None:
    assert why_doubted(before, now) == reason


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
