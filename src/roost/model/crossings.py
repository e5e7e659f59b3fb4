"""Crossings: how the two halves of a move to another cell go on together. A pure table, without I/O.

No transaction has two databases, so each cell has a row of the move, and a super conductor carries facts from
one to the other. The *leaving* half, in the source's cell, is the move: it has the states of
`roost.model.move` and all that is told of the move. The *arriving* half has what the target needs:

    leaving half                           arriving half                step
    sending                                any                          admit: is there room in both cells?
    preparing, stopping, stopped, starting none, an earlier attempt     arrive: the target prepares
    preparing                              stopping (it is ready)       ready: the source stops its guest
    stopped                                stopping                     give: the start goes away: starting
    starting                               stopping                     release: the target may start: stopped
    preparing, stopping, stopped, starting refused                      fail: retrying, or back
    retrying, restarting, returning        preparing, stopping          recall: the target destroys
    any                                    cleaning (the guest runs)    switch: the mapping names this cell
    starting                               cleaning, mapped             leave: the instance's row goes
    done                                   cleaning, mapped             finish: the instance is unlocked
    failed, deleted, or no such move       any                          end: no attempt arrives any more

A guest starts once: the source's cell gives the start away only after the source has said that its guest is
stopped, and takes it back only by a report that the attempt on the target has failed. Until then it ends the
move alone, whatever becomes of the other cell; from then on the target's cell does.

The target's cell has no row of the instance until the guest runs there, so no list shows the instance twice.
The source's has its row until the mapping is switched, so no list lacks it.
"""

from typing import Literal

from roost.model.move import (
    CLEANING,
    DELETED,
    DONE,
    ENDED,
    FREEING,
    ON_TARGET,
    PREPARING,
    REFUSED,
    SENDING,
    STARTING,
    STOPPED,
    STOPPING,
    Move,
)

Silent = Literal["silent"]
"""In place of a half: its cell does not answer."""

Half = Move | Silent | None
"""A half as far as it is known; None: its cell has none."""

CrossingStep = Literal[
    "wait",
    "admit",
    "arrive",
    "ready",
    "give",
    "release",
    "fail",
    "recall",
    "switch",
    "leave",
    "finish",
    "end",
]
"""The next step of a super conductor for a crossing; ``wait``: there is none."""


def next_step(leaving: Half, arriving: Half, *, is_switched: bool) -> CrossingStep:
    """Return the next step of a crossing. ``is_switched``: the mapping names the target's cell."""
    if isinstance(arriving, Move) and arriving.ends_as == DONE:
        return _after_arrival(leaving, arriving, is_switched)
    if leaving == "silent":
        return "wait"
    if leaving is None or leaving.state in ENDED:
        return "wait" if arriving == "silent" else "end"
    if leaving.state == SENDING:
        return "admit"
    if arriving == "silent":
        return "wait"
    if leaving.state in ON_TARGET:
        return _on_target(leaving, arriving)
    if (
        leaving.state in (CLEANING, FREEING)
        or arriving is None
        or arriving.state not in (PREPARING, STOPPING)
    ):
        return "wait"
    return "recall"


def _after_arrival(leaving: Half, arriving: Move, is_switched: bool) -> CrossingStep:
    """Return the next step of a crossing whose instance runs, or has run, in the target's cell.

    One that was finished before changes no mapping: the instance may have gone on.
    """
    if arriving.state == DONE:
        return "finish"
    if not is_switched:
        return "switch"
    if leaving == "silent":
        return "wait"
    if leaving is None or leaving.state in ENDED:
        return "finish"
    return "wait" if leaving.state in (CLEANING, FREEING) else "leave"


def _on_target(leaving: Move, arriving: Move | None) -> CrossingStep:
    assert leaving.target is not None
    attempt = leaving.target.attempt
    if arriving is not None and arriving.state == DELETED:
        # The deletion comes to the source's cell as well.
        return "wait"
    if arriving is None or (arriving.target is not None and arriving.target.attempt < attempt):
        return "fail" if arriving is not None and arriving.state in ENDED else "arrive"
    if arriving.state in (REFUSED, *ENDED) or arriving.target is None or arriving.target.attempt > attempt:
        return "fail"
    if arriving.state == STOPPING:
        step: dict[str, CrossingStep] = {PREPARING: "ready", STOPPED: "give", STARTING: "release"}
        return step.get(leaving.state, "wait")
    # The target has got the start: the source's cell was taken back to an earlier state.
    taken_back = arriving.state in (STOPPED, STARTING) and leaving.state != STARTING
    return "give" if taken_back else "wait"
