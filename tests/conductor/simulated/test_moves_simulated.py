"""Moves of instances in a cloud of several conductors, cells and agents: step by step.

Where a rule keeps something from going wrong, the schedule is played without the rule too, and must break a
promise then.
"""

from contextlib import contextmanager

import pytest

from roost.model.instance import ACTIVE, POWERING_ON
from roost.model.move import MoveRefused
from roost.model.move_states import (
    CLEANING,
    CONTINUING,
    DELETED,
    DISCARDING,
    DONE,
    FAILED_MOVE,
    FREEING,
    PREPARING,
    REQUESTED,
    RESTARTING,
    RESUMING,
    RETRYING,
    REVERTED,
    REVERTING,
    STARTING,
    STOPPED,
    STOPPING,
    SWITCHED,
    UNDOING,
)
from roost.model.spec import ServerGroup
from roost.state.cell_database.building import ended_attempts_of
from roost.state.cell_database.deletions import give_up_on_host
from roost.state.cell_database.history import read_history
from roost.state.cell_database.move_ends import SOURCE_SILENT
from roost.state.cell_database.move_work import take_target
from roost.state.cell_database.moves import read_steps
from support.clouds import spec
from support.simulation import faults
from support.simulation.scripted import NONE, Scripted, found

ONE = "instance0"

FORTH = (REQUESTED, PREPARING, STOPPING, STOPPED, STARTING, SWITCHED, CLEANING, FREEING)
BACK = (REVERTING, RESUMING, UNDOING, DISCARDING, FREEING)


@contextmanager
def cloud_of_one(faults=NONE, seed=1, **named):
    """A cloud of a cell with three hosts, and one instance."""
    with Scripted(faults, seed, **{"cells": ("c1",), "hosts": 3} | named) as cloud:
        cloud.request(ONE)
        cloud.wait_for(ONE, ACTIVE)
        yield cloud


def play(script):
    """Play a script with no fault in it, with some seeds."""
    for seed in range(3):
        script(NONE, seed)


def test_an_instance_moves_and_the_source_gives_its_room_away_last():
    with cloud_of_one() as cloud:
        before = cloud.row(ONE)
        move = cloud.migrate(ONE)
        cloud.wait_for_move(move, STOPPING)
        assert cloud.row(ONE).host == before.host
        assert cloud.placement.held(move).allocations == before.selection.allocations
        cloud.wait_for_move(move, CLEANING)
        assert cloud.placement.held(move).allocations == before.selection.allocations
        ended = cloud.wait_for_move(move, DONE)
        row = cloud.row(ONE)
        assert (row.host, row.attempt, row.move) == (ended.target.host, 2, None) != (before.host, 1, None)
        steps = [each.state for each in cloud.read("cell/c1", read_steps(move))]
        assert steps == [*FORTH, DONE]
        told = [each.state for each in cloud.read("cell/c1", read_history(ONE)).transitions]
        assert told == ["assigned", "starting", "active", "moving", "moved"]
        cloud.finish()


def test_a_move_waits_for_its_word_and_can_be_reverted_or_confirmed_twice():
    for word, end, host in (("confirm", DONE, "target"), ("revert", REVERTED, "source")):
        with cloud_of_one() as cloud:
            move = cloud.migrate(ONE, confirms=False)
            waiting = cloud.wait_for_move(move, SWITCHED)
            cloud.wait(60.0)
            assert cloud.move(move) == waiting
            for _ in range(2):
                getattr(cloud, word)(move)
            cloud.wait_for_move(move, end)
            assert cloud.row(ONE).host == getattr(waiting, host).host
            assert not [each for each in cloud.answers if isinstance(each, MoveRefused)]
            # The other word comes too late.
            getattr(cloud, "revert" if word == "confirm" else "confirm")(move)
            cloud.wait(5.0)
            assert isinstance(cloud.answers[-1], MoveRefused)
            cloud.finish()


def test_an_instance_that_moved_back_moves_again_as_a_new_attempt():
    with cloud_of_one() as cloud:
        first = cloud.migrate(ONE, confirms=False)
        cloud.wait_for_move(first, SWITCHED)
        cloud.revert(first)
        cloud.wait_for_move(first, REVERTED)
        assert cloud.row(ONE).attempt == 1
        second = cloud.migrate(ONE)
        cloud.wait_for_move(second, DONE)
        assert cloud.row(ONE).attempt == 3
        assert [each.result for each in cloud.read("cell/c1", ended_attempts_of(ONE))] == [REVERTED]
        cloud.finish()


def test_only_one_move_of_an_instance_is_under_way_and_only_an_active_one_moves():
    with cloud_of_one() as cloud:
        move = cloud.migrate(ONE)
        cloud.wait_for_move(move, PREPARING)
        cloud.migrate(ONE)
        cloud.migrate("nobody")
        cloud.wait(1.0)
        assert [each.reason for each in cloud.answers if isinstance(each, MoveRefused)] == [
            f"move {move} of the instance is under way"
        ]
        assert None in cloud.answers
        cloud.wait_for_move(move, DONE)
        cloud.finish()


def test_each_member_of_an_anti_affinity_group_of_as_many_as_hosts_less_one_moves_alone():
    group = ServerGroup("group", "anti-affinity")
    members = ("member0", "member1", "member2")
    with Scripted(cells=("c1",), hosts=4) as cloud:
        for uuid in members:
            cloud.request(uuid, group=group)
            cloud.wait_for(uuid, ACTIVE)
        for uuid in members:
            before = cloud.row(uuid).host
            move = cloud.migrate(uuid)
            cloud.wait_for_move(move, REQUESTED, PREPARING)
            while cloud.row(uuid).move is not None:
                there = [{*host.guests, *host.stopped} & {*members} for host in cloud.guests.hosts.values()]
                assert max(map(len, there)) <= 1
                cloud.wait(0.1)
            assert cloud.move(move).state == DONE
            assert cloud.row(uuid).host != before
        cloud.finish()


def test_an_instance_that_grows_has_its_new_size_on_the_target_and_the_old_one_after_a_revert():
    for word, end, vcpus in (("confirm", DONE, 2), ("revert", REVERTED, 1)):
        with cloud_of_one() as cloud:
            before = cloud.row(ONE)
            move = cloud.migrate(ONE, confirms=False, flavor=spec(2, 2048).flavor)
            now = cloud.wait_for_move(move, SWITCHED)
            assert now.kind == "resize"
            assert cloud.row(ONE).spec.flavor == spec(2, 2048).flavor
            assert [*cloud.placement.held(ONE).allocations.values()] == [{"VCPU": 2}]
            assert cloud.placement.held(move).allocations == before.selection.allocations
            getattr(cloud, word)(move)
            cloud.wait_for_move(move, end)
            assert cloud.row(ONE).spec.flavor.vcpus == vcpus
            assert [*cloud.placement.held(ONE).allocations.values()] == [{"VCPU": vcpus}]
            cloud.finish()


def test_a_move_that_nobody_confirms_is_confirmed_by_itself(monkeypatch):
    monkeypatch.setattr(Scripted, "confirm_hours", 0.05)
    with cloud_of_one() as cloud:
        move = cloud.migrate(ONE, confirms=False)
        cloud.wait_for_move(move, SWITCHED)
        cloud.wait(150.0)
        assert cloud.move(move).state == SWITCHED
        cloud.wait_for_move(move, DONE)
        cloud.finish()


def test_a_target_that_fails_is_followed_by_an_alternate_and_the_source_runs_on():
    with cloud_of_one() as cloud:
        cloud.fail(ONE, 2)
        move = cloud.migrate(ONE)
        cloud.wait_for_move(move, RETRYING)
        assert cloud.guests.running(ONE) == [(cloud.row(ONE).host, 1)]
        cloud.wait_for_move(move, DONE)
        assert cloud.row(ONE).attempt == 3
        cloud.finish()


def test_without_a_target_left_the_instance_stays_and_holds_what_it_held():
    with cloud_of_one() as cloud:
        before = cloud.row(ONE)
        cloud.fail(ONE, 2, 3)
        move = cloud.migrate(ONE)
        ended = cloud.wait_for_move(move, FAILED_MOVE)
        assert "No more IP addresses" in ended.reason
        row = cloud.row(ONE)
        assert (row.host, row.attempt, row.move) == (before.host, 1, None)
        assert cloud.placement.held(ONE).allocations == before.selection.allocations
        cloud.finish()


def test_without_a_host_that_has_room_the_reason_is_the_scheduler_s():
    with cloud_of_one(hosts=1) as cloud:
        move = cloud.migrate(ONE)
        assert "No valid host" in cloud.wait_for_move(move, FAILED_MOVE).reason
        cloud.finish()


def test_a_requested_host_is_the_target():
    with cloud_of_one() as cloud:
        to = sorted(cloud.guests.hosts.keys() - {cloud.row(ONE).host})[0]
        cloud.wait_for_move(cloud.migrate(ONE, to_host=to), DONE)
        assert cloud.row(ONE).host == to
        cloud.finish()


def test_a_source_that_cannot_stop_its_guest_keeps_it_running():
    with cloud_of_one() as cloud:
        for host in cloud.guests.hosts.values():
            host.unstoppable = 1.0
        move = cloud.migrate(ONE)
        ended = cloud.wait_for_move(move, FAILED_MOVE, seconds=2_000.0)
        assert ended.reason == "the source has not stopped its guest within the time limit"
        assert cloud.guests.running(ONE) == [(ended.source.host, 1)]
        cloud.finish()


def test_a_source_that_says_that_it_cannot_stop_its_guest_ends_the_attempt_in_the_records():
    with cloud_of_one() as cloud:
        for host in cloud.guests.hosts.values():
            host.cannot_stop = True
        ended = cloud.wait_for_move(cloud.migrate(ONE), FAILED_MOVE)
        reason = "the source cannot stop its guest: the driver cannot stop guests"
        assert (ended.reason, cloud.guests.running(ONE)) == (reason, [(ended.source.host, 1)])
        told = [each for each in cloud.network.attempts if each.run == ended.run and each.finished_at]
        assert [(each.result, each.reason, each.host) for each in told] == [
            ("failed", reason, ended.target.host)
        ]
        cloud.finish()


@pytest.mark.parametrize("state", [PREPARING, STOPPED])
def test_a_deletion_ends_the_attempt_of_a_move_in_the_records(state):
    with cloud_of_one() as cloud:
        cloud.build_in(1.0)
        found = cloud.wait_for_move(cloud.migrate(ONE), state)
        cloud.delete(ONE)
        cloud.finish()
        told = [each for each in cloud.network.attempts if each.run == found.run and each.finished_at]
        assert [(each.result, each.host) for each in told] == [("abandoned", found.target.host)]


def test_a_revert_whose_source_cannot_start_leaves_the_instance_on_the_target():
    with cloud_of_one() as cloud:
        move = cloud.migrate(ONE, confirms=False)
        waiting = cloud.wait_for_move(move, SWITCHED)
        cloud.guests.hosts[waiting.source.host].unstoppable = 1.0
        cloud.revert(move)
        cloud.wait_for_move(move, CONTINUING, seconds=2_000.0)
        again = cloud.wait_for_move(move, SWITCHED)
        assert "cannot start its guest" in again.reason
        assert cloud.guests.running(ONE) == [(waiting.target.host, 2)]
        cloud.finish()


@pytest.mark.parametrize("state", [*FORTH, *BACK])
def test_a_deletion_wins_in_each_state(state):
    back = state in BACK and state != FREEING
    for seed in range(2):
        with cloud_of_one(seed=seed) as cloud:
            move = cloud.migrate(ONE, confirms=not back and state != SWITCHED)
            if back:
                cloud.wait_for_move(move, SWITCHED)
                cloud.revert(move)
            cloud.wait_for_move(move, state)
            cloud.delete(ONE)
            cloud.wait_for_move(move, DELETED)
            cloud.finish()


# ``stopped`` ends too soon for a word: `tests/conductor/test_moves_over_http.py` has it.
@pytest.mark.parametrize("state", [REQUESTED, PREPARING, STOPPING, RETRYING])
def test_an_aborted_move_leaves_the_instance_running_where_it_is(state):
    ends = set()
    for seed in range(4):
        with cloud_of_one(seed=seed) as cloud:
            if state == RETRYING:
                cloud.fail(ONE, 2)
            before = cloud.row(ONE)
            move = cloud.migrate(ONE)
            cloud.wait_for_move(move, state)
            cloud.abort(move)
            ended = cloud.wait_for_move(move, FAILED_MOVE, DONE)
            ends.add(ended.state)
            if ended.state == FAILED_MOVE:
                assert "aborted the move" in ended.reason
                row = cloud.row(ONE)
                assert (row.host, row.attempt, row.move) == (before.host, 1, None)
                assert cloud.placement.held(ONE).allocations == before.selection.allocations
                # It can move again.
                cloud.wait_for_move(cloud.migrate(ONE), DONE)
            else:
                # The target was told to start the guest before the word came.
                assert isinstance(cloud.answers[-1], MoveRefused)
            cloud.finish()
    assert FAILED_MOVE in ends, "no word came in time"


@pytest.mark.parametrize("state", [PREPARING, STOPPED, SWITCHED, RESUMING, DISCARDING])
@pytest.mark.parametrize("whose", ["source", "target"])
def test_an_agent_that_dies_in_the_middle_goes_on_when_it_is_back(whose, state):
    back = state in BACK
    with cloud_of_one() as cloud:
        move = cloud.migrate(ONE, confirms=False)
        if back:
            cloud.wait_for_move(move, SWITCHED)
            cloud.revert(move)
        now = cloud.wait_for_move(move, state)
        agent = cloud.process(f"{getattr(now, whose).host}-agent")
        agent.crash()
        cloud.loop.after(10.0, agent.start)
        cloud.wait_for_move(move, REVERTED if back else SWITCHED)
        cloud.finish()


def test_a_host_that_an_operator_gives_up_ends_what_moves_there():
    for whose, end in (("target", DONE), ("source", DELETED)):
        with cloud_of_one(build_seconds=600.0) as cloud:
            cloud.build_in(5.0)
            move = cloud.migrate(ONE)
            now = cloud.wait_for_move(move, PREPARING)
            host = getattr(now, whose).host
            cloud.process(f"{host}-agent").crash()
            gone = give_up_on_host(host=host, reason="it burnt", at=0.0, cell="c1")
            cloud.network.databases["cell/c1"].run(gone, True)
            for guest in [*cloud.guests.hosts[host].guests]:
                if guest == ONE:
                    cloud.guests.hosts[host].destroy(guest)
            assert cloud.wait_for_move(move, end).reason in (None, "it burnt")
            cloud.finish()


def test_an_instance_whose_target_is_given_up_while_its_move_waits_goes_back_to_the_source():
    for word in (None, "revert"):
        with cloud_of_one() as cloud:
            move = cloud.migrate(ONE, confirms=False)
            now = cloud.wait_for_move(move, SWITCHED)
            host = cloud.guests.hosts[now.target.host]
            agent = cloud.process(f"{host.name}-agent")
            agent.crash()
            host.die()
            if word is not None:
                cloud.revert(move)
                cloud.wait_for_move(move, REVERTING)
            gone = give_up_on_host(host=host.name, reason="it burnt", at=0.0, cell="c1")
            cloud.network.databases["cell/c1"].run(gone, True)
            cloud.wait_for_move(move, REVERTED)
            row = cloud.row(ONE)
            assert (row.state, row.host, row.attempt) == (ACTIVE, now.source.host, 1)
            assert cloud.guests.running(ONE) == [(now.source.host, 1)]
            # Its attempt is not given twice. The scheduler may still take the host that is gone for one.
            (other,) = cloud.guests.hosts.keys() - {now.source.host, now.target.host}
            cloud.wait_for_move(cloud.migrate(ONE, to_host=other), DONE)
            assert cloud.row(ONE).attempt == 3
            agent.start()
            cloud.finish()
            assert not host.off


def test_an_instance_whose_target_is_given_up_as_the_source_starts_it_again_goes_on_there():
    with cloud_of_one() as cloud:
        move = cloud.migrate(ONE, confirms=False)
        now = cloud.wait_for_move(move, SWITCHED)
        source = cloud.process(f"{now.source.host}-agent")
        source.crash()
        cloud.revert(move)
        cloud.wait_for_move(move, RESUMING)
        host = cloud.guests.hosts[now.target.host]
        agent = cloud.process(f"{host.name}-agent")
        agent.crash()
        host.die()
        gone = give_up_on_host(host=host.name, reason="it burnt", at=0.0, cell="c1")
        cloud.network.databases["cell/c1"].run(gone, True)
        source.start()
        cloud.wait_for_move(move, REVERTED)
        row = cloud.row(ONE)
        assert (row.state, row.host, row.attempt) == (ACTIVE, now.source.host, 1)
        assert cloud.guests.running(ONE) == [(now.source.host, 1)]
        agent.start()
        cloud.finish()


def test_an_instance_whose_source_dies_in_the_middle_of_its_move_is_evacuated():
    with cloud_of_one(build_seconds=20.0) as cloud:
        cloud.build_in(1.0)
        first = cloud.migrate(ONE)
        cloud.wait_for_move(first, PREPARING)
        host, agent = dead_host(cloud)
        cloud.wait_for_move(first, RESTARTING)
        second = cloud.evacuate(ONE)
        assert cloud.move(first).state == FAILED_MOVE
        cloud.wait_for_move(second, CLEANING)
        assert [name for name, _ in cloud.guests.running(ONE)] == [cloud.row(ONE).host] != [host.name]
        agent.start()
        cloud.wait_for_move(second, DONE)
        cloud.finish()


def test_a_source_that_does_not_answer_ends_the_move_within_the_limit_of_builds():
    with cloud_of_one(build_seconds=20.0) as cloud:
        source = cloud.process(f"{cloud.row(ONE).host}-agent")
        cloud.build_in(1.0)
        move = cloud.migrate(ONE)
        cloud.wait_for_move(move, PREPARING)
        source.crash()
        cloud.wait(60.0)
        assert "source has not stopped" in cloud.move(move).reason
        assert cloud.guests.running(ONE) == [(cloud.row(ONE).host, 1)]
        source.start()
        cloud.wait_for_move(move, FAILED_MOVE)
        cloud.finish()


def dead_host(cloud):
    """The host of the instance, which has lost its power, and its agent."""
    host = cloud.guests.hosts[cloud.row(ONE).host]
    agent = cloud.process(f"{host.name}-agent")
    agent.crash()
    host.die()
    return host, agent


def test_a_move_whose_source_has_died_ends_and_its_instance_can_be_evacuated_or_is_started_again():
    for is_dead in (True, False):
        with cloud_of_one() as cloud:
            cloud.fail_late(ONE, 2, 3)
            move = cloud.migrate(ONE)
            cloud.wait_for_move(move, STARTING)
            source = cloud.guests.hosts[cloud.row(ONE).host]
            agent = cloud.process(f"{source.name}-agent")
            agent.crash()
            if is_dead:
                source.die()
            cloud.wait_for_move(move, RESTARTING)
            cloud.wait(30.0)
            assert cloud.move(move).state == RESTARTING
            ended = cloud.wait_for_move(move, FAILED_MOVE, seconds=150.0)
            assert ended.reason.endswith(f"; {SOURCE_SILENT}") and "does not start it" in ended.reason
            assert (cloud.row(ONE).state, cloud.row(ONE).move) == (POWERING_ON, None)
            if is_dead:
                cloud.wait_for_move(cloud.evacuate(ONE), CLEANING)
                assert cloud.row(ONE).host != source.name
            agent.start()
            cloud.wait_for(ONE, ACTIVE)
            cloud.wait(20.0)
            cloud.finish()


def test_an_instance_is_evacuated_from_a_dead_host_and_the_host_gives_its_room_away_when_it_is_back():
    with cloud_of_one() as cloud:
        before = cloud.row(ONE)
        host, agent = dead_host(cloud)
        move = cloud.evacuate(ONE, "the rack burnt")
        cloud.wait_for_move(move, CLEANING)
        row = cloud.row(ONE)
        assert cloud.guests.running(ONE) == [(row.host, 2)] != [(host.name, 1)]
        cloud.wait(200.0)
        assert cloud.move(move).state == CLEANING
        assert cloud.placement.held(move).allocations == before.selection.allocations
        agent.start()
        cloud.wait_for_move(move, DONE)
        assert not host.off
        cloud.finish()


def test_an_evacuation_without_a_host_that_has_room_leaves_all_as_it_was():
    with cloud_of_one() as cloud:
        before = cloud.row(ONE)
        host, agent = dead_host(cloud)
        blocked = cloud.placement.block(keep=before.node)
        ended = cloud.wait_for_move(cloud.evacuate(ONE, "it is off"), FAILED_MOVE)
        assert "No valid host" in ended.reason
        assert cloud.row(ONE).host == host.name
        cloud.placement.free(blocked)
        again = cloud.evacuate(ONE, "it is off")
        cloud.wait_for_move(again, CLEANING)
        agent.start()
        cloud.wait_for_move(again, DONE)
        cloud.finish()


def a_host_comes_back_while_its_instance_is_evacuated(faults, seed):
    with cloud_of_one(faults, seed) as cloud:
        agent = cloud.process(f"{cloud.row(ONE).host}-agent")
        # It was cut off, and its guest runs.
        agent.crash()
        cloud.build_in(10.0)
        move = cloud.evacuate(ONE, "somebody says so")
        cloud.wait_for_move(move, PREPARING)
        agent.start()
        run = cloud.wait_for_move(move, FAILED_MOVE).run
        assert cloud.row(ONE).attempt == 1
        cloud.finish()
        told = {each.result for each in cloud.network.attempts if each.run == run and each.finished_at}
        assert told == {"failed"}


def test_a_sign_of_life_of_the_host_ends_an_evacuation_before_another_guest_starts():
    play(a_host_comes_back_while_its_instance_is_evacuated)
    assert "while it runs as" in found(a_host_comes_back_while_its_instance_is_evacuated, faults.NO_STAMP)


def an_instance_is_evacuated_from_a_host_that_is_only_cut_off(faults, seed):
    with cloud_of_one(faults, seed) as cloud:
        cloud.process(f"{cloud.row(ONE).host}-agent").crash()
        cloud.wait_for_move(cloud.evacuate(ONE, "a wrong word"), CLEANING, DONE)


def test_a_wrong_proof_starts_a_second_guest():
    # Nothing but the truth of the proof keeps this from happening.
    assert "while it runs as" in found(an_instance_is_evacuated_from_a_host_that_is_only_cut_off, NONE)


# Rules, and what goes wrong without them


def a_move_waits_to_be_confirmed(faults, seed):
    with cloud_of_one(faults, seed) as cloud:
        cloud.wait_for_move(cloud.migrate(ONE, confirms=False), SWITCHED)
        cloud.finish()


def test_without_a_consumer_of_its_own_a_move_holds_nothing_on_the_source():
    play(a_move_waits_to_be_confirmed)
    assert "holds nothing" in found(a_move_waits_to_be_confirmed, faults.NO_MIGRATION)


def a_source_is_slow_to_stop(faults, seed):
    with cloud_of_one(faults, seed, build_seconds=60.0) as cloud:
        source = cloud.process(f"{cloud.row(ONE).host}-agent")
        cloud.build_in(0.5)
        move = cloud.migrate(ONE)
        cloud.wait_for_move(move, PREPARING, STOPPING)
        source.stop()
        cloud.wait(20.0)
        source.go_on()
        cloud.wait_for_move(move, DONE, FAILED_MOVE)
        cloud.finish()


def test_a_target_starts_nothing_before_the_source_has_stopped():
    play(a_source_is_slow_to_stop)
    assert "while it runs as" in found(a_source_is_slow_to_stop, faults.NO_CONFIRMATION)


def a_source_is_away_when_its_move_is_confirmed(faults, seed):
    with cloud_of_one(faults, seed) as cloud:
        move = cloud.migrate(ONE, confirms=False)
        waiting = cloud.wait_for_move(move, SWITCHED)
        source = cloud.process(f"{waiting.source.host}-agent")
        source.crash()
        cloud.confirm(move)
        cloud.wait(30.0)
        cloud.loop.after(0.0, source.start)
        cloud.wait_for_move(move, DONE)
        cloud.finish()


def test_the_source_s_room_is_freed_only_when_its_guest_is_gone():
    play(a_source_is_away_when_its_move_is_confirmed)
    assert found(a_source_is_away_when_its_move_is_confirmed, faults.FREED_TOO_EARLY)


def a_conductor_comes_back_with_a_target_that_it_claimed_long_ago(faults, seed):
    with cloud_of_one(faults, seed, conductors=2) as cloud:
        cloud.pause_before(take_target, 40.0, "c1-conductor")
        move = cloud.migrate(ONE)
        cloud.wait(50.0)
        cloud.wait_for_move(move, DONE, FAILED_MOVE)
        cloud.finish()


def test_of_two_owners_of_a_move_the_later_one_counts():
    play(a_conductor_comes_back_with_a_target_that_it_claimed_long_ago)
    assert found(a_conductor_comes_back_with_a_target_that_it_claimed_long_ago, faults.NO_MOVE_OWNER)


def a_conductor_looks_at_the_claims_of_a_move_that_another_one_has_taken_over(faults, seed):
    with cloud_of_one(faults, seed, conductors=2) as cloud:
        cloud.pause_before("holdings", 40.0, "c1-conductor")
        move = cloud.migrate(ONE, confirms=False)
        cloud.wait(60.0)
        cloud.wait_for_move(move, SWITCHED, FAILED_MOVE)
        cloud.finish()


def test_an_owner_that_looks_at_claims_after_the_takeover_of_its_move_gives_nothing_back():
    play(a_conductor_looks_at_the_claims_of_a_move_that_another_one_has_taken_over)
    script = a_conductor_looks_at_the_claims_of_a_move_that_another_one_has_taken_over
    assert found(script, faults.NO_LOOK_AT_OWNERS)


def a_claim_comes_after_the_move_has_found_no_host(faults, seed):
    with cloud_of_one(faults, seed, conductors=2) as cloud:
        blocked = cloud.placement.block(keep=cloud.row(ONE).node)
        cloud.pause_before("select_destinations", 60.0, "c1-conductor")
        move = cloud.migrate(ONE)
        cloud.wait_for_move(move, FAILED_MOVE)
        cloud.placement.free(blocked)
        cloud.wait(90.0)
        cloud.finish()


def test_a_claim_that_comes_after_the_end_of_its_move_is_refused():
    play(a_claim_comes_after_the_move_has_found_no_host)
    assert found(a_claim_comes_after_the_move_has_found_no_host, faults.NO_FENCE_OF_MOVES)
