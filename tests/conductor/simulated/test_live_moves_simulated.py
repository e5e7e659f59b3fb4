"""Moves of guests that run on, in a cloud of several conductors and agents: step by step.

Where a rule keeps something from going wrong, the schedule is played without the rule too, and must break a
promise then.
"""

from contextlib import contextmanager

import pytest

from roost.model.instance import ACTIVE, LOST
from roost.model.move import MoveRefused
from roost.model.move_states import (
    AT_REST,
    CANCELLING,
    CLEANING,
    DELETED,
    DONE,
    FAILED_MOVE,
    FREEING,
    LANDING,
    RECEIVING,
    REQUESTED,
    RESTARTING,
    RETRYING,
    SWITCHED,
    SWITCHING,
)
from roost.state.cell_database.deletions import give_up_on_host
from roost.state.cell_database.history import read_history
from roost.state.cell_database.moves import read_steps
from support.simulation import faults
from support.simulation.network import BrokenPromise
from support.simulation.scripted import NONE, Scripted, found

ONE = "instance0"


@contextmanager
def cloud_of_one(faults=NONE, seed=1, seconds=2.0, **named):
    """A cloud of a cell with three hosts, and one instance, whose guest takes some seconds to go over."""
    with Scripted(faults, seed, **{"cells": ("c1",), "hosts": 3} | named) as cloud:
        for host in cloud.guests.hosts.values():
            host.migration_seconds = seconds
        cloud.request(ONE)
        cloud.wait_for(ONE, ACTIVE)
        yield cloud


def agent_of(cloud, place):
    return cloud.process(f"{place.host}-agent")


def going(cloud, move):
    """A move whose guest is on its way, whichever agents live."""
    now = cloud.wait_for_move(move, SWITCHING)
    while ONE not in cloud.guests.hosts[now.source.host].migrations:
        cloud.wait(0.01)
    return now


def give_up(cloud, host):
    """An operator gives a host up, whose agent does not run."""
    gone = give_up_on_host(host=host, reason="it burnt", at=0.0, cell="c1")
    cloud.network.databases["cell/c1"].run(gone, True)


def test_an_instance_moves_and_runs_all_the_time():
    with cloud_of_one() as cloud:
        before = cloud.row(ONE)
        move = cloud.migrate(ONE, live=True)
        cloud.wait_for_move(move, SWITCHING)
        assert cloud.guests.running(ONE) == [(before.host, 1)]
        ended = cloud.wait_for_move(move, CLEANING)
        assert cloud.guests.running(ONE) == [(ended.target.host, 2)]
        assert cloud.placement.held(move).allocations == before.selection.allocations
        cloud.wait_for_move(move, DONE)
        row = cloud.row(ONE)
        assert (row.state, row.host, row.attempt, row.move) == (ACTIVE, ended.target.host, 2, None)
        steps = [each.state for each in cloud.read("cell/c1", read_steps(move))]
        assert [each for each in steps if each != LANDING] == [
            *(REQUESTED, RECEIVING, SWITCHING, SWITCHED, CLEANING, FREEING, DONE)
        ]
        told = [each.state for each in cloud.read("cell/c1", read_history(ONE)).transitions]
        assert told == ["assigned", "starting", "active", "moving", "moved"]
        # And again, and back by stopping it.
        cloud.wait_for_move(cloud.migrate(ONE, live=True), DONE)
        cloud.wait_for_move(cloud.migrate(ONE), DONE)
        assert cloud.row(ONE).attempt == 4
        cloud.finish()


def test_a_target_that_cannot_prepare_is_followed_by_an_alternate():
    with cloud_of_one() as cloud:
        cloud.fail(ONE, 2)
        move = cloud.migrate(ONE, live=True)
        cloud.wait_for_move(move, RETRYING)
        cloud.wait_for_move(move, DONE)
        assert cloud.row(ONE).attempt == 3
        cloud.finish()


def test_a_guest_that_does_not_leave_its_host_tries_the_alternate_and_runs_on():
    with cloud_of_one(seconds=5.0) as cloud:
        move = cloud.migrate(ONE, live=True)
        now = cloud.wait_for_move(move, SWITCHING)
        cloud.wait(2.0)
        # The target's machine loses its power, and has forgotten what it was ready for.
        agent_of(cloud, now.target).crash()
        cloud.guests.hosts[now.target.host].die()
        again = cloud.wait_for_move(move, RETRYING)
        assert "has not left its host" in again.reason
        assert cloud.guests.running(ONE) == [(now.source.host, 1)]
        agent_of(cloud, now.target).start()
        cloud.wait_for_move(move, DONE)
        assert cloud.row(ONE).attempt == 3
        cloud.finish()


def test_a_guest_that_is_lost_in_the_middle_starts_again_where_it_was():
    with cloud_of_one() as cloud:
        for host in cloud.guests.hosts.values():
            host.breaking = 1.0
        move = cloud.migrate(ONE, live=True)
        cloud.wait_for_move(move, LANDING)
        cloud.wait_for_move(move, RESTARTING)
        ended = cloud.wait_for_move(move, FAILED_MOVE)
        assert ended.reason == "the guest has left the source, and has not arrived on the target"
        row = cloud.row(ONE)
        assert (row.state, row.host, row.attempt) == (ACTIVE, ended.source.host, 1)
        assert cloud.guests.running(ONE) == [(ended.source.host, 1)]
        cloud.finish()


def test_an_instance_whose_host_restarts_before_its_guest_has_gone_runs_there_again():
    with cloud_of_one() as cloud:
        cloud.guests.hosts[cloud.row(ONE).host].hesitates = 30.0
        move = cloud.migrate(ONE, live=True)
        now = cloud.wait_for_move(move, SWITCHING)
        source = agent_of(cloud, now.source)
        source.crash()
        cloud.guests.hosts[now.source.host].die()
        cloud.loop.after(10.0, source.start)
        cloud.wait_for_move(move, LANDING)
        cloud.wait_for_move(move, FAILED_MOVE)
        assert (cloud.row(ONE).state, cloud.row(ONE).attempt) == (ACTIVE, 1)
        cloud.finish()


def test_an_instance_that_was_lost_when_its_move_started_it_again_is_active():
    with cloud_of_one() as cloud:
        agent, host = agent_of(cloud, cloud.row(ONE)), cloud.guests.hosts[cloud.row(ONE).host]
        cloud.build_in(20.0)
        move = cloud.migrate(ONE, live=True)
        now = cloud.wait_for_move(move, RECEIVING)
        agent_of(cloud, now.target).stop()
        agent.crash()
        host.die()
        agent.start()
        cloud.wait_for(ONE, LOST)
        agent_of(cloud, now.target).go_on()
        ended = cloud.wait_for_move(move, FAILED_MOVE)
        assert ended.at_source == AT_REST
        row = cloud.row(ONE)
        assert (row.state, row.host, row.attempt) == (ACTIVE, host.name, 1)
        cloud.finish()


@pytest.mark.parametrize("state", [RECEIVING, SWITCHING, CLEANING])
@pytest.mark.parametrize("whose", ["source", "target"])
def test_an_agent_that_dies_in_the_middle_goes_on_when_it_is_back(whose, state):
    with cloud_of_one(seconds=5.0) as cloud:
        move = cloud.migrate(ONE, live=True)
        now = cloud.wait_for_move(move, state)
        agent = agent_of(cloud, getattr(now, whose))
        agent.crash()
        cloud.loop.after(10.0, agent.start)
        cloud.wait_for_move(move, DONE)
        assert cloud.guests.running(ONE) == [(now.target.host, 2)]
        cloud.finish()


@pytest.mark.parametrize("state", [REQUESTED, RECEIVING, SWITCHING, CANCELLING, LANDING, CLEANING, FREEING])
def test_a_deletion_wins_in_each_state(state):
    for seed in range(2):
        with cloud_of_one(seed=seed) as cloud:
            move = cloud.migrate(ONE, live=True)
            if state == LANDING:
                agent_of(cloud, cloud.wait_for_move(move, SWITCHING).target).stop()
            if state == CANCELLING:
                agent_of(cloud, cloud.wait_for_move(move, SWITCHING).source).stop()
                cloud.abort(move)
            cloud.wait_for_move(move, state)
            cloud.delete(ONE)
            cloud.wait_for_move(move, DELETED)
            cloud.finish()


@pytest.mark.parametrize("state", [REQUESTED, RECEIVING, SWITCHING])
def test_an_aborted_move_leaves_the_guest_running_where_it_is(state):
    with cloud_of_one(seconds=20.0) as cloud:
        before = cloud.row(ONE)
        move = cloud.migrate(ONE, live=True)
        cloud.wait_for_move(move, state)
        cloud.abort(move)
        ended = cloud.wait_for_move(move, FAILED_MOVE)
        assert "aborted the move" in ended.reason
        row = cloud.row(ONE)
        assert (row.host, row.attempt, row.move) == (before.host, 1, None)
        assert cloud.guests.running(ONE) == [(before.host, 1)]
        assert cloud.placement.held(ONE).allocations == before.selection.allocations
        cloud.wait_for_move(cloud.migrate(ONE, live=True), DONE)
        cloud.finish()


def test_an_abort_that_comes_after_the_guest_has_gone_changes_nothing():
    with cloud_of_one(seconds=1.0) as cloud:
        move = cloud.migrate(ONE, live=True)
        now = going(cloud, move)
        # The guest goes over while both agents are away: nobody knows.
        agents = [agent_of(cloud, place) for place in (now.source, now.target)]
        for agent in agents:
            agent.crash()
        cloud.wait(5.0)
        cloud.abort(move)
        cloud.wait_for_move(move, CANCELLING)
        for agent in agents:
            agent.start()
        cloud.wait_for_move(move, DONE)
        assert cloud.guests.running(ONE) == [(now.target.host, 2)]
        cloud.abort(move)
        cloud.wait(2.0)
        assert isinstance(cloud.answers[-1], MoveRefused)
        cloud.finish()


def the_hosts_are_silent_while_a_guest_goes_over(faults, seed):
    with cloud_of_one(faults, seed, seconds=1.0, build_seconds=20.0) as cloud:
        move = cloud.migrate(ONE, live=True)
        now = going(cloud, move)
        agents = [agent_of(cloud, place) for place in (now.source, now.target)]
        for agent in agents:
            agent.crash()
        cloud.wait(60.0)
        for agent in agents:
            agent.start()
        cloud.wait_for_move(move, DONE, FAILED_MOVE)
        cloud.wait(20.0)
        if cloud.guests.running(ONE) != [(now.target.host, 2)]:
            raise BrokenPromise(f"the guest is gone: {cloud.row(ONE)}")
        cloud.finish()


def test_no_time_limit_destroys_a_guest_that_may_have_gone_over():
    for seed in range(3):
        the_hosts_are_silent_while_a_guest_goes_over(NONE, seed)
    assert "gone" in found(the_hosts_are_silent_while_a_guest_goes_over, faults.LIMIT_ENDS_SWITCHING)


def a_source_is_stopped_until_its_target_is_given_up(faults, seed):
    with cloud_of_one(faults, seed, build_seconds=600.0) as cloud:
        move = cloud.migrate(ONE, live=True)
        now = cloud.wait_for_move(move, RECEIVING)
        target = agent_of(cloud, now.target)
        # It has its order, and carries it out long after.
        cloud.guests.hosts[now.source.host].hesitates = 60.0
        cloud.wait_for_move(move, SWITCHING)
        cloud.wait(5.0)
        target.crash()
        cloud.guests.hosts[now.target.host].die()
        give_up(cloud, now.target.host)
        cloud.wait(10.0)
        target.start()
        cloud.wait_for_move(move, FAILED_MOVE, DONE, seconds=300.0)
        if cloud.guests.running(ONE) != [(now.source.host, 1)]:
            raise BrokenPromise(f"the guest has left: {cloud.guests.running(ONE)}")
        cloud.finish()


def test_a_guest_goes_only_to_a_host_that_is_ready_for_its_attempt():
    for seed in range(3):
        a_source_is_stopped_until_its_target_is_given_up(NONE, seed)
    # Without a look at the attempt.
    assert found(a_source_is_stopped_until_its_target_is_given_up, faults.NO_TOKEN)


def test_a_target_that_was_given_up_has_no_guest_whatever_it_says():
    with cloud_of_one(seconds=1.0) as cloud:
        move = cloud.migrate(ONE, live=True)
        now = going(cloud, move)
        source, target = (agent_of(cloud, place) for place in (now.source, now.target))
        source.crash()
        target.stop()
        cloud.wait(5.0)
        assert cloud.guests.running(ONE) == [(now.target.host, 2)]
        give_up(cloud, now.target.host)
        # It says that the guest runs there, and is told to destroy it.
        target.go_on()
        cloud.wait(60.0)
        source.start()
        cloud.wait_for_move(move, FAILED_MOVE)
        row = cloud.row(ONE)
        assert (row.state, row.host, row.attempt) == (ACTIVE, now.source.host, 1)
        assert cloud.guests.running(ONE) == [(now.source.host, 1)]
        cloud.finish()


def test_a_target_that_is_given_up_after_the_guest_has_left_the_source_is_followed_by_no_alternate():
    with cloud_of_one() as cloud:
        for host in cloud.guests.hosts.values():
            host.breaking = 1.0
        move = cloud.migrate(ONE, live=True)
        now = going(cloud, move)
        agent_of(cloud, now.target).crash()
        cloud.wait_for_move(move, LANDING)
        give_up(cloud, now.target.host)
        ended = cloud.wait_for_move(move, FAILED_MOVE)
        assert ended.reason == "it burnt"
        assert RETRYING not in [each.state for each in cloud.read("cell/c1", read_steps(move))]
        assert cloud.guests.running(ONE) == [(now.source.host, 1)]
        agent_of(cloud, now.target).start()
        cloud.finish()


def test_a_target_that_cannot_get_ready_again_says_that_it_has_no_guest():
    with cloud_of_one(seconds=20.0) as cloud:
        move = cloud.migrate(ONE, live=True)
        now = going(cloud, move)
        for place in (now.source, now.target):
            agent_of(cloud, place).crash()
            cloud.guests.hosts[place.host].die()
        cloud.fail(ONE, 2)
        for place in (now.source, now.target):
            agent_of(cloud, place).start()
        cloud.wait_for_move(move, FAILED_MOVE)
        assert cloud.guests.running(ONE) == [(now.source.host, 1)]
        cloud.finish()


def test_a_source_that_is_given_up_in_the_middle_leaves_the_instance_to_the_target():
    for seconds, state in ((1.0, ACTIVE), (30.0, LOST)):
        with cloud_of_one(seconds=seconds) as cloud:
            move = cloud.migrate(ONE, live=True)
            now = going(cloud, move)
            for place in (now.source, now.target):
                agent_of(cloud, place).crash()
            cloud.wait(5.0)
            cloud.guests.hosts[now.source.host].die()
            give_up(cloud, now.source.host)
            row = cloud.row(ONE)
            assert (row.state, row.host, row.attempt) == (LOST, now.target.host, 2)
            for place in (now.source, now.target):
                agent_of(cloud, place).start()
            cloud.wait_for_move(move, DONE)
            cloud.wait_for(ONE, state, seconds=300.0)
            cloud.finish()


def test_an_instance_whose_source_dies_in_the_middle_is_left_to_the_target_by_the_word_of_an_operator():
    with cloud_of_one(seconds=1.0) as cloud:
        move = cloud.migrate(ONE, live=True)
        now = going(cloud, move)
        for place in (now.source, now.target):
            agent_of(cloud, place).crash()
        cloud.wait(5.0)
        cloud.guests.hosts[now.source.host].die()
        cloud.wait(80.0)
        assert cloud.move(move).state in (SWITCHING, CANCELLING)
        cloud.migrate(ONE, evidence="its lamps are dark")
        cloud.wait(2.0)
        assert (cloud.row(ONE).state, cloud.row(ONE).host) == (LOST, now.target.host)
        for place in (now.source, now.target):
            agent_of(cloud, place).start()
        cloud.wait_for(ONE, ACTIVE, seconds=300.0)
        assert cloud.guests.running(ONE) == [(now.target.host, 2)]
        cloud.finish()


def test_a_migration_that_takes_too_long_is_ended_and_the_guest_runs_on():
    with cloud_of_one(seconds=500.0, build_seconds=20.0) as cloud:
        move = cloud.migrate(ONE, live=True)
        ended = cloud.wait_for_move(move, FAILED_MOVE, seconds=200.0)
        assert ended.reason == "the guest has not gone over within the time limit"
        assert cloud.guests.running(ONE) == [(ended.source.host, 1)]
        cloud.finish()
