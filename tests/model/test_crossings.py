"""The table of crossings: the next step by what both halves of a move are."""

from itertools import product

import msgspec
import pytest

from roost.model.crossings import CrossingStep, next_step
from roost.model.instance import Requester
from roost.model.move import ARRIVING, LEAVING, Carried, Move, MovePlace
from roost.model.move_states import (
    CLEANING,
    CONTINUING,
    DELETED,
    DISCARDING,
    DONE,
    ENDED,
    FAILED_MOVE,
    FREEING,
    PREPARING,
    REFUSED,
    RESUMING,
    RETRYING,
    REVERTED,
    REVERTING,
    SENDING,
    SOURCE_KEPT,
    STARTING,
    STOPPED,
    STOPPING,
    SWITCHED,
    UNDER_WAY,
    UNDOING,
)
from support.cells import instance, selection
from support.clouds import spec

BACK = (UNDOING, DISCARDING, FREEING, REVERTED)


def half(side: str, state: str, epoch: int = 7, ends_as: str | None = None) -> Move:
    """A half in a state. A leaving one whose instance has come back carries nothing."""
    carries = side == ARRIVING or (state in (*SOURCE_KEPT, FREEING, DONE, DELETED) and ends_as != REVERTED)
    ends = {CLEANING: DONE, DONE: DONE, **dict.fromkeys((REVERTING, RESUMING), REVERTED)}
    if side == LEAVING:
        ends |= dict.fromkeys((UNDOING, DISCARDING, REVERTED), REVERTED)
    return Move(
        uuid="m",
        instance="i",
        kind="resize",
        state=state,
        source=MovePlace(1, selection("a"), spec(1)),
        target=MovePlace(2, selection("b"), spec(2)),
        spec=spec(2),
        by=Requester("u", "p", "r"),
        began=0.0,
        changed_at=0.0,
        side=side,
        other_cell="c",
        ends_as=ends_as or ends.get(state),
        carried=Carried(instance("i", "a"), epoch=epoch) if carries else None,
    )


TABLE: tuple[tuple[str | None, str | None, CrossingStep], ...] = (
    (SENDING, None, "admit"),
    (PREPARING, None, "arrive"),
    (PREPARING, STOPPING, "ready"),
    (STOPPED, STOPPING, "give"),
    (STARTING, STOPPING, "release"),
    (STARTING, REFUSED, "fail"),
    (RETRYING, PREPARING, "recall"),
    (STARTING, CLEANING, "leave"),
    (STARTING, SWITCHED, "leave"),
    (STARTING, RESUMING, "leave"),
    (SWITCHED, SWITCHED, "wait"),
    (SWITCHED, REVERTING, "follow"),
    (SWITCHED, CLEANING, "follow"),
    (REVERTING, CONTINUING, "follow"),
    (CONTINUING, SWITCHED, "follow"),
    (SWITCHED, RESUMING, "resume"),
    (REVERTING, RESUMING, "resume"),
    (RESUMING, RESUMING, "wait"),
    (CLEANING, CLEANING, "wait"),
    (FREEING, RESUMING, "continue"),
    (UNDOING, RESUMING, "wait"),
    (DISCARDING, RESUMING, "discard"),
    (DISCARDING, DISCARDING, "wait"),
    (DISCARDING, REVERTED, "free"),
    (REVERTED, REVERTED, "end"),
    (DONE, CLEANING, "finish"),
    (DONE, SWITCHED, "finish"),
    (DONE, CONTINUING, "wait"),
    (DONE, DONE, "finish"),
    (FAILED_MOVE, PREPARING, "end"),
    (None, STOPPING, "end"),
)


@pytest.mark.parametrize(("leaving", "arriving", "step"), TABLE)
def test_the_next_step_follows_from_both_halves(leaving, arriving, step):
    there = None if leaving is None else half(LEAVING, leaving)
    other = None if arriving is None else half(ARRIVING, arriving)
    assert next_step(there, other, is_switched=True, is_returned=True) == step


def test_a_start_that_has_failed_goes_back_to_the_target_and_another_revert_resumes_again():
    failed, before = half(LEAVING, CONTINUING, epoch=8), half(ARRIVING, RESUMING, epoch=7)
    assert next_step(failed, before, is_switched=True) == "continue"
    assert next_step(failed, half(ARRIVING, RESUMING, epoch=8), is_switched=True) == "resume"


def test_the_mapping_is_switched_before_an_instance_is_taken_out_of_a_cell():
    arrived = half(ARRIVING, SWITCHED)
    assert next_step(half(LEAVING, STARTING), arrived, is_switched=False) == "switch"
    assert next_step("silent", arrived, is_switched=False) == "switch"
    back = half(LEAVING, DISCARDING)
    for arriving in (half(ARRIVING, RESUMING), "silent"):
        assert next_step(back, arriving, is_switched=True, is_returned=False) == "return"
        assert next_step(back, arriving, is_switched=False, is_returned=True) in ("discard", "wait")


def test_no_two_hosts_have_the_start():
    """Of all pairs of halves only few let a host start its guest, or take the instance out of a cell."""
    states = (*UNDER_WAY, *ENDED)
    for leaving, arriving in product(states, states):
        for epoch in (6, 7, 8):
            there, other = half(LEAVING, leaving, epoch), half(ARRIVING, arriving)
            step = next_step(there, other, is_switched=True, is_returned=True)
            if step == "release":
                assert (leaving, arriving) == (STARTING, STOPPING)
            elif step == "resume":
                assert leaving in (SWITCHED, REVERTING, CONTINUING)
                assert arriving == RESUMING
                assert epoch <= 7
            elif step == "continue":
                assert arriving == RESUMING
                assert leaving in (CLEANING, FREEING, *ENDED) or epoch > 7
                assert leaving not in (RESUMING, *BACK[:2], REVERTED)
            elif step == "discard":
                assert leaving in (DISCARDING, REVERTED)
            elif step == "leave":
                assert arriving in (*SOURCE_KEPT, *ENDED)


def test_an_instance_that_was_given_up_after_it_came_back_leaves_the_target_s_cell():
    gone = msgspec.structs.replace(half(LEAVING, DELETED, ends_as=REVERTED), carried=None)
    assert next_step(gone, half(ARRIVING, RESUMING), is_switched=True) == "return"
    assert next_step(gone, half(ARRIVING, RESUMING), is_switched=True, is_returned=True) == "discard"
    assert next_step(gone, half(ARRIVING, REVERTED), is_switched=True, is_returned=True) == "end"
