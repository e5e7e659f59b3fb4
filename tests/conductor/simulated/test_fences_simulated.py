"""Hosts that are cut off, frozen or dead, and evacuated by themselves: step by step, and drawn.

Where a rule keeps a guest from running twice, or a host from being evacuated without need, the schedule is
played without the rule too, and must break a promise then.
"""

from contextlib import contextmanager

import pytest

from roost.agent.fence import AgentFence
from roost.conductor.agent_endpoint.sessions import close_session
from roost.conductor.evacuation import dead_hosts, judgement, silence
from roost.conductor.evacuation.judgement import UNGUARDED as UNGUARDED_FENCE
from roost.conductor.evacuation.options import EvacuationOptions
from roost.conductor.moves import departures
from roost.model.fence import Fence
from roost.model.instance import ACTIVE, SHELVED, STOPPED
from roost.model.move_states import CLEANING, DONE, FAILED_MOVE, SWITCHED
from roost.model.operator_word import SaidWord, Subject
from roost.model.spec import Flavor
from roost.state.api_database.operator_words import say_words
from roost.state.cell_database.history import read_history
from roost.state.cell_database.host_work import SESSION
from roost.state.cell_database.silent_hosts import read_silent_hosts
from roost.state.leases import Standstill, leases_of_kind
from support.seeds import nightly_seed
from support.simulation.agents import DriverService
from support.simulation.cloud_world import CloudWorld
from support.simulation.kinds import CLOUD_KINDS
from support.simulation.network import BrokenPromise
from support.simulation.process import CELL, WATCHDOG
from support.simulation.promises import promise
from support.simulation.scripted import NONE, Scripted, found
from support.simulation.seeds import simulate

BIG = Flavor("big", 2, 1024)
ONE = "instance0"
SCHEDULES = 12
"""Of each kind, in every run."""

AFTER = 100.0
GUARDED = Fence(60.0, 20.0, guarded=True)
UNGUARDED = Fence(60.0, 20.0)


class Cloud(Scripted):
    """A cloud of a cell whose dead hosts are evacuated by themselves."""

    evacuations = EvacuationOptions(after=AFTER)


class Draining(Cloud):
    """The same with drains that move instances."""

    drains = True


class WithBmcs(Scripted):
    """The same with a command that powers hosts off."""

    evacuations = EvacuationOptions(after=AFTER, command=("off",))


class Trusting(Scripted):
    """The same with fences that no watchdog guards."""

    evacuations = EvacuationOptions(after=AFTER, unguarded=True)


@contextmanager
def cloud_of_one(faults=NONE, seed=1, world=Cloud, fence=GUARDED, **named):
    """A cloud of a cell with three hosts, and one instance."""
    with world(faults, seed, **{"cells": ("c1",), "hosts": 3, "fence": fence} | named) as cloud:
        cloud.request(ONE)
        cloud.wait_for(ONE, ACTIVE)
        yield cloud


def agent_of(cloud, uuid=ONE):
    """The agent of the host of an instance."""
    return cloud.process(f"{cloud.row(uuid).host}-agent")


def sessions(cloud):
    """The sessions of all hosts of the cell."""
    return {each.host: each for each in cloud.read("cell/c1", leases_of_kind(SESSION))}


def wait_for_sign(cloud, host):
    """Wait until the cell's database has the next sign of life of a host."""
    before = sessions(cloud)[host].counter
    while sessions(cloud)[host].counter == before:
        cloud.wait(0.1)


def evacuations(cloud):
    """All evacuations of the cell."""
    return [each for each in cloud.moves("c1").values() if each.kind == "evacuate"]


def wait_for_evacuation(cloud, seconds=200.0):
    """Wait until the instance runs on another host. Returns the move."""
    until = cloud.loop.now + seconds
    while not any(each.state in (CLEANING, DONE) for each in evacuations(cloud)):
        if cloud.loop.now > until:
            raise BrokenPromise(f"nothing is evacuated: {cloud.read('cell/c1', read_silent_hosts())}")
        cloud.wait(1.0)
    return next(each for each in evacuations(cloud) if each.state in (CLEANING, DONE))


def test_a_host_that_is_cut_off_stops_its_guests_and_is_evacuated():
    with cloud_of_one() as cloud:
        agent, host = agent_of(cloud), cloud.row(ONE).host
        cloud.cut(agent.name, CELL, seconds=400.0)
        cloud.wait(59.0)
        assert cloud.guests.running(ONE) == [(host, 1)]
        cloud.wait(10.0)
        assert cloud.guests.running(ONE) == []
        move = wait_for_evacuation(cloud)
        assert (move.proof.kind, move.proof.evidence) == (
            "fence",
            "fenced by its agent after 60 s of silence",
        )
        assert move.proof.by.startswith("super")
        assert cloud.machines[host].resets == 0
        assert cloud.row(ONE).host != host
        told = [each.reason for each in cloud.read("cell/c1", read_history(ONE)).transitions]
        assert "its host is dead: fenced by its agent after 60 s of silence" in told
        assert "evacuated: fenced by its agent after 60 s of silence" in told
        cloud.wait(300.0)
        cloud.finish()
        assert cloud.move(move.uuid).state == DONE


def test_an_instance_that_was_to_be_shelved_on_a_host_that_is_cut_off_is_shelved_without_it():
    with cloud_of_one() as cloud:
        agent, host = agent_of(cloud), cloud.row(ONE).host
        cloud.cut(agent.name, CELL, seconds=400.0)
        cloud.wait(1.0)
        cloud.shelve(ONE)
        cloud.wait_for(ONE, SHELVED, seconds=200.0)
        assert cloud.guests.running(ONE) == [] and not evacuations(cloud)
        told = [each.reason for each in cloud.read("cell/c1", read_history(ONE)).transitions]
        assert "its host is dead: fenced by its agent after 60 s of silence" in told
        cloud.unshelve(ONE)
        assert cloud.wait_for(ONE, ACTIVE).host != host
        cloud.wait(250.0)
        cloud.finish()
        assert cloud.guests.hosts[host].stopped.get(ONE) is None


def test_a_guest_whose_resize_waits_for_its_word_is_started_again_after_a_fence():
    with cloud_of_one(vcpus=4) as cloud:
        agent = agent_of(cloud)
        cloud.wait(30.0)
        move = cloud.migrate(ONE, in_place=True, to_host=cloud.row(ONE).host, flavor=BIG, confirms=False)
        cloud.wait_for_move(move, SWITCHED)
        cloud.cut(agent.name, CELL, seconds=75.0)
        cloud.wait(70.0)
        assert cloud.guests.running(ONE) == []
        cloud.wait(30.0)
        assert cloud.move(move).state == SWITCHED
        assert (cloud.row(ONE).state, cloud.guests.running(ONE)) == (ACTIVE, [(cloud.row(ONE).host, 2)])
        cloud.confirm(move)
        cloud.wait_for_move(move, DONE)
        cloud.finish()


def test_guests_that_were_not_evacuated_are_started_again_by_the_cell():
    with cloud_of_one() as cloud:
        agent, host = agent_of(cloud), cloud.row(ONE).host
        cloud.cut(agent.name, CELL, seconds=75.0)
        cloud.wait(70.0)
        assert cloud.guests.running(ONE) == []
        cloud.wait_for(ONE, "powering-on")
        cloud.wait_for(ONE, ACTIVE)
        assert cloud.guests.running(ONE) == [(host, 1)]
        assert not evacuations(cloud)
        cloud.finish()


def an_order_is_under_way_when_the_fence_fires(faults, seed):
    """A driver is still busy with a start when the fence stops the guest, and is done before it is lifted."""
    with cloud_of_one(faults, seed, fence=Fence(30.0, 40.0, guarded=True)) as cloud:
        agent, host = agent_of(cloud), cloud.row(ONE).host
        cloud.stop(ONE)
        cloud.wait_for(ONE, STOPPED)
        cloud.start(ONE)
        while not cloud.guests.running(ONE):
            cloud.wait(0.01)
        cloud.cut(agent.name, CELL, seconds=45.0)
        cloud.wait(44.0)
        assert cloud.guests.running(ONE) == []
        cloud.wait(160.0)
        row = cloud.row(ONE)
        promise(row.state == ACTIVE, f"its guest is forgotten: it is {row.state}, {row.reason}")
        assert cloud.guests.running(ONE) == [(host, row.attempt)]
        cloud.finish()


def test_a_guest_that_a_fence_stops_while_its_start_is_under_way_is_started_again(monkeypatch):
    start_again = DriverService.start_again

    async def runs_at_once(driver, context, *order):
        await start_again(driver, context, *order)
        await context.sleep(40.0)

    monkeypatch.setattr(DriverService, "start_again", runs_at_once)
    an_order_is_under_way_when_the_fence_fires(NONE, 1)


@pytest.mark.parametrize("what", ["stop", "crash"])
def test_the_watchdog_resets_the_machine_of_an_agent_that_stands_still_or_has_ended(what):
    with cloud_of_one() as cloud:
        agent, host = agent_of(cloud), cloud.row(ONE).host
        cloud.machines[host].off_seconds = 200.0
        getattr(agent, what)()
        wait_for_evacuation(cloud)
        assert cloud.machines[host].resets == 1
        cloud.finish()


def an_agent_stands_still(faults, seed, world=Cloud, **named):
    with cloud_of_one(faults, seed, world, **named) as cloud:
        agent = agent_of(cloud)
        cloud.machines[cloud.row(ONE).host].off_seconds = 200.0
        agent.stop()
        cloud.loop.after(250.0, agent.go_on)
        wait_for_evacuation(cloud)
        cloud.finish()


def test_without_the_watchdog_that_it_tells_of_the_guests_of_a_frozen_agent_run_twice():
    an_agent_stands_still(NONE, 1)
    broken = found(lambda faults, seed: an_agent_stands_still(faults, seed, watchdog=False), NONE)
    assert "while it runs as" in broken


def test_a_fence_without_a_watchdog_is_no_proof_unless_the_operators_trust_it():
    with cloud_of_one(fence=UNGUARDED) as cloud:
        cloud.cut(agent_of(cloud).name, CELL, seconds=300.0)
        cloud.wait(200.0)
        # It has stopped its guests nevertheless.
        assert cloud.guests.running(ONE) == []
        assert not evacuations(cloud)
        (row,) = cloud.read("cell/c1", read_silent_hosts()).values()
        assert (row.state, row.words) == ("unproved", UNGUARDED_FENCE)
        cloud.wait_for(ONE, ACTIVE, seconds=200.0)
        cloud.finish()

    def trusted(faults, seed):
        an_agent_stands_still(faults, seed, world=Trusting, fence=UNGUARDED)

    assert "while it runs as" in found(trusted, NONE)


def test_a_time_that_is_longer_than_the_silence_is_waited_for(monkeypatch):
    def script(faults, seed):
        with cloud_of_one(faults, seed, fence=Fence(150.0, 20.0, guarded=True)) as cloud:
            cloud.cut(agent_of(cloud).name, CELL, seconds=400.0)
            wait_for_evacuation(cloud, seconds=300.0)

    script(NONE, 1)
    monkeypatch.setattr(judgement, "needed_silence", lambda fence: 0.0)
    assert "while it runs as" in found(script, NONE)


def an_answer_comes_late(faults, seed):
    """A poll is stored; its answer comes 40 seconds later, and no other does."""
    with cloud_of_one(faults, seed, fence=Fence(60.0, 4.0, guarded=True), conductors=2) as cloud:
        cloud.build_in(0.1)
        agent, host = agent_of(cloud), cloud.row(ONE).host
        serving, other = cloud.servers["c1"]
        for each in cloud.agents:
            each.services[CELL].at(serving if each is agent else other)
        wait_for_sign(cloud, host)
        cloud.network.cut.add((agent.name, CELL))
        serving.stop()
        cloud.loop.after(40.0, serving.go_on)
        wait_for_evacuation(cloud)


def test_an_answer_that_comes_late_gives_no_more_time_than_one_that_is_lost(monkeypatch):
    monkeypatch.setattr(Cloud, "evacuations", EvacuationOptions(after=60.0))
    an_answer_comes_late(NONE, 1)
    answered = AgentFence.answered

    async def from_now(fence, sent):
        await answered(fence, fence._context.monotonic())

    monkeypatch.setattr(AgentFence, "answered", from_now)
    assert "while it runs as" in found(an_answer_comes_late, NONE)


def test_nothing_is_evacuated_without_a_proof(monkeypatch):
    def script(faults, seed):
        with cloud_of_one(faults, seed, fence=None) as cloud:
            cloud.cut(agent_of(cloud).name, CELL, seconds=300.0)
            cloud.wait(250.0)
            (row,) = cloud.read("cell/c1", read_silent_hosts()).values()
            assert (row.state, row.words) == ("unproved", judgement.NO_FENCE)
            assert not evacuations(cloud)
            cloud.wait(100.0)
            assert not cloud.read("cell/c1", read_silent_hosts())
            cloud.finish()

    script(NONE, 1)
    always = judgement.Judgement("fence", "somebody thinks so")
    monkeypatch.setattr(dead_hosts, "judged", lambda *_: always)
    assert "while it runs as" in found(script, NONE)


def test_a_machine_is_powered_off_by_the_command_and_evacuated():
    with cloud_of_one(world=WithBmcs, fence=None) as cloud:
        agent, host = agent_of(cloud), cloud.row(ONE).host
        cloud.bmcs.fails.add(host)
        cloud.machines[host].off_seconds = 400.0
        cloud.cut(agent.name, CELL, seconds=600.0)
        cloud.wait(130.0)
        (row,) = cloud.read("cell/c1", read_silent_hosts()).values()
        assert (row.state, row.words) == ("unproved", "the BMC does not answer")
        assert not evacuations(cloud)
        cloud.bmcs.fails.clear()
        move = wait_for_evacuation(cloud, seconds=300.0)
        assert (move.proof.kind, move.proof.evidence) == ("command", "powered off by the fence command")
        # Both conductors looked; one of them had it powered off.
        assert cloud.machines[host].resets == 1
        cloud.wait(300.0)
        cloud.finish()


def a_database_is_away(faults, seed):
    with cloud_of_one(faults, seed, WithBmcs, fence=None) as cloud:
        wait_for_sign(cloud, cloud.row(ONE).host)
        # All conductors have seen it.
        cloud.wait(7.0)
        cloud.take_away("cell/c1", 150.0)
        # It is silent when the database is back, for less than the time after which a session is free.
        cloud.wait(60.0)
        agent = agent_of(cloud)
        agent.stop()
        cloud.wait(115.0)
        agent.go_on()
        promise(not cloud.bmcs.asked, f"{cloud.bmcs.asked} are powered off though they run")
        cloud.finish()


def test_the_time_in_which_a_database_was_away_is_no_silence(monkeypatch):
    a_database_is_away(NONE, 1)
    look = Standstill.look

    def without_gaps(standing, *read):
        standing._longest_gap = 1e9
        look(standing, *read)

    monkeypatch.setattr(Standstill, "interrupted", lambda _: None)
    monkeypatch.setattr(Standstill, "look", without_gaps)
    assert "powered off though they run" in found(a_database_is_away, NONE)


def no_host_reaches_its_cell(faults, seed):
    with cloud_of_one(faults, seed, WithBmcs, fence=None) as cloud:
        for each in cloud.agents:
            cloud.cut(each.name, CELL, seconds=200.0)
        cloud.wait(220.0)
        promise(not cloud.bmcs.asked, f"{cloud.bmcs.asked} are powered off though they run")
        cloud.finish()


def test_hosts_of_a_cell_that_no_host_reaches_are_not_taken_for_silent(monkeypatch):
    no_host_reaches_its_cell(NONE, 1)
    monkeypatch.setattr(silence, "AWAY_SECONDS", 1e9)
    assert "powered off though they run" in found(no_host_reaches_its_cell, NONE)


def the_super_conductors_stand_still(faults, seed):
    with cloud_of_one(faults, seed, WithBmcs, fence=None) as cloud:
        agent = agent_of(cloud)
        cloud.cut(agent.name, CELL, seconds=70.0)
        cloud.wait(20.0)
        for each in cloud.supers:
            each.stop()
            cloud.loop.after(200.0, each.go_on)
        cloud.wait(260.0)
        promise(not cloud.bmcs.asked, f"{cloud.bmcs.asked} are powered off though they run")
        cloud.finish()


def test_the_time_in_which_no_conductor_looked_is_no_silence():
    the_super_conductors_stand_still(NONE, 1)


def test_the_guests_of_an_agent_that_was_stopped_in_order_run_on():
    with cloud_of_one(world=WithBmcs) as cloud:
        agent = agent_of(cloud)
        session = agent.memory["agent"].session
        agent.services[WATCHDOG].disarm()
        agent.crash()
        cloud.network.databases["cell/c1"].run(close_session(session), True)
        cloud.wait(250.0)
        assert not evacuations(cloud)
        assert not cloud.bmcs.asked
        (row,) = cloud.read("cell/c1", read_silent_hosts()).values()
        assert row.words == judgement.CLOSED
        agent.start()
        cloud.finish()


def a_locked_instance_is_evacuated(faults, seed):
    """A move locks the instance for long after its host is proved to be dead."""
    with cloud_of_one(faults, seed, build_seconds=500.0) as cloud:
        cloud.build_in(400.0)
        cloud.cut(agent_of(cloud).name, CELL, seconds=2_000.0)
        move = cloud.migrate(ONE)
        ended = cloud.wait_for_move(move, FAILED_MOVE, seconds=1_500.0)
        cloud.build_in(0.1)
        later = wait_for_evacuation(cloud, seconds=600.0).began - ended.changed_at
        promise(later < 40.0, f"it is evacuated {later:.0f} s later")
        cloud.finish()


def test_a_request_that_is_only_early_is_no_failure_after_which_the_pauses_grow(monkeypatch):
    a_locked_instance_is_evacuated(NONE, 1)
    monkeypatch.setattr(departures, "EARLY", departures.RETRIES)
    assert "s later" in found(a_locked_instance_is_evacuated, NONE)


def test_a_drained_host_that_is_dead_is_evacuated_at_once():
    with cloud_of_one(world=Draining) as cloud:
        host = cloud.row(ONE).host
        cloud.cut(agent_of(cloud).name, CELL, seconds=400.0)
        cloud.wait(70.0)
        word = SaidWord(Subject("c1", host), False, "fan", cloud.loop.now, True)
        cloud.network.databases["api"].run(say_words((word,), None), True)
        wait_for_evacuation(cloud, seconds=60.0)
        assert {each.kind for each in cloud.moves("c1").values()} == {"evacuate"}
        cloud.wait(400.0)
        cloud.finish()


def test_one_host_after_the_other_is_evacuated():
    with Cloud(cells=("c1",), hosts=4, fence=GUARDED) as cloud:
        hosts = sorted(cloud.guests.hosts)[:2]
        for number, host in enumerate(hosts):
            cloud.request(f"instance{number}", host=host)
            cloud.wait_for(f"instance{number}", ACTIVE)
            cloud.cut(f"{host}-agent", CELL, seconds=600.0)
        cloud.build_in(20.0)
        at_once = set()
        while len(evacuations(cloud)) < 2 or any(each.state != CLEANING for each in evacuations(cloud)):
            cloud.wait(2.0)
            going = [each for each in evacuations(cloud) if each.state != CLEANING]
            at_once.add(len(going))
            assert cloud.loop.now < 400.0
        assert at_once == {0, 1}
        assert {cloud.row(f"instance{number}").host for number in range(2)}.isdisjoint(hosts)
        cloud.network.cut.clear()
        cloud.finish()


class Drawn(CloudWorld):
    """A cloud in which agents are cut off, frozen and killed, and whose dead hosts are evacuated."""

    evacuations = EvacuationOptions(after=60.0, command=("off",))

    def __init__(self, kind, seed):
        fence = (Fence(30.0, 12.0, guarded=True), Fence(70.0, 8.0, guarded=True), None)[seed % 3]
        super().__init__(CLOUD_KINDS[kind], seed, cells=("c1",), hosts=4, audits=False, fence=fence)
        self.proofs = set()
        self.evacuated = self.restarted = False

    def check(self):
        super().check()
        moves = [each for cell in self.cells for each in self.moves(cell).values()]
        proved = [each for each in moves if each.proof is not None]
        self.proofs = {each.proof.kind for each in proved}
        self.evacuated = any(each.state == DONE for each in proved)
        said = {note.what[2] for note in self.network.trace if note.what[1:2] == ("says",)}
        self.restarted = "guests that a host has stopped by its fence are started again" in said


@pytest.mark.parametrize("kind", ["fences", "fences under live moves"])
def test_no_guest_runs_twice_in_any_schedule_with_fences(kind):
    drawn = []

    def make(seed):
        drawn.append(Drawn(kind, seed))
        return drawn[-1]

    def is_enough():
        proofs = {each for world in drawn for each in world.proofs}
        return (
            {"fence", "command"} <= proofs
            and any(world.evacuated for world in drawn)
            and any(world.restarted for world in drawn)
        )

    simulate(make, range(SCHEDULES), kind)
    # Whether enough happens in the first ones is a matter of luck, which each change of a message changes.
    for seed in range(SCHEDULES, 4 * SCHEDULES):
        if is_enough():
            break
        simulate(make, [seed], kind)
    assert is_enough()


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["fences", "fences under live moves"])
def test_no_guest_runs_twice_in_any_schedule_with_fences_at_length(kind):
    first = nightly_seed() * 1_000_000
    simulate(lambda seed: Drawn(kind, seed), range(first, first + 1_500), kind)
