"""Instances that are stopped and started again, in a cloud of several conductors, cells and agents.

Where a rule keeps something from going wrong, the schedule is played without the rule too, and must break a
promise then.
"""

from contextlib import contextmanager

import pytest

from roost.conductor.agent_endpoint.transactions import StorePoll
from roost.model.instance import (
    ACTIVE,
    LOST,
    POWERING_OFF,
    POWERING_ON,
    REBUILDING,
    REBUILDING_STOPPED,
    STOPPED,
    ChangeRefused,
)
from roost.model.move_states import DONE, FAILED_MOVE, PREPARING, REVERTED, SWITCHED
from roost.state.cell_database.history import read_history
from support.simulation import faults
from support.simulation.promises import promise
from support.simulation.scripted import NONE, Scripted, found

ONE = "instance0"


@contextmanager
def cloud_of_one(faults=NONE, seed=1, *, stopped=False, **named):
    """A cloud of a cell with three hosts, and one instance, which is ``stopped`` or runs."""
    with Scripted(faults, seed, **{"cells": ("c1",), "hosts": 3} | named) as cloud:
        cloud.request(ONE)
        cloud.wait_for(ONE, ACTIVE)
        if stopped:
            cloud.stop(ONE)
            cloud.wait_for(ONE, STOPPED)
        yield cloud


def play(script):
    """Play a script with no fault in it, with some seeds."""
    for seed in range(3):
        script(NONE, seed)


def host_of(cloud):
    return cloud.guests.hosts[cloud.row(ONE).host]


def test_an_instance_is_stopped_and_started_and_keeps_its_host_and_its_claim():
    with cloud_of_one() as cloud:
        before = cloud.row(ONE)
        cloud.stop(ONE)
        cloud.wait_for(ONE, STOPPED)
        assert (cloud.guests.running(ONE), host_of(cloud).stopped) == ([], {ONE: 1})
        assert cloud.placement.held(ONE).allocations == before.selection.allocations
        cloud.wait(400.0)
        assert cloud.row(ONE).state == STOPPED
        cloud.start(ONE)
        after = cloud.wait_for(ONE, ACTIVE)
        assert (after.host, after.attempt) == (before.host, before.attempt)
        told = [
            (each.state, each.by and each.by.user_id)
            for each in cloud.read("cell/c1", read_history(ONE)).transitions
        ]
        assert told[3:] == [
            (POWERING_OFF, "user"),
            (STOPPED, None),
            (POWERING_ON, "user"),
            (ACTIVE, None),
        ]
        cloud.finish()


def test_a_word_that_is_repeated_or_reversed_at_once_is_carried_out():
    for seed in range(4):
        with cloud_of_one(seed=seed) as cloud:
            cloud.stop(ONE)
            cloud.wait_for(ONE, POWERING_OFF, STOPPED)
            cloud.start(ONE)
            cloud.wait_for(ONE, POWERING_ON, ACTIVE)
            cloud.stop(ONE)
            cloud.stop(ONE)
            cloud.wait_for(ONE, STOPPED)
            cloud.wait(20.0)
            assert cloud.row(ONE).state == STOPPED
            assert not [each for each in cloud.answers if isinstance(each, ChangeRefused)]
            cloud.finish()


def test_an_unknown_instance_and_one_that_is_being_moved_are_not_stopped():
    with cloud_of_one() as cloud:
        cloud.stop("nobody")
        move = cloud.migrate(ONE)
        cloud.wait_for_move(move, PREPARING)
        cloud.stop(ONE)
        cloud.wait(0.5)
        assert None in cloud.answers
        [refused] = [each for each in cloud.answers if isinstance(each, ChangeRefused)]
        assert refused.reason == "the instance moves: it cannot be stopped before the move has ended"
        cloud.wait_for_move(move, DONE)
        cloud.finish()


def test_one_that_cannot_be_stopped_runs_on_and_one_that_cannot_be_started_is_lost_until_it_can():
    with cloud_of_one() as cloud:
        host_of(cloud).unstoppable = 1.0
        cloud.stop(ONE)
        cloud.wait_for(ONE, POWERING_OFF)
        row = cloud.wait_for(ONE, ACTIVE, seconds=2_000.0)
        assert row.reason == "the guest could not be stopped: the hypervisor does not stop it"
        host_of(cloud).unstoppable = 0.0
        cloud.stop(ONE)
        cloud.wait_for(ONE, STOPPED)
        host_of(cloud).unstoppable = 1.0
        cloud.start(ONE)
        row = cloud.wait_for(ONE, LOST, seconds=2_000.0)
        assert row.reason == "the guest could not be started: the hypervisor does not start it"
        host_of(cloud).unstoppable = 0.0
        cloud.start(ONE)
        cloud.wait_for(ONE, ACTIVE)
        cloud.finish()


def test_a_guest_that_is_off_after_a_restart_of_its_host_is_started_by_its_user():
    with cloud_of_one() as cloud:
        agent = cloud.process(f"{cloud.row(ONE).host}-agent")
        agent.crash()
        host_of(cloud).die()
        agent.start()
        cloud.wait_for(ONE, LOST)
        cloud.start(ONE)
        cloud.wait_for(ONE, ACTIVE)
        cloud.finish()


def test_a_stopped_guest_that_somebody_starts_by_hand_is_stopped_again():
    with cloud_of_one(stopped=True) as cloud:
        host_of(cloud).wake(ONE)
        cloud.wait_for(ONE, POWERING_OFF)
        cloud.wait_for(ONE, STOPPED)
        assert cloud.guests.running(ONE) == []
        cloud.finish()


@pytest.mark.parametrize("state", [POWERING_OFF, STOPPED, POWERING_ON])
def test_a_deletion_wins_in_each_state(state):
    with cloud_of_one(stopped=state != POWERING_OFF) as cloud:
        if state != STOPPED:
            getattr(cloud, "stop" if state == POWERING_OFF else "start")(ONE)
        cloud.wait_for(ONE, state)
        cloud.delete(ONE)
        cloud.wait(30.0)
        assert cloud.row(ONE) is None
        cloud.finish()


@pytest.mark.parametrize("state", [POWERING_OFF, STOPPED, POWERING_ON])
def test_an_agent_that_dies_in_the_middle_goes_on_when_it_is_back(state):
    with cloud_of_one(stopped=state != POWERING_OFF) as cloud:
        if state != STOPPED:
            getattr(cloud, "stop" if state == POWERING_OFF else "start")(ONE)
            cloud.wait_for(ONE, state)
        agent = cloud.process(f"{cloud.row(ONE).host}-agent")
        agent.crash()
        cloud.loop.after(10.0, agent.start)
        cloud.wait(30.0)
        assert cloud.row(ONE).state == (ACTIVE if state == POWERING_ON else STOPPED)
        cloud.finish()


# Rebuilds


def an_instance_is_made_anew(faults, seed):
    with cloud_of_one(faults, seed) as cloud:
        before = cloud.row(ONE)
        cloud.rebuild(ONE)
        cloud.wait_for(ONE, REBUILDING)
        row = cloud.wait_for(ONE, ACTIVE)
        promise(row.host == before.host, f"{row} has another host")
        promise(cloud.guests.builds[ONE, row.attempt] == 1, f"attempt {row.attempt} was not built")
        promise(row.attempt == 2, f"the guest of attempt {row.attempt} runs on")
        promise(
            cloud.placement.held(ONE).allocations == before.selection.allocations, "it holds another room"
        )
        cloud.finish()


def test_an_instance_is_made_anew_on_its_host_with_its_claim():
    play(an_instance_is_made_anew)
    assert "runs on" in found(an_instance_is_made_anew, faults.SAME_ATTEMPT)


def test_a_stopped_instance_that_is_made_anew_stays_stopped():
    with cloud_of_one(stopped=True) as cloud:
        cloud.rebuild(ONE)
        cloud.wait_for(ONE, REBUILDING_STOPPED)
        cloud.wait_for(ONE, STOPPED)
        assert (host_of(cloud).stopped, cloud.guests.builds[ONE, 2]) == ({ONE: 2}, 0)
        cloud.start(ONE)
        cloud.wait_for(ONE, ACTIVE)
        cloud.finish()


def test_one_that_cannot_be_made_anew_is_lost_and_is_made_by_the_next_word():
    with cloud_of_one() as cloud:
        held = cloud.placement.held(ONE).allocations
        cloud.fail(ONE, 2)
        cloud.rebuild(ONE)
        row = cloud.wait_for(ONE, LOST)
        assert row.reason == "the guest could not be made anew: No more IP addresses"
        assert cloud.placement.held(ONE).allocations == held
        cloud.rebuild(ONE)
        assert cloud.wait_for(ONE, ACTIVE).attempt == 3
        # It moves as a further attempt.
        cloud.wait_for_move(cloud.migrate(ONE), DONE)
        assert cloud.row(ONE).attempt == 4
        cloud.finish()


def test_an_agent_that_dies_while_it_makes_a_guest_anew_goes_on():
    for after in (0.05, 0.5, 2.0, 5.0):
        with cloud_of_one() as cloud:
            cloud.build_in(3.0)
            cloud.rebuild(ONE)
            cloud.wait_for(ONE, REBUILDING)
            cloud.wait(after)
            agent = cloud.process(f"{cloud.row(ONE).host}-agent")
            agent.crash()
            cloud.loop.after(10.0, agent.start)
            cloud.wait_for(ONE, ACTIVE)
            cloud.finish()


@pytest.mark.parametrize("stopped", [False, True])
def test_a_deletion_wins_over_a_rebuild_and_a_dead_host_s_is_evacuated(stopped):
    for deletes in (True, False):
        with cloud_of_one(stopped=stopped) as cloud:
            agent = cloud.process(f"{cloud.row(ONE).host}-agent")
            if not deletes:
                agent.crash()
                host_of(cloud).die()
            cloud.rebuild(ONE)
            cloud.wait_for(ONE, REBUILDING, REBUILDING_STOPPED)
            if deletes:
                cloud.delete(ONE)
                cloud.wait(30.0)
                assert cloud.row(ONE) is None
            else:
                move = cloud.evacuate(ONE)
                cloud.wait_for(ONE, STOPPED if stopped else ACTIVE, seconds=90.0)
                cloud.wait(30.0)
                agent.start()
                cloud.wait_for_move(move, DONE)
                assert cloud.row(ONE).attempt == 3
            cloud.finish()


# With moves


def a_stopped_instance_moves(faults, seed):
    with cloud_of_one(faults, seed, stopped=True) as cloud:
        before = cloud.row(ONE).host
        cloud.wait_for_move(cloud.migrate(ONE), DONE)
        row = cloud.row(ONE)
        promise(row.host != before and row.state == STOPPED, f"{row} has not moved as it was")
        promise(not cloud.guests.builds[ONE, 2], "the guest ran on the target")
        cloud.start(ONE)
        cloud.wait_for(ONE, ACTIVE)
        promise(cloud.guests.running(ONE) == [(row.host, 2)], "it does not run on the target")
        cloud.finish()


def test_a_stopped_instance_moves_without_being_started():
    play(a_stopped_instance_moves)
    assert found(a_stopped_instance_moves, faults.FORGOTTEN_POWER)


def test_a_stopped_instance_whose_move_is_reverted_or_fails_is_stopped_where_it_was():
    for fails in (False, True):
        with cloud_of_one(stopped=True) as cloud:
            before = cloud.row(ONE)
            if fails:
                cloud.fail(ONE, 2, 3)
                cloud.wait_for_move(cloud.migrate(ONE), FAILED_MOVE)
            else:
                move = cloud.migrate(ONE, confirms=False)
                cloud.wait_for_move(move, SWITCHED)
                cloud.revert(move)
                cloud.wait_for_move(move, REVERTED)
            row = cloud.row(ONE)
            assert (row.host, row.attempt, row.state) == (before.host, 1, STOPPED)
            assert (host_of(cloud).stopped, cloud.guests.running(ONE)) == ({ONE: 1}, [])
            cloud.start(ONE)
            cloud.wait_for(ONE, ACTIVE)
            cloud.finish()


@pytest.mark.parametrize("state", [POWERING_OFF, STOPPED, POWERING_ON])
def test_an_instance_of_a_dead_host_is_evacuated_and_is_as_it_was_to_be(state):
    with cloud_of_one(stopped=state != POWERING_OFF) as cloud:
        agent = cloud.process(f"{cloud.row(ONE).host}-agent")
        agent.crash()
        host_of(cloud).die()
        if state != STOPPED:
            getattr(cloud, "stop" if state == POWERING_OFF else "start")(ONE)
        cloud.wait_for(ONE, state)
        move = cloud.evacuate(ONE)
        cloud.wait_for(ONE, ACTIVE if state == POWERING_ON else STOPPED, seconds=90.0)
        cloud.wait(30.0)
        row = cloud.row(ONE)
        assert (row.attempt, row.state) == (2, ACTIVE if state == POWERING_ON else STOPPED)
        agent.start()
        cloud.wait_for_move(move, DONE)
        cloud.finish()


# Without a rule


def a_report_of_an_earlier_word_comes_late(faults, seed):
    with cloud_of_one(faults, seed) as cloud:
        changed = False

        def change_of_mind(_, message):
            nonlocal changed
            if changed or not (isinstance(message, StorePoll) and message.powered):
                return 0.0
            # The host has stopped the guest, and before that is stored the user wants it to run.
            changed = True
            cloud.start(ONE)
            return 8.0

        cloud.network.interrupt = change_of_mind
        cloud.stop(ONE)
        cloud.wait(40.0)
        promise(changed, "the user has not changed her mind")
        row = cloud.row(ONE)
        promise(row.state == ACTIVE, f"{ONE} is to run and is {row.state}")
        promise(bool(cloud.guests.running(ONE)), f"{ONE} is to run and does not")
        cloud.finish()


def test_a_report_counts_only_for_the_word_that_it_answers():
    play(a_report_of_an_earlier_word_comes_late)
    assert "is to run" in found(a_report_of_an_earlier_word_comes_late, faults.ANY_POWER)
