"""Moves to other cells that wait for a word: confirmed, reverted, or neither, with deaths between two writes.

Where a rule keeps something from going wrong, the schedule is played without the rule too, and must break a
promise then.
"""

import pytest

from roost.model.instance import ACTIVE, ERROR
from roost.model.instance import STOPPED as INSTANCE_STOPPED
from roost.model.move import MoveRefused
from roost.model.move_states import (
    CLEANING,
    CONTINUING,
    DELETED,
    DISCARDING,
    DONE,
    FREEING,
    RESUMING,
    REVERTED,
    REVERTING,
    STARTING,
    SWITCHED,
    UNDOING,
)
from roost.state.api_database.crossings import end_crossing, switch_mapping, turn_crossing
from roost.state.cell_database.arriving_halves import continue_arriving, discard_arriving
from roost.state.cell_database.building import ended_attempts_of
from roost.state.cell_database.history import read_history
from roost.state.cell_database.leaving_halves import (
    follow_arriving,
    free_leaving,
    let_leave,
    resume_leaving,
)
from roost.state.cell_database.move_work import go_on
from roost.state.cell_database.moves import read_steps, revert_move
from support.clouds import spec
from support.simulation import crossing_faults as faults
from support.simulation.crossing_clouds import ONE, cloud_of_two, cross, give_up, resize
from support.simulation.scripted import NONE, Scripted, found

BACK = (REVERTING, RESUMING, UNDOING, DISCARDING, FREEING)


def is_as_before(cloud, before):
    """Check that the instance is as it was before its move."""
    row = cloud.row(ONE)
    assert cloud.place == ("c1", "c1-host0")
    assert (row.flavor, row.spec, row.attempt, row.move) == (before.flavor, before.spec, 1, None)
    assert cloud.placement.held(ONE).allocations == before.selection.allocations


def test_an_instance_gets_another_size_in_another_cell_and_the_source_keeps_the_guest_of_before():
    with cloud_of_two() as cloud:
        before = cloud.row(ONE)
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        cloud.wait(60.0)
        row = cloud.row(ONE)
        assert cloud.place == ("c2", "c2-host0")
        assert (row.spec.flavor, row.attempt) == (spec(2).flavor, 2)
        assert cloud.placement.held(move).allocations == before.selection.allocations
        assert [*cloud.placement.held(ONE).allocations.values()] == [{"VCPU": 2}]
        assert cloud.guests.running(ONE) == [("c2-host0", 2)]
        assert cloud.guests.hosts["c1-host0"].stopped == {ONE: 1}
        for _ in range(2):
            cloud.confirm(move)
            cloud.wait(0.5)
        cloud.wait_for_move(move, DONE)
        cloud.wait(3.0)
        assert not [each for each in cloud.answers if isinstance(each, MoveRefused)]
        assert cloud.row(ONE).move is None
        assert cloud.placement.held(move) is None
        cloud.revert(move)
        cloud.wait(1.0)
        assert isinstance(cloud.answers[-1], MoveRefused)
        cloud.finish()


def test_a_move_to_another_cell_is_reverted_and_the_instance_is_as_it_was():
    with cloud_of_two() as cloud:
        before = cloud.row(ONE)
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        cloud.revert(move)
        cloud.wait_for_move(move, UNDOING)
        cloud.revert(move)
        cloud.wait_for_move(move, REVERTED)
        cloud.wait(3.0)
        assert not [each for each in cloud.answers if isinstance(each, MoveRefused)]
        is_as_before(cloud, before)
        assert cloud.guests.running(ONE) == [("c1-host0", 1)]
        assert cloud.rows("c2") == {}
        assert cloud.placement.held(move) is None
        steps = [each.state for each in cloud.read("cell/c1", read_steps(move))]
        assert [each for each in steps[steps.index(SWITCHED) + 1 :] if each != REVERTING] == [
            *BACK[1:],
            REVERTED,
        ]
        told = cloud.read("cell/c1", read_history(ONE)).transitions
        assert [each.state for each in told[3:]] == ["moving", "moved", "moved"]
        assert [each.cells for each in told[3:]] == [("c1", "c2"), ("c1", "c2"), ("c2", "c1")]
        assert cloud.read("cell/c2", read_history(ONE)) is None
        assert [each.result for each in cloud.read("cell/c1", ended_attempts_of(ONE))] == [REVERTED]
        # It goes again, as an attempt that nothing has had.
        cloud.wait_for_move(cross(cloud), DONE)
        cloud.wait(3.0)
        assert cloud.row(ONE).attempt == 3
        cloud.finish()


def test_a_move_to_another_cell_that_nobody_confirms_is_confirmed_by_itself(monkeypatch):
    monkeypatch.setattr(Scripted, "confirm_hours", 0.05)
    with cloud_of_two() as cloud:
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        cloud.wait(150.0)
        assert cloud.move(move).state == SWITCHED
        cloud.wait_for_move(move, DONE)
        cloud.wait(3.0)
        assert cloud.place == ("c2", "c2-host0")
        cloud.finish()


def test_a_stopped_instance_comes_back_from_another_cell_and_stays_stopped():
    with cloud_of_two() as cloud:
        cloud.stop(ONE)
        cloud.wait_for(ONE, INSTANCE_STOPPED)
        before = cloud.row(ONE)
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        cloud.revert(move)
        cloud.wait_for_move(move, REVERTED)
        cloud.wait(3.0)
        is_as_before(cloud, before)
        assert cloud.row(ONE).state == INSTANCE_STOPPED
        assert cloud.guests.running(ONE) == []
        cloud.start(ONE)
        cloud.wait_for(ONE, ACTIVE)
        assert cloud.guests.running(ONE) == [("c1-host0", 1)]
        cloud.finish()


def test_of_two_words_at_once_one_counts():
    ends = set()
    for seed in range(6):
        with cloud_of_two(seed=seed) as cloud:
            move = resize(cloud)
            cloud.wait_for_move(move, SWITCHED)
            for word in (cloud.confirm, cloud.revert)[:: 1 if seed % 2 else -1]:
                word(move)
            ends.add(cloud.wait_for_move(move, DONE, REVERTED).state)
            cloud.wait(3.0)
            assert sum(isinstance(each, MoveRefused) for each in cloud.answers) == 1
            cloud.finish()
    assert ends == {DONE, REVERTED}


def test_a_move_that_waits_in_another_cell_is_not_aborted():
    with cloud_of_two() as cloud:
        move = resize(cloud)
        for state in (STARTING, SWITCHED):
            cloud.wait_for_move(move, state)
            cloud.abort(move)
            cloud.wait(0.5)
            assert isinstance(cloud.answers[-1], MoveRefused)
        cloud.confirm(move)
        cloud.wait_for_move(move, DONE)
        cloud.finish()


def test_a_source_that_cannot_start_its_guest_leaves_the_instance_at_the_target_and_may_be_tried_again():
    with cloud_of_two() as cloud:
        before = cloud.row(ONE)
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        for _ in range(2):
            cloud.guests.hosts["c1-host0"].unstoppable = 1.0
            cloud.revert(move)
            cloud.wait_for_move(move, CONTINUING, seconds=2_000.0)
            again = cloud.wait_for_move(move, SWITCHED)
            assert "source cannot start its guest" in again.reason
            assert cloud.place == ("c2", "c2-host0")
            assert cloud.guests.running(ONE) == [("c2-host0", 2)]
        cloud.guests.hosts["c1-host0"].unstoppable = 0.0
        cloud.revert(move)
        cloud.wait_for_move(move, REVERTED)
        is_as_before(cloud, before)
        cloud.finish()


def test_a_target_that_cannot_stop_its_guest_keeps_the_instance():
    with cloud_of_two() as cloud:
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        cloud.guests.hosts["c2-host0"].unstoppable = 1.0
        cloud.revert(move)
        cloud.wait_for_move(move, REVERTING, CONTINUING, seconds=2_000.0)
        cloud.guests.hosts["c2-host0"].unstoppable = 0.0
        cloud.wait(60.0)
        ended = cloud.wait_for_move(move, SWITCHED, REVERTED)
        if ended.state == SWITCHED:
            assert "target cannot stop its guest" in ended.reason
            cloud.confirm(move)
            cloud.wait_for_move(move, DONE)
        cloud.finish()


@pytest.mark.parametrize("state", [SWITCHED, CLEANING, *BACK])
def test_a_deletion_wins_in_each_state(state):
    for seed in range(2):
        with cloud_of_two(seed=seed) as cloud:
            move = resize(cloud)
            cloud.wait_for_move(move, SWITCHED)
            if state == CLEANING:
                cloud.confirm(move)
            elif state != SWITCHED:
                cloud.revert(move)
            cloud.wait_for_move(move, state)
            cloud.watched = False
            cloud.delete(ONE)
            cloud.wait_for_move(move, DELETED, *((REVERTED,) if state == FREEING else ()))
            cloud.finish()


@pytest.mark.parametrize("away", ["c1", "c2"])
@pytest.mark.parametrize("state", [SWITCHED, RESUMING, DISCARDING])
def test_a_deletion_wins_while_one_of_the_cells_is_down(state, away):
    with cloud_of_two(seed=3) as cloud:
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        if state != SWITCHED:
            cloud.revert(move)
            cloud.wait_for_move(move, state)
        cloud.watched = False
        cloud.take_away(f"cell/{away}", 60.0)
        cloud.delete(ONE)
        cloud.wait(40.0)
        cloud.finish()


@pytest.mark.parametrize("away", ["c1", "c2", "api"])
@pytest.mark.parametrize("state", [REVERTING, RESUMING, UNDOING, DISCARDING])
def test_a_revert_goes_on_when_a_database_is_back(state, away):
    with cloud_of_two(seed=7) as cloud:  # its leaving half follows in time to be seen "reverting"
        before = cloud.row(ONE)
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        cloud.revert(move)
        cloud.wait_for_move(move, state)
        cloud.take_away(away if away == "api" else f"cell/{away}", 100.0)
        cloud.wait(90.0)
        assert len(cloud.guests.running(ONE)) <= 1
        cloud.wait_for_move(move, REVERTED, seconds=200.0)
        cloud.wait(3.0)
        is_as_before(cloud, before)
        cloud.finish()


STEPS = (follow_arriving, turn_crossing, resume_leaving, switch_mapping, discard_arriving, free_leaving)
DEATHS = pytest.mark.parametrize("paused", [False, True], ids=["killed", "paused"])


@pytest.mark.parametrize("step", [*STEPS, end_crossing])
@DEATHS
def test_a_super_conductor_that_dies_or_stands_still_before_a_step_back_is_followed_by_the_other(
    step, paused
):
    with cloud_of_two() as cloud:
        before = cloud.row(ONE)
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        cloud.before(step, lambda process: 60.0 if paused else cloud.restart_after(process, 40.0), "super")
        # One of the super conductors may stand still: operators would not reach it.
        cloud.network.databases["cell/c2"].run(revert_move(move, cloud.loop.now), True)
        cloud.wait_for_move(move, REVERTED, seconds=300.0)
        cloud.wait(70.0)
        is_as_before(cloud, before)
        cloud.finish()


@pytest.mark.parametrize("step", [let_leave, follow_arriving])
@DEATHS
def test_a_super_conductor_that_dies_or_stands_still_before_a_word_is_carried_is_followed(step, paused):
    with cloud_of_two() as cloud:
        cloud.before(step, lambda process: 60.0 if paused else cloud.restart_after(process, 40.0), "super")
        move = resize(cloud)
        if step is follow_arriving:
            cloud.wait_for_move(move, SWITCHED)
            cloud.confirm(move)
            cloud.wait_for_move(move, DONE, seconds=300.0)
        else:
            cloud.wait_for_move(move, SWITCHED, seconds=300.0)
        assert cloud.place == ("c2", "c2-host0")
        cloud.wait(70.0)
        cloud.finish()


@pytest.mark.parametrize("state", [UNDOING, FREEING])
@DEATHS
def test_a_conductor_of_the_source_s_cell_that_dies_or_stands_still_is_followed(state, paused):
    with cloud_of_two(conductors=2) as cloud:
        before = cloud.row(ONE)
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        if state == FREEING:
            cloud.revert(move)
            cloud.wait_for_move(move, DISCARDING)
        cloud.before(go_on, lambda process: 60.0 if paused else cloud.restart_after(process, 40.0), "c1-")
        if state == UNDOING:
            cloud.revert(move)
        cloud.wait_for_move(move, REVERTED, seconds=300.0)
        cloud.wait(70.0)
        is_as_before(cloud, before)
        cloud.finish()


@pytest.mark.parametrize("state", [SWITCHED, REVERTING, RESUMING, UNDOING, DISCARDING])
@pytest.mark.parametrize("whose", ["c1", "c2"])
def test_an_agent_that_dies_in_the_middle_goes_on_when_it_is_back(whose, state):
    with cloud_of_two() as cloud:
        before = cloud.row(ONE)
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        if state != SWITCHED:
            cloud.revert(move)
            cloud.wait_for_move(move, state)
        agent = cloud.process(f"{whose}-host0-agent")
        agent.crash()
        cloud.loop.after(10.0, agent.start)
        if state == SWITCHED:
            cloud.revert(move)
        cloud.wait_for_move(move, REVERTED)
        cloud.wait(3.0)
        is_as_before(cloud, before)
        cloud.finish()


@pytest.mark.parametrize("state", [SWITCHED, REVERTING, RESUMING, DISCARDING])
def test_an_instance_whose_target_is_given_up_goes_back_to_the_source_s_cell(state):
    with cloud_of_two() as cloud:
        before = cloud.row(ONE)
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        if state != SWITCHED:
            cloud.revert(move)
            cloud.wait_for_move(move, state)
        agent = give_up(cloud, "c2")
        ended = cloud.wait_for_move(move, REVERTED)
        assert ended.reason == (None if state in (RESUMING, DISCARDING) else "it burnt")
        cloud.wait(3.0)
        is_as_before(cloud, before)
        assert cloud.guests.running(ONE) == [("c1-host0", 1)]
        agent.start()
        cloud.finish()
        assert not cloud.guests.hosts["c2-host0"].off


def test_a_source_that_is_given_up_while_it_starts_the_guest_gives_the_start_back():
    with cloud_of_two() as cloud:
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        cloud.revert(move)
        cloud.wait_for_move(move, RESUMING)
        agent = give_up(cloud, "c1")
        again = cloud.wait_for_move(move, SWITCHED)
        assert "it burnt" in again.reason
        assert cloud.place == ("c2", "c2-host0")
        assert cloud.guests.running(ONE) == [("c2-host0", 2)]
        agent.start()
        cloud.wait(10.0)
        cloud.confirm(move)
        cloud.wait_for_move(move, DONE)
        cloud.finish()


@pytest.mark.parametrize("state", [UNDOING, DISCARDING])
def test_an_instance_whose_source_is_given_up_after_it_has_come_back_is_in_error_in_one_cell(state):
    with cloud_of_two() as cloud:
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        cloud.revert(move)
        cloud.wait_for_move(move, state)
        cloud.watched = False
        agent = give_up(cloud, "c1")
        cloud.wait(60.0)
        assert cloud.rows("c2") == {}
        assert cloud.rows("c1")[ONE].state == ERROR
        assert cloud.mapping().cell == "c1"
        agent.start()
        cloud.finish()


@pytest.mark.parametrize("word", ["confirm", "revert"])
def test_a_move_whose_source_is_given_up_while_the_target_starts_has_nothing_to_go_back_to(word):
    with cloud_of_two() as cloud:
        move = resize(cloud)
        cloud.wait_for_move(move, STARTING)
        agent = give_up(cloud, "c1")
        if word == "revert":
            # The word comes before the source's cell knows that the instance has left.
            cloud.before(
                let_leave,
                lambda _: (
                    cloud.network.databases["cell/c2"].run(revert_move(move, cloud.loop.now), True) and None
                ),
                "super",
            )
        cloud.wait_for_move(move, DONE)
        cloud.wait(10.0)
        assert cloud.place == ("c2", "c2-host0")
        assert cloud.guests.running(ONE) == [("c2-host0", 2)]
        assert cloud.row(ONE).move is None
        agent.start()
        cloud.finish()


# Faults


def an_instance_comes_back(faults, seed):
    with cloud_of_two(faults, seed) as cloud:
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        cloud.revert(move)
        cloud.wait_for_move(move, REVERTED)
        cloud.wait(3.0)
        cloud.finish()


def a_start_comes_back_late(faults, seed):
    """The source gets a start for the second time, long after it has failed with the first."""
    with cloud_of_two(faults, seed) as cloud:
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        cloud.guests.hosts["c1-host0"].unstoppable = 1.0
        cloud.pause_before(resume_leaving, 60.0, "super")
        cloud.network.databases["cell/c2"].run(revert_move(move, cloud.loop.now), True)
        cloud.wait_for_move(move, CONTINUING, seconds=2_000.0)
        cloud.wait_for_move(move, SWITCHED)
        cloud.guests.hosts["c1-host0"].unstoppable = 0.0
        cloud.wait(70.0)
        assert cloud.guests.running(ONE) == [("c2-host0", 2)]
        cloud.finish()


def a_start_is_taken_back_late(faults, seed):
    """The target takes a start back for the second time, while the source has got it by another revert."""
    with cloud_of_two(faults, seed) as cloud:
        move = resize(cloud)
        cloud.wait_for_move(move, SWITCHED)
        cloud.guests.hosts["c1-host0"].unstoppable = 1.0
        cloud.pause_before(continue_arriving, 90.0, "super")
        cloud.network.databases["cell/c2"].run(revert_move(move, cloud.loop.now), True)
        cloud.wait_for_move(move, CONTINUING, seconds=2_000.0)
        cloud.wait_for_move(move, SWITCHED)
        cloud.guests.hosts["c1-host0"].unstoppable = 0.0
        # The claims are not exchanged meanwhile, so the target's half waits.
        cloud.pause_before(go_on, 120.0, "c1-")
        cloud.network.databases["cell/c2"].run(revert_move(move, cloud.loop.now), True)
        cloud.wait_for_move(move, UNDOING)
        cloud.wait(100.0)
        assert cloud.guests.running(ONE) == [("c1-host0", 1)]
        cloud.wait_for_move(move, REVERTED)
        cloud.finish()


def play(script):
    """Play a script with no fault in it, with some seeds."""
    for seed in range(2):
        script(NONE, seed)


def test_a_mapping_names_the_source_s_cell_only_when_the_guest_runs_there():
    play(an_instance_comes_back)
    assert "is not in the cell" in found(an_instance_comes_back, faults.RETURNED_EARLY)


def test_the_instance_leaves_the_target_s_cell_only_when_the_mapping_names_the_source_s():
    assert "is not in the cell" in found(an_instance_comes_back, faults.DISCARDED_EARLY)


def test_the_start_is_given_back_only_when_the_target_has_stopped():
    assert "while it runs as" in found(an_instance_comes_back, faults.BACK_EARLY)


def test_a_start_that_comes_back_late_is_refused_by_its_epoch():
    play(a_start_comes_back_late)
    assert found(a_start_comes_back_late, faults.NO_REVERT_EPOCH)


def test_a_start_that_is_taken_back_late_is_refused_by_its_epoch():
    play(a_start_is_taken_back_late)
    assert "while it runs as" in found(a_start_is_taken_back_late, faults.NO_CONTINUE_EPOCH)
