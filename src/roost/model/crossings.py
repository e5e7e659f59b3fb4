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
    any                                    the guest runs or ran there  switch: the mapping names this cell
    starting                               the same, mapped             leave: the instance's row goes
    done                                   cleaning, switched           finish: the instance is unlocked
    failed, deleted, or no such move       any                          end: no attempt arrives any more

A guest starts once: the source's cell gives the start away only after the source has said that its guest is
stopped, and takes it back only by a report that the attempt on the target has failed. Until then it ends the
move alone, whatever becomes of the other cell; from then on the target's cell does.

From when the instance is in the target's cell, the words of operators are said to the arriving half, which
has the states of a move within a cell, and the leaving half follows it:

    leaving half                           arriving half                step
    switched, reverting, continuing        another of them, cleaning    follow: the same state
    switched, reverting, continuing        resuming (it has stopped)    resume: the source starts its guest
    the same, and its start has failed     resuming                     continue: the target starts again
    cleaning, freeing, done                resuming                     continue: nothing is kept there
    undoing, discarding (the guest runs)   resuming                     return: the mapping names this cell
    discarding (the claims are exchanged)  resuming, mapped             discard: the instance's row goes
    discarding                             reverted (it has destroyed)  free: freeing, reverted
    reverted                               reverted                     end

So a revert gives the start back as it was given away. Each revert has an epoch, to which it raises that of
the crossing: the source starts its guest once for each epoch, and the target takes the start back once. What
comes late, from a revert before, changes nothing.

The target's cell has no row of the instance until the guest runs there, so no list shows the instance twice.
The source's has its row until the mapping is switched, so no list lacks it. The same holds on the way back.
"""

from typing import Literal

from roost.model.move import Move, has_returned
from roost.model.move_states import (
    CLEANING,
    DELETED,
    DISCARDING,
    DONE,
    ENDED,
    FREEING,
    ON_TARGET,
    PREPARING,
    REFUSED,
    RESUMING,
    SENDING,
    SOURCE_KEPT,
    STARTING,
    STOPPED,
    STOPPING,
    SWITCHED,
    UNDOING,
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
    "follow",
    "resume",
    "continue",
    "return",
    "discard",
    "free",
    "finish",
    "end",
]
"""The next step of a super conductor for a crossing; ``wait``: there is none."""


def next_step(leaving: Half, arriving: Half, *, is_switched: bool, is_returned: bool = False) -> CrossingStep:
    """Return the next step of a crossing.

    ``is_switched``, ``is_returned``: the mapping names the target's cell, or the source's.
    """
    if isinstance(leaving, Move) and has_returned(leaving):
        return _after_return(leaving, arriving, is_returned)
    if isinstance(arriving, Move) and (arriving.state in SOURCE_KEPT or arriving.ends_as == DONE):
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
        leaving.state in (*SOURCE_KEPT, FREEING)
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
    is_over = leaving is None or leaving.state in ENDED
    if leaving is None or leaving.state in (CLEANING, FREEING, *ENDED):
        if arriving.state == RESUMING:
            return "continue"
        return "finish" if is_over and arriving.state in (SWITCHED, CLEANING, *ENDED) else "wait"
    if leaving.state not in SOURCE_KEPT:
        return "leave"
    if leaving.state == RESUMING:
        return "wait"
    if arriving.state == RESUMING:
        return "continue" if _epoch(leaving) > _epoch(arriving) else "resume"
    return "wait" if arriving.state == leaving.state else "follow"


def _after_return(leaving: Move, arriving: Half, is_returned: bool) -> CrossingStep:
    """Return the next step of a crossing whose instance is in the source's cell again.

    The target destroys its guest when the claims are exchanged, as the move holds the target's from then on.
    """
    if not is_returned:
        return "return"
    if arriving == "silent" or leaving.state == UNDOING:
        return "wait"
    if arriving is not None and arriving.state in SOURCE_KEPT:
        return "discard"
    if arriving is not None and arriving.state not in ENDED:
        return "wait"
    if leaving.state in ENDED:
        return "end"
    return "free" if leaving.state == DISCARDING else "wait"


def _epoch(half: Move) -> int:
    """Return the epoch of the last revert that a half knows to have failed or begun."""
    return 0 if half.carried is None else half.carried.epoch


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
