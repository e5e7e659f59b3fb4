"""Instances, the requests to build them, the results of builds, and the states that an instance entered."""

from typing import Final, Literal

import msgspec

from roost.model.spec import RequestSpec, Selection

ASSIGNED = "assigned"
"""A host has been told to build the instance; its agent has not reported a result."""
STARTING = "starting"
"""The host has asked whether the attempt is still wanted and was told yes. From here only this host, or an
operator, can end the attempt."""
ACTIVE = "active"
"""The instance runs on its host."""
LOST = "lost"
"""The host says that the guest of the instance, which was active, is not there. The claim is kept."""
POWERING_OFF = "powering-off"
"""The host has been told to stop the guest."""
STOPPED = "stopped"
"""The guest is stopped, as its user wants it. Its disks and the claim are kept."""
POWERING_ON = "powering-on"
"""The host has been told to start the guest again."""
FAILED = "failed"
"""The build failed on the host; the cell conductor has to assign another host."""
ABANDONED = "abandoned"
"""No alternate is left; the instance's claim is still to be freed before it is in error."""
ERROR = "error"
"""No further attempt is made; ``Instance.reason`` says why."""
REBUILDING = "rebuilding"
"""The host has been told to make the guest anew, as the next attempt; the claim stays."""
REBUILDING_STOPPED = "rebuilding-stopped"
"""The same of an instance that was stopped: its guest is not started."""
SHELVING = "shelving"
"""The host has been told to destroy the guest, and to keep the disks if its store has them."""
OFFLOADED = "offloaded"
"""The host has destroyed the guest of an instance that is shelved; a conductor frees its claim."""
SHELVED = "shelved"
"""The instance has no host and no claim. ``Instance.shelf`` says what is kept of it."""
UNSHELVING = "unshelving"
"""A conductor looks for a host for the shelved instance."""
DELETING = "deleting"
"""The host has been told to destroy the instance."""
DESTROYED = "destroyed"
"""The host has destroyed the instance; its allocations are still to be deleted."""

REBUILDS = (REBUILDING, REBUILDING_STOPPED)
"""States in which the guest of an instance is made anew on its host."""

UNSETTLED = (
    *(ASSIGNED, STARTING, POWERING_OFF, POWERING_ON, *REBUILDS),
    *(FAILED, ABANDONED, DELETING, DESTROYED),
    *(SHELVING, OFFLOADED, UNSHELVING),
)
"""States that a conductor or an agent has to move an instance out of."""

IN_PLACE = (ACTIVE, STOPPED)
"""States in which the guest of an instance is as its user wants it, as far as its host has said."""

WITH_GUEST = (ACTIVE, LOST, POWERING_OFF, STOPPED, POWERING_ON, *REBUILDS, SHELVING)
"""States of instances whose first build has ended with a guest."""

CLAIMED = (ASSIGNED, STARTING, *WITH_GUEST)
"""States in which an instance must have its claim on the node that it is assigned to."""

ON_ITS_HOST = (*CLAIMED, DELETING)
"""States in which the host of an instance has a guest of it, or may have one."""

OrderKind = Literal["build", "destroy", "stop", "start", "receive", "migrate", "cancel"]
"""The kind of an order to a host. An order is named by its kind, its instance and its attempt."""

AT_HOST: Final[dict[str, OrderKind]] = {
    ASSIGNED: "build",
    STARTING: "build",
    POWERING_OFF: "stop",
    POWERING_ON: "start",
    REBUILDING: "build",
    REBUILDING_STOPPED: "build",
    SHELVING: "destroy",
    DELETING: "destroy",
}
"""The order that an instance in a state has for its host, about its present attempt."""


class BuildRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A user's request for instances, stored from acceptance until each instance is in a cell.

    ``instances`` are uuids. If fewer than ``min_count`` of them can be placed, none is.
    ``global_request_id`` is the id that the user's client gave the request, None if it gave none.
    ``trace`` has the headers that continue the trace of the user's request; it is empty without a trace.
    ``name`` is the display name of the instances, None if none was given.
    """

    request_id: str
    spec: RequestSpec
    instances: tuple[str, ...]
    min_count: int
    global_request_id: str | None = None
    trace: dict[str, str] = {}
    name: str | None = None

    @property
    def names(self) -> tuple[str | None, ...]:
        """The name of each instance, numbered from 1 if there are several. Source: Nova's multi-create."""
        if self.name is None or len(self.instances) == 1:
            return (self.name,) * len(self.instances)
        return tuple(f"{self.name}-{number + 1}" for number in range(len(self.instances)))


class Shelf(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The facts of an instance that is shelved, until its guest runs again.

    - ``host``, ``node``: where it ran. ``attempt``: its attempt there.
    - ``store``: of its disks (`roost.model.node.KEEPS_DISKS`), which a host that builds it must have; None:
      its disk is made anew from its image.
    - ``by``: the requester of the unshelving that is under way, or was the last; None: it was not asked for.
    - ``run``: the id of the scheduler run of that unshelving; empty before it has one.
    """

    host: str
    node: str
    attempt: int
    store: str | None = None
    by: "Requester | None" = None
    run: str = ""


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance as its cell's database stores it.

    ``run`` is the id of the scheduler run that placed it. ``attempt`` counts the hosts that the instance was
    assigned to, from 1. ``alternates`` are the hosts still to be tried, each with its allocation request.
    ``host`` and ``node`` are None if the instance was never placed. ``reason`` explains the states
    ``failed``, ``abandoned``, ``error`` and ``lost``. ``spec`` is the request spec that it was placed by,
    without secrets, and ``selection`` its claim on ``host``; both are None for instances of versions that did
    not store them.

    ``epoch`` is that of the request's owner that put the instance into its cell. ``owner`` is the holder of
    the lease under which a conductor works on the instance, None if no conductor does; ``owner_epoch`` counts
    the owners. ``move`` is the uuid of the move that is under way, None if there is none.

    ``consumer``: the uuid by which placement knows its claim: its own until it is shelved, and another one
    from each unshelving on. ``shelf`` is there from when the instance is to be shelved until its guest runs
    again.

    ``starts``: the host that builds the attempt starts its guest; False: it leaves it stopped, as it was on
    the host that it comes from. Agents of a service version before that of
    `roost.model.service_version.POWER` start it in any case. ``finds_disks``, in orders
    to build alone: the instance has disks that the host must find, and not make.
    """

    uuid: str
    request_id: str
    run: str
    project_id: str
    user_id: str
    flavor: str
    state: str
    host: str | None = None
    node: str | None = None
    attempt: int = 0
    alternates: tuple[Selection, ...] = ()
    reason: str | None = None
    spec: RequestSpec | None = None
    selection: Selection | None = None
    epoch: int = 0
    owner: str | None = None
    owner_epoch: int = 0
    move: str | None = None
    starts: bool = True
    finds_disks: bool = False
    consumer: str = ""
    shelf: Shelf | None = None

    def __post_init__(self) -> None:
        if not self.consumer:
            msgspec.structs.force_setattr(self, "consumer", self.uuid)


class Fault(msgspec.Struct, frozen=True):
    """The failure of one attempt to build an instance.

    ``host`` is None if the scheduler found none. ``at`` is in seconds since the epoch.
    """

    instance: str
    attempt: int
    host: str | None
    reason: str
    at: float


class BuildResult(msgspec.Struct, frozen=True):
    """The outcome of one attempt to build an instance. ``failure`` is None if the instance runs.

    ``code`` names the cause of a failure for programs, such as ``NoMoreAddresses``. ``retryable``: whether
    another host may build the instance.
    """

    instance: str
    host: str
    attempt: int
    failure: str | None = None
    code: str | None = None
    retryable: bool = True


class PowerResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of an order to stop a guest, or to start it again.

    ``runs``: the ordered state: True of an order to start, False of one to stop. The guest of the attempt is
    in it if ``failure`` is None. Otherwise ``failure`` says why the order was not carried out, and the list
    of guests whether the guest runs.
    """

    instance: str
    attempt: int
    runs: bool
    failure: str | None = None


class ChangeRefused(msgspec.Struct, frozen=True):
    """An instance cannot be changed now as its user asks. ``reason``: one sentence."""

    reason: str


class BuildAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt to build an instance that has ended without a guest.

    ``attempt``, ``host`` and ``node`` are those of the instance then; attempt 0 has no host. ``began`` and
    ``ended`` are in seconds since the epoch. ``result`` is `roost.model.record.FAILED` or ``ABANDONED``.
    """

    instance: str
    attempt: int
    host: str | None
    node: str | None
    began: float
    ended: float
    result: str
    reason: str
    code: str | None = None


class DestroyOrder(msgspec.Struct, frozen=True):
    """An order to a host to destroy its guest of an attempt that was ended without the host."""

    instance: str
    attempt: int
    host: str


class AttemptKey(msgspec.Struct, frozen=True):
    """One attempt to build one instance."""

    instance: str
    attempt: int


class Requester(msgspec.Struct, frozen=True):
    """The requester of an action: a user, the project of the user's token, and the id of the HTTP request."""

    user_id: str
    project_id: str
    request_id: str


class Transition(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An instance entered a ``state`` (`roost.model.instance`, `RESHAPED` or `GONE`) at ``at``, in seconds
    since the epoch.

    A transition to ``assigned`` has the number of the build attempt, its host and node, and the ``ordinal``
    of its claim in the records. Others belong to the attempt before them. ``reason`` and ``code`` are of
    failures, without secrets. ``by``: the operator that ended the attempt or the instance, or asked for the
    move. ``kind``: of the move (`roost.model.move.MoveKind`). ``word``: the uuid of the word that asked for a
    rebuild, to shelve or to unshelve, by which the same word is known when it comes again. ``cells``: of the
    source and the target of a move to another cell.
    """

    state: str
    at: float
    attempt: int = 0
    host: str | None = None
    node: str | None = None
    ordinal: int = 0
    reason: str | None = None
    code: str | None = None
    by: Requester | None = None
    kind: str | None = None
    word: str | None = None
    cells: tuple[str, str] | None = None


RESHAPED = "reshaped"
"""Not a state: the instance's allocations were moved to other providers of its node."""

GONE = "gone"
"""Not a state: the instance was removed from its cell's database."""

MOVING = "moving"
"""Not a state: a move of the instance takes a target. The transition has its attempt, host and node. Its
reason is why the attempt on the target before it failed."""

MOVED = "moved"
"""Not a state: the instance is on the host of the transition now, by a move or its revert."""

NOT_MOVED = "not-moved"
"""Not a state: a move has ended, and the instance has stayed on its host, for a reason."""

OF_MOVES = (MOVING, MOVED, NOT_MOVED)
"""Transitions of moves, which leave the instance in its state."""
