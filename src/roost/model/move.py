"""Moves: an instance goes from its host to another one, and what the part of each host is.

`roost.model.move_states` has the states of moves.

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
from roost.model.move_states import (
    AT_SOURCE,
    AT_TARGET,
    DISCARDING,
    ON_TARGET,
    REVERTED,
    RUNS,
    SOURCE_KEPT,
    TARGET_LEFT,
)
from roost.model.service_version import ATTACHED_MOVES, ATTACHMENTS, MOVES, Feature
from roost.model.spec import RequestedDestination, RequestSpec, Selection

MoveKind = Literal["migrate", "live_migrate", "resize", "evacuate"]
"""The kinds of moves. ``migrate``: to another host; the guest is stopped on the way. ``live_migrate``: the
same, and the guest runs on. ``resize``: as ``migrate``, and the instance has another flavor there.
``evacuate``: from a host that is dead, by a `DeathProof`."""

LIVE: Final[MoveKind] = "live_migrate"

Side = Literal["leaving", "arriving"]
"""The halves of a move to another cell. ``leaving``: in the cell of the source, where the move is decided.
``arriving``: in the cell of the target."""

LEAVING: Final = "leaving"
ARRIVING: Final = "arriving"


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
    if move.state in TARGET_LEFT and move.target is not None and attempt != move.target.attempt:
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
