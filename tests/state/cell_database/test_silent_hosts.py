"""Fences of hosts and the proofs that silent ones are dead, on every database."""

import asyncio

import pytest
from msgspec.structs import replace

from roost.agent.protocol.types import SessionKey
from roost.conductor.agent_endpoint.sessions import OpenSession, close_session
from roost.model.fence import Fence
from roost.model.instance import ACTIVE, LOST, POWERING_ON, STOPPED, Requester
from roost.model.move import DeathProof, Move, MoveRefused, SessionStamp
from roost.state.cell_database import SCHEMA
from roost.state.cell_database.arrivals import AddInstances, find_instances
from roost.state.cell_database.fenced_guests import STOPPED_BY_FENCE, start_fenced
from roost.state.cell_database.history import enter_state
from roost.state.cell_database.host_fences import ToldFence, read_fences
from roost.state.cell_database.host_work import SESSION
from roost.state.cell_database.hosts import describe_hosts, remove_host_row
from roost.state.cell_database.moves import begin_move
from roost.state.cell_database.silent_hosts import (
    DEAD,
    FENCING,
    UNPROVED,
    SilentHost,
    begin_command,
    forget_silent,
    note_dead,
    note_unproved,
    read_outlook,
    read_silent_hosts,
    share,
)
from roost.state.leases import leases_of_kind, vacate_leases
from roost.storage import Database, transaction
from support.cells import NOW, instance, selection
from support.clouds import spec
from support.upgrading import upgrade_empty

FENCE = Fence(60.0, 20.0, guarded=True)
BY = Requester("evacuation", "", "req")


def opening(host, nonce, fence=None, previous=()):
    return OpenSession(host=host, nonce=nonce, previous=previous, service_version=9, at=NOW, fence=fence)


@transaction
def told(connection, host):
    return read_fences(connection, (host,)).get(host)


@transaction
def start(connection, fenced):
    return start_fenced(connection, fenced, NOW)


@transaction
def enter(connection, uuids, state):
    enter_state(connection, uuids, state, NOW)


class Cell:
    """A cell's database, and what a test does with it."""

    def __init__(self, database):
        self.database = database

    async def session(self, host):
        return next(each for each in await self.database.read(leases_of_kind(SESSION)) if each.host == host)

    async def fall_silent(self, host):
        """The session of a host is taken, as it stands still."""
        await self.database.write(vacate_leases([await self.session(host)]))

    async def row(self, host, state=UNPROVED, words="why", **named):
        session = await self.session(host)
        return SilentHost(
            host=host,
            epoch=session.epoch,
            counter=session.counter,
            state=state,
            words=words,
            conductor="super",
            at=NOW,
            **named,
        )

    async def states(self):
        return {host: row.state for host, row in (await self.database.read(read_silent_hosts())).items()}

    async def add(self, uuid, host, state=ACTIVE):
        held = replace(selection(host), generation=1)
        there = instance(uuid, host, state=state, selection=held, spec=spec(1), epoch=1)
        await self.database.write(AddInstances((there,), NOW))

    async def state(self, uuid):
        return (await self.database.read(find_instances((uuid,))))[uuid].state


@pytest.fixture
def play(database_url):
    """Returns a function that runs a script on an empty database of a cell."""

    def run(script):
        async def whole():
            database = Database(database_url)
            upgrade_empty(SCHEMA, database)
            try:
                await script(Cell(database))
            finally:
                await database.close()

        asyncio.run(whole())

    return run


def test_a_fence_is_in_force_until_its_session_is_closed_or_followed_by_another(play):
    async def script(cell):
        database = cell.database
        await database.write(opening("a", "n1", FENCE))
        fence = await database.read(told("a"))
        assert fence == ToldFence(1, FENCE)
        assert fence.is_of(await cell.session("a"))
        assert not fence.was_cut_off(await cell.session("a"))
        await cell.fall_silent("a")
        assert fence.was_cut_off(await cell.session("a"))
        assert (await database.read(describe_hosts(("a",))))["a"].fence == FENCE
        # The next agent of the host has none.
        opened = await database.write(opening("a", "n2"))
        assert await database.read(told("a")) == ToldFence(opened.epoch, None)
        assert not fence.is_of(await cell.session("a"))
        assert not fence.was_cut_off(await cell.session("a"))
        await cell.fall_silent("a")
        assert not fence.was_cut_off(await cell.session("a"))
        # One that is stopped in order is not cut off.
        opened = await database.write(opening("a", "n3", FENCE))
        await database.write(close_session(SessionKey("a", "n3", opened.epoch)))
        assert not (await database.read(told("a"))).was_cut_off(await cell.session("a"))

    play(script)


def test_active_and_lost_guests_that_a_fence_has_stopped_are_started_again(play):
    async def script(cell):
        for uuid, state in (("active", ACTIVE), ("lost", LOST), ("stopped", STOPPED), ("other", ACTIVE)):
            await cell.add(uuid, "b" if uuid == "other" else "a")
            if state != ACTIVE:
                await cell.database.write(enter((uuid,), state))
        fenced = {"a": {"active": 1, "lost": 1, "stopped": 1, "other": 1, "unknown": 1}}
        assert await cell.database.write(start(fenced)) == {"a": ["active", "lost"]}
        for uuid, state in (("active", POWERING_ON), ("lost", POWERING_ON), ("stopped", STOPPED)):
            assert await cell.state(uuid) == state
        assert await cell.state("other") == ACTIVE
        found = await cell.database.read(find_instances(("active",)))
        assert found["active"].reason == STOPPED_BY_FENCE
        # Told again, and a guest of another attempt.
        assert await cell.database.write(start({"a": {"active": 1}})) == {}
        assert await cell.database.write(start({"b": {"other": 2}})) == {}

    play(script)


def test_a_proof_counts_until_the_session_is_opened_again(play):
    async def script(cell):
        database = cell.database
        await database.write(opening("a", "n1", FENCE))
        await cell.add("i", "a")
        row = await cell.row("a", DEAD, "fenced", kind="fence")
        # Its session is held.
        assert await database.write(note_dead(row)) == "the host is back"
        assert not await database.write(note_unproved(await cell.row("a")))
        await cell.fall_silent("a")
        assert await database.write(note_unproved(await cell.row("a")))
        assert not await database.write(note_unproved(await cell.row("a")))
        proof = DeathProof("fence", "fenced", NOW, (await cell.row("a")).session, by="super")
        begin = begin_move(uuid="m", instance="i", kind="evacuate", by=BY, at=NOW, proof=proof)
        assert isinstance(await database.write(begin), MoveRefused)
        row = await cell.row("a", DEAD, "fenced", kind="fence")
        assert await database.write(note_dead(row)) is True
        assert await database.write(note_dead(row)) is False
        assert not await database.write(note_unproved(await cell.row("a")))
        assert (await database.read(describe_hosts(("a",))))["a"].silence == row
        stale = replace(proof, stamp=SessionStamp("", 1, 7))
        other = begin_move(uuid="m", instance="i", kind="evacuate", by=BY, at=NOW, proof=stale)
        assert isinstance(await database.write(other), MoveRefused)
        begun = await database.write(begin)
        assert isinstance(begun, Move)
        assert (begun.proof.kind, begun.proof.by, begun.proof.stamp) == ("fence", "super", row.session)
        outlook = await database.read(read_outlook(()))
        assert [each.instance for each in outlook.leaving["a"]] == ["i"]
        await database.write(opening("a", "n2", FENCE))
        assert (await database.read(describe_hosts(("a",))))["a"].silence is None
        await database.write(forget_silent((row,)))
        assert await cell.states() == {}

    play(script)


def test_one_command_at_a_time_powers_a_host_off(play):
    async def script(cell):
        database = cell.database
        await database.write(opening("a", "n1"))
        await cell.fall_silent("a")
        fencing = await cell.row("a", FENCING, "a command")
        assert await database.write(begin_command(fencing, 0)) == 1
        # Another conductor knows of none yet.
        assert await database.write(begin_command(fencing, 0)) is None
        assert not await database.write(note_unproved(await cell.row("a", words="no")))
        # It stands still, and the other one begins a second command.
        assert await database.write(begin_command(fencing, 1)) == 2
        late = await cell.row("a", DEAD, "off", kind="command", tries=1)
        assert await database.write(note_dead(late)) == "another conductor has taken the host"
        assert not await database.write(note_unproved(await cell.row("a", words="it failed", tries=1)))
        assert await cell.states() == {"a": FENCING}
        assert await database.write(note_unproved(await cell.row("a", words="it failed", tries=2)))
        assert await database.write(begin_command(fencing, 2)) == 3
        assert await database.write(note_dead(replace(late, tries=3))) is True
        assert await database.write(remove_host_row("a", await cell.session("a"))) is None
        assert await cell.states() == {}

    play(script)


def test_at_most_a_tenth_of_the_hosts_are_taken_for_dead_at_once(play):
    assert [share(number) for number in (1, 9, 10, 19, 20, 105)] == [1, 1, 1, 1, 2, 10]

    async def script(cell):
        database = cell.database
        for host in ("a", "b", "c"):
            await database.write(opening(host, f"of {host}", FENCE))
            await cell.add(f"on-{host}", host)
            if host != "c":
                await cell.fall_silent(host)
        for host, expected in (("a", True), ("b", "evacuated by themselves now, and at most 1 of 3")):
            noted = await database.write(note_dead(await cell.row(host, DEAD, "fenced", kind="fence")))
            assert noted is True if expected is True else expected in noted
        begun = await database.write(begin_command(await cell.row("b", FENCING, "a command"), 0))
        assert "at most 1 of 3" in begun
        # The other host is back: it does not count any more.
        await database.write(opening("a", "again", FENCE))
        assert await database.write(note_dead(await cell.row("b", DEAD, "fenced", kind="fence"))) is True

    play(script)
