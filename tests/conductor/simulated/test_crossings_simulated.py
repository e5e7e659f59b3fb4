"""Moves of instances to other cells: step by step, with deaths between any two writes.

Where a rule keeps something from going wrong, the schedule is played without the rule too, and must break a
promise then.
"""

import pytest

from roost.model.instance import ACTIVE
from roost.model.instance import STOPPED as INSTANCE_STOPPED
from roost.model.move import MoveRefused
from roost.model.move_states import (
    CLEANING,
    DELETED,
    DONE,
    FAILED_MOVE,
    PREPARING,
    REQUESTED,
    SEEKING,
    SENDING,
    STARTING,
    STOPPED,
    STOPPING,
    SWITCHED,
)
from roost.state.api_database.crossings import begin_crossing, end_crossing, switch_mapping
from roost.state.cell_database.arriving_halves import (
    finish_arriving,
    let_arrive,
    release_arriving,
)
from roost.state.cell_database.building import ended_attempts_of
from roost.state.cell_database.history import read_history
from roost.state.cell_database.leaving_halves import admit_leaving, let_leave, let_start, note_ready
from roost.state.cell_database.move_work import take_seeking_moves, take_target
from roost.state.cell_database.moves import begin_move, read_steps
from support.simulation import crossing_faults as faults
from support.simulation.cloud_world import OPERATOR
from support.simulation.crossing_clouds import ONE, cloud_of_two, cross, give_up
from support.simulation.scripted import NONE, found


def test_an_instance_moves_to_another_cell_with_its_history_and_the_source_gives_its_room_away_last():
    with cloud_of_two() as cloud:
        before = cloud.row(ONE)
        move = cross(cloud)
        cloud.wait_for_move(move, STOPPING)
        assert cloud.placement.held(move).allocations == before.selection.allocations
        assert cloud.rows("c2") == {}
        cloud.wait_for_move(move, CLEANING)
        assert cloud.place == ("c2", "c2-host0")
        assert cloud.rows("c1") == {}
        assert cloud.placement.held(move).allocations == before.selection.allocations
        cloud.wait_for_move(move, DONE)
        cloud.wait(2.0)
        row = cloud.row(ONE)
        assert (row.host, row.attempt, row.move) == ("c2-host0", 2, None)
        steps = [each.state for each in cloud.read("cell/c1", read_steps(move))]
        first = (REQUESTED, SEEKING, SENDING, PREPARING, STOPPING, STOPPED, STARTING, SWITCHED, CLEANING)
        assert steps == [*first, "freeing", DONE]
        told = cloud.read("cell/c2", read_history(ONE)).transitions
        assert [each.state for each in told] == ["assigned", "starting", "active", "moving", "moved"]
        assert {each.cells for each in told[3:]} == {("c1", "c2")}
        assert cloud.read("cell/c1", read_history(ONE)) is None
        cloud.finish()


def test_an_instance_goes_there_and_back_and_there_again():
    with cloud_of_two() as cloud:
        for attempt, cell in enumerate(("c2", "c1", "c2"), start=2):
            cloud.wait_for_move(cross(cloud), DONE)
            cloud.wait(3.0)
            assert cloud.place == (cell, f"{cell}-host0")
            assert cloud.row(ONE).attempt == attempt
        cloud.finish()


def test_a_stopped_instance_goes_to_another_cell_and_stays_stopped():
    with cloud_of_two() as cloud:
        cloud.stop(ONE)
        cloud.wait_for(ONE, INSTANCE_STOPPED)
        cloud.wait_for_move(cross(cloud), DONE)
        cloud.wait(3.0)
        assert cloud.place == ("c2", "c2-host0")
        assert cloud.row(ONE).state == INSTANCE_STOPPED
        assert cloud.guests.running(ONE) == []
        cloud.start(ONE)
        cloud.wait_for(ONE, ACTIVE)
        assert cloud.guests.running(ONE) == [("c2-host0", 2)]
        cloud.finish()


def test_a_move_that_may_not_leave_its_cell_finds_no_host():
    with cloud_of_two() as cloud:
        move = cloud.migrate(ONE)
        assert "No valid host" in cloud.wait_for_move(move, FAILED_MOVE).reason
        cloud.finish()


def test_a_requested_host_of_another_cell_is_the_target():
    with cloud_of_two(hosts=2) as cloud:
        cloud.wait_for_move(cloud.migrate(ONE, across=True, to_host="c2-host1"), DONE)
        assert cloud.row(ONE).host == "c2-host1"
        cloud.finish()


@pytest.mark.parametrize("attempts", [(2,), (2, 3)])
def test_a_target_that_fails_is_followed_by_another_one_or_the_source_starts_the_guest_again(attempts):
    with cloud_of_two(hosts=2) as cloud:
        full = [each for each in cloud.placement.table.nodes if each]
        names = {cloud.guests.hosts[name].node: name for name in cloud.guests.hosts}
        blocked = cloud.placement.block(keep=cloud.row(ONE).node)
        cloud.placement.free([f"blocker-of-{node}" for node in full if names[node].startswith("c2")])
        assert blocked
        cloud.fail(ONE, *attempts)
        move = cross(cloud)
        ended = cloud.wait_for_move(move, DONE, FAILED_MOVE)
        cloud.wait(3.0)
        if attempts == (2,):
            assert ended.state == DONE
            assert cloud.row(ONE).attempt == 3
        else:
            assert "No more IP addresses" in ended.reason
            assert cloud.place == ("c1", "c1-host0")
            assert [each.attempt for each in cloud.read("cell/c1", ended_attempts_of(ONE))] == [2, 3]
        cloud.placement.free([each for each in blocked if "c2" not in each])
        cloud.finish()


LEAVING_STATES = (REQUESTED, SEEKING, SENDING, PREPARING, STOPPING, STOPPED, STARTING, CLEANING, "freeing")


@pytest.mark.parametrize("state", LEAVING_STATES)
def test_a_deletion_wins_in_each_state(state):
    with cloud_of_two() as cloud:
        move = cross(cloud)
        cloud.wait_for_move(move, state)
        cloud.watched = False
        cloud.delete(ONE)
        cloud.wait_for_move(move, DELETED, *((DONE,) if state == "freeing" else ()))
        cloud.finish()


def test_a_deletion_wins_while_one_of_the_cells_is_down():
    for away in ("c1", "c2"):
        for state in (PREPARING, STARTING, CLEANING):
            with cloud_of_two(seed=3) as cloud:
                move = cross(cloud)
                cloud.wait_for_move(move, state)
                cloud.watched = False
                cloud.take_away(f"cell/{away}", 60.0)
                cloud.delete(ONE)
                cloud.wait(40.0)
                cloud.finish()


STEPS = (
    take_seeking_moves,
    take_target,
    begin_crossing,
    admit_leaving,
    let_arrive,
    note_ready,
    let_start,
    release_arriving,
    switch_mapping,
    let_leave,
    finish_arriving,
    end_crossing,
)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("paused", [False, True], ids=["killed", "paused"])
def test_a_super_conductor_that_dies_or_stands_still_before_a_step_is_followed_by_the_other(step, paused):
    with cloud_of_two() as cloud:
        cloud.before(step, lambda process: 60.0 if paused else cloud.restart_after(process, 40.0), "super")
        move = cross(cloud)
        ended = cloud.wait_for_move(move, DONE, FAILED_MOVE, seconds=300.0)
        # A guest that waits for long is started again at its source.
        assert ended.state == DONE or "in time" in ended.reason or "longer" in ended.reason
        cloud.wait(70.0)
        cloud.finish()


@pytest.mark.parametrize("state", [SENDING, PREPARING, STOPPING, STOPPED])
def test_while_the_target_s_cell_is_down_the_instance_runs_where_it_was(state):
    with cloud_of_two() as cloud:
        cloud.before(let_start, lambda _: cloud.take_away("cell/c2", 200.0))
        move = cross(cloud)
        if state != STOPPED:
            cloud.wait_for_move(move, state)
            cloud.take_away("cell/c2", 200.0)
        ended = cloud.wait_for_move(move, FAILED_MOVE, STARTING, DONE, seconds=190.0)
        if ended.state == FAILED_MOVE:
            assert cloud.place == ("c1", "c1-host0")
            assert cloud.guests.running(ONE) == [("c1-host0", 1)]
        else:
            # The start had gone to the target's cell before that went away.
            assert state == STOPPED
        cloud.wait(220.0)
        cloud.finish()


def test_while_the_source_s_cell_is_down_the_instance_runs_at_the_target_and_is_shown_there():
    with cloud_of_two() as cloud:
        move = cross(cloud)
        cloud.wait_for_move(move, STARTING)
        cloud.wait(0.3)
        cloud.take_away("cell/c1", 120.0)
        cloud.wait(60.0)
        assert cloud.place == ("c2", "c2-host0")
        assert cloud.guests.running(ONE) == [("c2-host0", 2)]
        cloud.wait_for_move(move, DONE, seconds=200.0)
        cloud.finish()


@pytest.mark.parametrize("state", [REQUESTED, SENDING, PREPARING, STOPPING])
def test_an_aborted_move_leaves_the_instance_where_it_is(state):
    with cloud_of_two() as cloud:
        cloud.build_in(2.0)
        before = cloud.row(ONE)
        move = cross(cloud)
        cloud.wait_for_move(move, state)
        cloud.abort(move)
        ended = cloud.wait_for_move(move, FAILED_MOVE, DONE)
        if ended.state == FAILED_MOVE:
            assert "aborted the move" in ended.reason
            assert cloud.placement.held(ONE).allocations == before.selection.allocations
            cloud.wait(3.0)
            cloud.wait_for_move(cross(cloud), DONE)
        else:
            assert isinstance(cloud.answers[-1], MoveRefused)
        cloud.finish()


def test_a_source_that_is_given_up_while_the_target_starts_loses_nothing():
    for fails in (False, True):
        with cloud_of_two(build_seconds=600.0) as cloud:
            cloud.build_in(5.0)
            move = cross(cloud)
            cloud.wait_for_move(move, STARTING)
            agents = [give_up(cloud, "c1")]
            if fails:
                agents.append(give_up(cloud, "c2"))
                cloud.watched = False
            cloud.wait(60.0)
            row = cloud.row(ONE)
            if fails:
                assert row.state == "error"
                assert "host c1-host0 was given up, and c2-host0 failed: it burnt" in row.reason
            else:
                assert cloud.place == ("c2", "c2-host0")
                assert cloud.guests.running(ONE) == [("c2-host0", 2)]
            for agent in agents:
                agent.start()
            cloud.finish()


def test_a_target_that_is_given_up_ends_its_attempt():
    with cloud_of_two(build_seconds=600.0) as cloud:
        cloud.build_in(5.0)
        move = cross(cloud)
        cloud.wait_for_move(move, PREPARING)
        cloud.wait(1.0)
        agent = give_up(cloud, "c2")
        ended = cloud.wait_for_move(move, FAILED_MOVE)
        assert "it burnt" in ended.reason
        assert cloud.guests.running(ONE) == [("c1-host0", 1)]
        agent.start()
        cloud.finish()


def test_a_crossing_that_is_stored_long_after_its_move_has_failed_does_not_touch_that_of_the_next_move():
    with cloud_of_two(build_seconds=600.0) as cloud:
        cloud.fail(ONE, 2)
        cloud.pause_before(begin_crossing, 60.0, "super")
        began = cloud.loop.now
        cloud.wait_for_move(cross(cloud), FAILED_MOVE)
        cloud.wait(1.0)
        cloud.build_in(50.0)
        # One of the super conductors stands still: operators would not reach it.
        again = begin_move(
            uuid="again", instance=ONE, kind="migrate", by=OPERATOR, at=cloud.loop.now, across=True
        )
        cloud.network.databases["cell/c1"].run(again, True)
        cloud.wait_for_move("again", STOPPING)
        assert cloud.loop.now > began + 60.0
        cloud.wait_for_move("again", DONE)
        cloud.wait(3.0)
        assert cloud.place == ("c2", "c2-host0")
        cloud.finish()


# Faults


def play(script):
    """Play a script with no fault in it, with some seeds."""
    for seed in range(2):
        script(NONE, seed)


def an_instance_crosses_and_its_target_fails(faults, seed):
    with cloud_of_two(faults, seed) as cloud:
        cloud.fail(ONE, 2)
        move = cross(cloud)
        cloud.wait_for_move(move, FAILED_MOVE)
        cloud.finish()


def an_instance_crosses(faults, seed):
    with cloud_of_two(faults, seed) as cloud:
        cloud.wait_for_move(cross(cloud), DONE)
        cloud.finish()


def a_mapping_is_switched_long_after_the_instance_has_gone_back(faults, seed):
    with cloud_of_two(faults, seed) as cloud:
        cloud.pause_before(switch_mapping, 150.0, "super")
        cloud.wait_for_move(cross(cloud), DONE)
        cloud.wait(3.0)
        # One of the super conductors stands still: operators would not reach it.
        back = begin_move(
            uuid="back", instance=ONE, kind="migrate", by=OPERATOR, at=cloud.loop.now, across=True
        )
        cloud.network.databases["cell/c2"].run(back, True)
        cloud.wait_for_move("back", DONE)
        cloud.wait(160.0)
        assert cloud.place == ("c1", "c1-host0")
        cloud.finish()


def test_a_mapping_names_the_target_s_cell_only_when_the_guest_runs_there():
    assert "is not in the cell" in found(an_instance_crosses, faults.SWITCHED_EARLY)


def test_no_list_shows_an_instance_in_the_target_s_cell_before_it_runs_there():
    play(an_instance_crosses_and_its_target_fails)
    assert found(an_instance_crosses_and_its_target_fails, faults.SHOWN)


def test_what_stays_of_a_move_at_the_source_destroys_the_guest_there():
    play(an_instance_crosses)
    assert "stopped guests" in found(an_instance_crosses, faults.NOTHING_STAYS)


def test_the_start_is_given_away_only_when_the_source_has_stopped():
    assert "while it runs as" in found(an_instance_crosses, faults.GIVEN_EARLY)


def test_a_mapping_that_is_switched_late_is_refused_by_its_epoch():
    play(a_mapping_is_switched_long_after_the_instance_has_gone_back)
    assert found(a_mapping_is_switched_long_after_the_instance_has_gone_back, faults.NO_EPOCH)
