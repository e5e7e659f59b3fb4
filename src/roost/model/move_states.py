"""The states of moves: how each is left, and what each wants of the hosts and conductors.

    requested ─▶ preparing ─▶ stopping ─▶ stopped ─▶ starting ─▶ switched ─▶ cleaning ─▶ freeing ─▶ done

    A move of a guest that runs on goes    requested ─▶ receiving ─▶ switching ─▶ landing ─▶ switched ─▶ …

    from                                          to          because
    preparing, stopping, stopped, starting        retrying    the attempt failed on the target
    preparing, stopping, stopped                  restarting  it was aborted, or its time is over
    preparing                                     returning   it was aborted, or the dead host is back
    requested, retrying                           stopping    the target is the source, which stops its guest
    reverting                                     undoing     the guest was stopped before the move began
    receiving                                     retrying    the attempt failed on the target
    receiving                                     returning   it was aborted
    switching                                     retrying    the source says that the guest runs on there
    switching, cancelling                         landing     the source says that it has no guest any more
    switching, cancelling, landing                switched    the target says that the guest runs there
    switching                                     cancelling  it was aborted, or its time is over
    switching, cancelling                         cancelling  the target was given up
    cancelling                                    returning   the source says that the guest runs on there
    cancelling, landing                           restarting  neither host has the guest
    switching, cancelling, landing                freeing     the source was given up, or is dead
    retrying                                      preparing, receiving  a conductor took the next alternate
    stopping, retrying                            restarting  no target is left; the source was told to stop
    requested, retrying                           returning   no target is left; the source runs
    requested                                     seeking     no host of the cell takes it, others may
    seeking                                       preparing   a super conductor claimed a target after all
    seeking                                       returning   no host of any cell takes it
    seeking, retrying                             sending     the target that is claimed is in another cell
    sending                                       preparing   its cell has room for the move, and is told
    sending                                       retrying    its cell did not answer in time
    preparing                                     sending     its cell has no room for the move now
    sending                                       restarting, returning  as preparing
    restarting                                    returning   the source has started its guest again
    restarting                                    returning   it is silent: the instance orders the start
    returning                                     failed      the instance holds what it held before
    switched                                      reverting   a revert was asked for
    reverting                                     resuming    the target has stopped its guest
    switched, reverting, continuing               resuming    the target was given up
    reverting                                     resuming    the target is dead
    resuming                                      undoing     the source runs, the instance's row is its again
    undoing                                       discarding  the claims of instance and move are exchanged
    discarding                                    freeing     the target has destroyed its guest
    reverting, resuming                           continuing  the revert failed; the target starts again
    resuming                                      continuing  the source was given up, or is dead
    continuing                                    switched    the target has started its guest, or is dead
    cleaning, discarding                          freeing     the host was given up, or is silent while
                                                              that of the instance is dead
    resuming                                      discarding  the instance runs in the source's cell again
    discarding                                    reverted    as freeing, in another cell than the source's
    any                                           deleted     the instance was deleted, or given up

A guest that moves while it runs is on one of two hosts, and while it goes over nobody knows on which. So in
``switching`` and ``cancelling`` neither host starts or destroys anything by itself, and no time limit does:
the first host that says what it has decides. The source says that the guest runs on there, or that it has
none any more; the target that it runs there. If both are silent, the move waits for them, or for an operator.
"""

from typing import Final

from roost.model.instance import OrderKind

REQUESTED: Final = "requested"
"""Accepted; the instance is locked. A conductor claims a target."""
SEEKING: Final = "seeking"
"""No host of the cell takes the instance. A super conductor, whose scheduler knows all, claims one of any."""
SENDING: Final = "sending"
"""A target in another cell is claimed. A super conductor tells its cell, as soon as that has room."""
PREPARING: Final = "preparing"
"""The target prepares a guest of the next attempt, and asks whether it may start it."""
STOPPING: Final = "stopping"
"""The target is ready. The source is told to stop its guest."""
STOPPED: Final = "stopped"
"""The source has stopped its guest. The target may start its own as soon as it asks."""
STARTING: Final = "starting"
"""The target was told to start its guest. From here only the target, or an operator, can end the attempt."""
RECEIVING: Final = "receiving"
"""The target prepares to receive a running guest, and asks whether it may come."""
SWITCHING: Final = "switching"
"""The target is ready. The source is told to have its guest go there."""
CANCELLING: Final = "cancelling"
"""The source is told to end the migration. It may be too late for that."""
LANDING: Final = "landing"
"""The source has no guest any more, and no migration is under way. The target says whether it has it."""
RETRYING: Final = "retrying"
"""The attempt failed on the target; a conductor takes the next alternate."""
RESTARTING: Final = "restarting"
"""No target is left; the source starts its guest again."""
RETURNING: Final = "returning"
"""A conductor gives the instance what it held on the source."""
SWITCHED: Final = "switched"
"""The instance runs on the target. The source keeps the stopped guest until the move is confirmed."""
CLEANING: Final = "cleaning"
"""Confirmed; the source destroys its guest."""
REVERTING: Final = "reverting"
"""A revert was asked for; the target stops its guest."""
RESUMING: Final = "resuming"
"""The target has stopped its guest; the source starts its own again."""
CONTINUING: Final = "continuing"
"""The revert failed; the target starts its guest again."""
UNDOING: Final = "undoing"
"""The instance runs on the source again. A conductor exchanges the claims of instance and move."""
DISCARDING: Final = "discarding"
"""The target destroys its guest."""
REFUSED: Final = "refused"
"""Of an arriving half: the attempt on its target is over. A super conductor tells the cell of the source."""
FREEING: Final = "freeing"
"""Nothing of the guest that was left is there; a conductor frees what the move holds."""

DONE: Final = "done"
"""The instance is on the target."""
REVERTED: Final = "reverted"
"""The instance went to the target and back."""
FAILED_MOVE: Final = "failed"
"""The instance has stayed on the source; ``reason`` says why."""
DELETED: Final = "deleted"
"""The instance was deleted, or given up, during its move. Its claims are freed with it."""

RUNS: Final = "runs"
"""The source was not told to stop its guest."""
ORDERED: Final = "ordered"
"""The source was told to stop its guest, and has not said that it has."""
AT_REST: Final = "at-rest"
"""The source has said that its guest is stopped."""
OFF: Final = "off"
"""The guest was stopped before the move began, as its user wants it: neither host starts it, now or later."""
GIVEN_UP: Final = "given-up"
"""The source was given up while a target in another cell may have started the guest."""

ENDED: Final = (DONE, REVERTED, FAILED_MOVE, DELETED)
"""States of moves that are over."""

FOR_CONDUCTORS: Final = (REQUESTED, RETRYING, RETURNING, UNDOING, FREEING)
"""States in which a move wants work of a conductor."""

GOING: Final = (SWITCHING, CANCELLING, LANDING)
"""States in which a running guest may be on either host."""

ON_TARGET: Final = (PREPARING, STOPPING, STOPPED, STARTING, RECEIVING, *GOING)
"""States in which the target works on its attempt."""

UNCONFIRMED: Final = (PREPARING, STOPPING, STOPPED, RECEIVING)
"""States in which a time limit may end the attempt: the target was not told to start its guest."""

ABORTABLE: Final = (REQUESTED, SEEKING, SENDING, RETRYING, *UNCONFIRMED, SWITCHING)
"""States in which a move can be aborted, so that its instance stays on the source."""

LIMITED: Final = (*ON_TARGET, RETRYING, RESTARTING)
"""States in which a move counts for the limits of moves at once: it has a target, and the instance does not
run there yet, or on the source again."""

RESTING: Final = (
    *(STOPPING, STOPPED, STARTING, *GOING, RETRYING, RESTARTING, RETURNING),
    *(REVERTING, RESUMING, CONTINUING),
)
"""States in which the guest of the instance's row may be stopped, as the move has ordered it."""

UNDER_WAY: Final = (
    *(REQUESTED, SEEKING, SENDING, *ON_TARGET, RETRYING, RESTARTING, RETURNING, SWITCHED, CLEANING),
    *(REVERTING, RESUMING, CONTINUING, UNDOING, DISCARDING, REFUSED, FREEING),
)
"""States of moves that have not ended."""

WAITS_FOR_TARGET: Final = (*ON_TARGET, REVERTING, CONTINUING)
WAITS_FOR_SOURCE: Final = (RESUMING,)
"""States that a move leaves once its target, or its source, is proved to be dead."""

SETTLED: Final = (CLEANING, DISCARDING, FREEING)
"""States in which a move only tidies up: its instance stays where it is, and may be stopped or started."""

HOLDS_TARGET: Final = (SENDING, *ON_TARGET, SWITCHED, CLEANING, REVERTING, RESUMING, CONTINUING)
"""States in which the instance holds the target, and the move what the instance held on the source."""

AT_SOURCE: Final[dict[str, OrderKind]] = {
    STOPPING: "stop",
    SWITCHING: "migrate",
    CANCELLING: "cancel",
    RESTARTING: "start",
    RESUMING: "start",
    CLEANING: "destroy",
}
"""The order that a move in a state has for its source, about the attempt that ran there."""

AT_TARGET: Final[dict[str, OrderKind]] = {
    **dict.fromkeys((PREPARING, STOPPING, STOPPED, STARTING), "build"),
    # A target that is not ready any more does not get ready again while the migration is ended.
    **dict.fromkeys((RECEIVING, SWITCHING, LANDING), "receive"),
    REVERTING: "stop",
    CONTINUING: "start",
    DISCARDING: "destroy",
}
"""The order that a move in a state has for its target, about the attempt of the move."""

SOURCE_KEPT: Final = (SWITCHED, CLEANING, REVERTING, CONTINUING, RESUMING)
"""States in which the instance's row is the target's, and the source may have a guest."""
TARGET_LEFT: Final = (*ON_TARGET, UNDOING, DISCARDING)
"""States in which the instance's row is the source's, and the target may have a guest."""
