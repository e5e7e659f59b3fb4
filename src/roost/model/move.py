"""Moves: an instance goes from its host to another one. Their states, and the part of each host in them.

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
    resuming                                      undoing     the source runs, the instance's row is its again
    undoing                                       discarding  the claims of instance and move are exchanged
    discarding                                    freeing     the target has destroyed its guest
    reverting, resuming                           continuing  the revert failed; the target starts again
    continuing                                    switched
    cleaning, discarding                          freeing     the host was given up
    resuming                                      discarding  the instance runs in the source's cell again
    discarding                                    reverted    as freeing, in another cell than the source's
    any                                           deleted     the instance was deleted, or given up

A guest that moves while it runs is on one of two hosts, and while it goes over nobody knows on which. So in
``switching`` and ``cancelling`` neither host starts or destroys anything by itself, and no time limit does:
the first host that says what it has decides. The source says that the guest runs on there, or that it has
none any more; the target that it runs there. If both are silent, the move waits for them, or for an operator.

The source is the host that the instance leaves, with the attempt that built its guest; the target is the host
that it goes to, with the next attempt. The instance's row is the source's until ``switched``, and from then
on the target's.

A move to another cell has a row in both, a half each: `roost.model.crossings` says how they go on together.
"""

from collections.abc import Collection
from typing import Final, Literal

import msgspec

from roost.model import service_version
from roost.model.instance import BuildAttempt, Instance, OrderKind, Requester
from roost.model.service_version import ATTACHED_MOVES, ATTACHMENTS, MOVES, Feature
from roost.model.spec import RequestedDestination, RequestSpec, Selection

MoveKind = Literal["migrate", "live_migrate", "resize", "evacuate"]
"""The kinds of moves. ``migrate``: to another host; the guest is stopped on the way. ``live_migrate``: the
same, and the guest runs on. ``resize``: as ``migrate``, and the instance has another flavor there.
``evacuate``: from a host that is dead, by a `DeathProof`."""

LIVE: Final[MoveKind] = "live_migrate"

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

Side = Literal["leaving", "arriving"]
"""The halves of a move to another cell. ``leaving``: in the cell of the source, where the move is decided.
``arriving``: in the cell of the target."""

LEAVING: Final = "leaving"
ARRIVING: Final = "arriving"

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


class MovePlace(msgspec.Struct, frozen=True):
    """A host in a move: the attempt and the spec of the guest there, and its claim, which names the host."""

    attempt: int
    selection: Selection
    spec: RequestSpec

    @property
    def host(self) -> str:
        """The name of the host."""
        return self.selection.host

    @property
    def node(self) -> str:
        """The uuid of the root provider."""
        return self.selection.node


class SessionStamp(msgspec.Struct, frozen=True):
    """The session of a host's agent at one moment: its holder, its epoch, and its last poll."""

    holder: str
    epoch: int
    counter: int


ProofKind = Literal["operator", "fence", "command"]
"""The kinds of proofs that a host is dead."""

BY_OPERATOR: Final = "operator"
BY_FENCE: Final = "fence"
BY_COMMAND: Final = "command"


class DeathProof(msgspec.Struct, frozen=True):
    """The proof that a host is dead, without which nothing is evacuated: a host that is cut off runs on.

    ``kind``: where it comes from: the word of an operator, the fence of the host's agent, or a command by
    which a conductor had its machine powered off. ``evidence``: in words. ``at``: seconds since the epoch.
    ``stamp``: the session of the host's agent then, which nobody holds, None if it had none. If an agent
    opens it again, the move ends before another guest starts. ``store``: where the disks of the host's guests
    are, if other hosts have them too. ``by``: the operator, or the conductor that has established it; None
    where an earlier version wrote it.
    """

    kind: ProofKind
    evidence: str
    at: float
    stamp: SessionStamp | None = None
    store: str | None = None
    by: str | None = None


class TargetFailure(msgspec.Struct, frozen=True):
    """The failure of an attempt on a target in another cell. ``retryable``: another host may be tried."""

    reason: str
    code: str | None = None
    retryable: bool = True


class Carried(msgspec.Struct, frozen=True, omit_defaults=True):
    """The facts of an instance that a half of a move has where its cell has no row of the instance.

    ``instance``: as it was in the cell of the source. ``history``: its history there. ``attempts``: those
    that have ended without a guest. ``epoch``: of the crossing, or of the last revert that has begun or
    failed here: a fence of this epoch lets it in, a higher one does not. ``failure``: of the last attempt on
    a target of the cell. ``store``: of the disks of the source's guests, as of a proof.
    """

    instance: Instance
    history: str = ""
    attempts: tuple[BuildAttempt, ...] = ()
    epoch: int = 0
    failure: TargetFailure | None = None
    store: str | None = None


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A move of an instance, as the cell's database stores it.

    - ``uuid``: also the consumer that holds the claim on the source while the instance holds the target's.
    - ``by``: who asked for it. ``to_host``: the host that was asked for; None: any. ``forced``: no filter
      evaluates it.
    - ``spec``: the one by which a target is looked for, and that the instance has there.
    - ``in_place``: the host of the instance may be the target too. There the guest of before is kept stopped
      beside the new one.
    - ``confirms``: the move is confirmed as soon as the instance runs on the target.
    - ``target`` is None until one is claimed. ``alternates``: further hosts to be tried.
    - ``at_source``: the guest on the source: `RUNS`, `ORDERED` (it is told to stop), `AT_REST`, or `OFF`.
    - ``run``: the id of the scheduler run that chose the target; empty until then.
    - ``proof``: that the source is dead, of an evacuation.
    - ``reason``: why an attempt, the move or its revert failed.
    - ``ends_as``: `DONE` or `REVERTED`, once that is settled.
    - ``began``, ``changed_at``: seconds since the epoch.
    - ``owner``, ``owner_epoch``: as those of an instance.
    - ``across``: the target may be in another cell.
    - ``side``: the half that this is of a move to another cell, None of a move within a cell. ``other_cell``:
      the name of the cell that may have the other half; None until a target there was told, or may have been.
    - ``consumer``: of the instance; see `roost.model.instance.Instance`.
    - ``carried``: of an arriving half, and of a leaving one from when the instance has left.
    """

    uuid: str
    instance: str
    kind: MoveKind
    state: str
    source: MovePlace
    spec: RequestSpec
    by: Requester
    began: float
    changed_at: float
    to_host: str | None = None
    forced: bool = False
    in_place: bool = False
    confirms: bool = True
    target: MovePlace | None = None
    alternates: tuple[Selection, ...] = ()
    run: str = ""
    at_source: str = RUNS
    proof: DeathProof | None = None
    reason: str | None = None
    ends_as: str | None = None
    owner: str | None = None
    owner_epoch: int = 0
    across: bool = False
    side: Side | None = None
    other_cell: str | None = None
    carried: Carried | None = None
    consumer: str = ""

    def __post_init__(self) -> None:
        if not self.consumer:
            msgspec.structs.force_setattr(self, "consumer", self.instance)

    @property
    def renamed(self) -> dict[str, str]:
        """The instance by its consumer, if that has another uuid."""
        return {} if self.consumer == self.instance else {self.consumer: self.instance}

    @property
    def stays(self) -> bool:
        """True if the target is the host of the instance itself."""
        return self.target is not None and self.target.host == self.source.host


SOURCE_KEPT = (SWITCHED, CLEANING, REVERTING, CONTINUING, RESUMING)
"""States in which the instance's row is the target's, and the source may have a guest."""
_TARGET_LEFT = (*ON_TARGET, UNDOING, DISCARDING)
"""States in which the instance's row is the source's, and the target may have a guest."""


def other_place(move: Move, attempt: int | None) -> MovePlace | None:
    """Return the place of a move that may have a guest beside the one of the instance's row; None: none.

    ``attempt``: that of the instance's row; None: the cell has no row of the instance. Of a move to another
    cell the place is in this cell.
    """
    if move.side is not None:
        here = attempt is None
        if move.side == LEAVING:
            return move.source if here and move.state in SOURCE_KEPT else None
        return move.target if here and move.state in (*ON_TARGET, DISCARDING) else None
    if move.state in SOURCE_KEPT and attempt != move.source.attempt:
        return move.source
    if move.state in _TARGET_LEFT and move.target is not None and attempt != move.target.attempt:
        return move.target
    return None


def awaited_host(move: Move) -> str | None:
    """Return the host of this cell that a move waits for, to stop, start, build or destroy a guest.

    None: it waits for no host, or for one of another cell.
    """
    if move.state in AT_SOURCE and move.side != ARRIVING:
        return move.source.host
    if move.state in AT_TARGET and move.side != LEAVING and move.target is not None:
        return move.target.host
    return None


def has_returned(move: Move) -> bool:
    """Return whether the instance of a leaving half is in its cell again, by a revert."""
    return move.side == LEAVING and move.ends_as == REVERTED and move.carried is None


def needed_feature(kind: MoveKind, *, across: bool = False, confirms: bool = True) -> Feature:
    """Return the feature that all processes need for moves of a kind.

    ``across``: to any cell. ``confirms``: without another word.
    """
    if across:
        plain = kind == "migrate" and confirms
        return service_version.CELL_MOVES if plain else service_version.CELL_REVERTS
    return service_version.LIVE if kind == LIVE else service_version.MOVES


def finds_disks(move: Move) -> bool:
    """Return whether the target must find the disks of an instance: else it makes them."""
    return move.proof is None or move.proof.store is not None


def at_place(instance: Instance, place: MovePlace, *, starts: bool = True) -> Instance:
    """Return an instance as the agent at a place of its move knows it."""
    return msgspec.structs.replace(
        instance,
        host=place.host,
        node=place.node,
        attempt=place.attempt,
        selection=place.selection,
        spec=place.spec,
        flavor=place.spec.flavor.name,
        alternates=(),
        starts=starts,
    )


def has_attachments(spec: RequestSpec) -> bool:
    """Return whether agents attach the guests of a request to ports or accelerators."""
    return spec.needs_version >= ATTACHMENTS.since


def version_for_move(spec: RequestSpec) -> int:
    """Return the service version that processes and agents need for the moves of an instance."""
    return ATTACHED_MOVES.since if has_attachments(spec) else MOVES.since


class MoveWork(msgspec.Struct, frozen=True):
    """Work of a host by a move. ``instance``: as the host knows it, with its own attempt and claim.

    ``over``: the last attempt of the move, whose ports are those of a guest that is started again.
    ``target``: the instance as the target knows it, for the source of a guest that goes there. ``begun``: the
    source was told to have the guest go.
    ``beside``: the other attempt of the move, if it is on the same host, which leaves it alone.
    """

    kind: OrderKind
    instance: Instance
    over: int = 0
    target: Instance | None = None
    begun: bool = False
    beside: int | None = None

    @property
    def key(self) -> tuple[OrderKind, str, int]:
        """The kind of the order, the instance and the attempt."""
        return self.kind, self.instance.uuid, self.instance.attempt


class MoveStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """A move entered a ``state`` at ``at``, in seconds since the epoch.

    ``host``: the target, where a new attempt begins.
    """

    state: str
    at: float
    host: str | None = None
    reason: str | None = None


class MoveRefused(msgspec.Struct, frozen=True):
    """A move cannot begin, or not be confirmed or reverted now.

    ``reason``: one sentence. ``is_early``: what stands in its way ends by itself: it can be asked again soon.
    """

    reason: str
    is_early: bool = False


def spec_of_move(
    move: Move, cell: str, without: Collection[str] = (), *, anywhere: bool = False
) -> RequestSpec:
    """Return the request spec by which a move from a cell looks for a target. ``without``: hosts left out.

    ``anywhere``: the target may be in another cell.

    A host that was forced when the instance was created does not bind its moves, and one that is forced now
    binds this move alone. Members of its server group
    are those that placement knows now.
    """
    spec, before = move.spec, move.spec.requested_destination
    destination = RequestedDestination(
        host=None if move.forced else move.to_host,
        # A host that is asked for by name may be in any cell; otherwise hosts of this one are preferred.
        cell=None if anywhere and move.to_host is not None else cell,
        allow_cross_cell_move=anywhere,
        aggregates=() if before is None else before.aggregates,
        forbidden_aggregates=frozenset() if before is None else before.forbidden_aggregates,
    )
    group = spec.group
    return msgspec.structs.replace(
        spec,
        operation=move.kind,
        requested_destination=destination,
        group=None if group is None else msgspec.structs.replace(group, hosts=()),
        force_hosts=(move.to_host,) if move.forced and move.to_host is not None else (),
        force_nodes=(),
        retried_hosts=frozenset(),
        ignore_hosts=spec.ignore_hosts.union(() if move.in_place else (move.source.host,), without),
        needs_version=max(spec.needs_version, version_for_move(spec), needed_feature(move.kind).since),
    )
