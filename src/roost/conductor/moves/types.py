"""Moves as bodies and queries of HTTP requests and responses."""

import re
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from roost.conductor.instances.types import WantedFlavor
from roost.model.move import Move, MoveKind, MoveStep, ProofKind
from roost.model.visibility import seen, seen_by_project
from roost.model.vocabulary import MAX_NAME
from roost.web.errors import BadRequest
from roost.web.query import DEFAULT_PAGE, LARGEST_PAGE, Uuid

_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
_MARKER = re.compile(r"(\d+(?:\.\d+)?)_([0-9a-f-]{36})")


class WantedMigration(msgspec.Struct, forbid_unknown_fields=True):
    """The body that asks for the migration of an instance.

    `host`: the target; without it the scheduler chooses one. `force`: no filter evaluates `host`, which has
    to have room nevertheless. `confirm`: the migration is confirmed as soon as the instance runs on the
    target. With false it waits until it is confirmed or reverted. `any_cell`: the target may be in another
    cell; hosts of the instance's cell are preferred.
    """

    host: _Name | None = None
    force: bool = False
    confirm: bool = True
    any_cell: bool = False

    def __post_init__(self) -> None:
        _check_force(self)


class WantedLiveMigration(msgspec.Struct, forbid_unknown_fields=True):
    """The body that asks for the migration of an instance whose guest runs on.

    `host`: the target; without it the scheduler chooses one. `force`: no filter evaluates `host`, which has
    to have room nevertheless.
    """

    host: _Name | None = None
    force: bool = False

    def __post_init__(self) -> None:
        _check_force(self)


class WantedResize(msgspec.Struct, forbid_unknown_fields=True):
    """The body that asks for another size of an instance, which it gets on another host.

    `flavor`: the new one. `host`: the target; without it the scheduler chooses one. `force`: no filter
    evaluates `host`, which has to have room nevertheless. `in_place`: the host of the instance may be the
    target, if it has room for both sizes. `confirm`: the resize is confirmed as soon as the instance runs on
    the target. With false it waits until it is confirmed or reverted. `any_cell`: the target may be in
    another cell; hosts of the instance's cell are preferred.
    """

    flavor: WantedFlavor
    host: _Name | None = None
    force: bool = False
    in_place: bool = False
    confirm: bool = False
    any_cell: bool = False

    def __post_init__(self) -> None:
        _check_force(self)


class WantedHostEvacuation(msgspec.Struct, forbid_unknown_fields=True):
    """The body that asks for the evacuation of all instances of a host.

    `evidence`: how it is known that no guest runs there, as an operator says.
    """

    evidence: Annotated[str, Meta(min_length=1, max_length=1000)]


class WantedEvacuation(msgspec.Struct, forbid_unknown_fields=True):
    """The body that asks for the evacuation of an instance whose host is dead.

    `evidence`: how it is known that no guest of it runs there, as an operator says. A host that is cut off
    runs on, and its instance would run twice. `host`: the target; without it the scheduler chooses one.
    `force`: no filter evaluates `host`, which has to have room nevertheless.
    """

    evidence: Annotated[str, Meta(min_length=1, max_length=1000)]
    host: _Name | None = None
    force: bool = False

    def __post_init__(self) -> None:
        _check_force(self)


def _check_force(wanted: WantedMigration | WantedLiveMigration | WantedResize | WantedEvacuation) -> None:
    if wanted.force and wanted.host is None:
        raise ValueError("force needs a host")


class MovesQuery(msgspec.Struct, forbid_unknown_fields=True):
    """The query of a list of moves. `cell` and `host` are for administrators."""

    OF_OPERATORS: ClassVar = ("cell", "host")

    instance: Annotated[Uuid | None, Meta(description="Only the moves of one instance.")] = None
    host: Annotated[str | None, Meta(description="Only those from one host or to it.")] = None
    cell: Annotated[str | None, Meta(description="Only those of one cell.")] = None
    under_way: Annotated[
        bool | None, Meta(description="Only those that have not ended; with false those that have.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Moves on a page.")] = DEFAULT_PAGE
    marker: Annotated[str | None, Meta(description="`next` of the page before.")] = None

    @property
    def after(self) -> tuple[float, str] | None:
        """Begin and uuid of the last move of the page before. Raises `BadRequest`."""
        if self.marker is None:
            return None
        found = _MARKER.fullmatch(self.marker)
        if found is None:
            raise BadRequest(f"marker {self.marker!r} is not `next` of a page of moves")
        return float(found[1]), found[2]


def marker_of_move(move: Move) -> str:
    """Return the marker of the page that begins after a move."""
    return f"{move.began!r}_{move.uuid}"


class ShownMove(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A move of an instance. Times are in seconds since the epoch.

    - `state`: see the documentation of the API. It ends as `done`, `reverted`, `failed` or `deleted`.
    - `source_host` is the host that the instance leaves, `target_host` the one that it goes to, null until
      one is claimed; the nodes are their root providers. `requested_host`: the target that was asked for, if
      any. `forced`: no filter evaluates it.
    - `cell` is the source's, `target_cell` the target's. `any_cell`: the target may be in another one.
    - `attempt`: the number of the attempt on the target, as those of the instance; null until one is claimed.
    - `confirm`: it is confirmed as soon as the instance runs on the target.
    - `flavor`: the name of the instance's flavor on the target.
    - `evidence`: of an evacuation, how it is known that the source is dead. `proof`: by the word of an
      `operator`, the `fence` of its agent, or the fence `command`. `proved_by`: the operator, or the
      conductor that has established it; `proved_at`: when.
    - `reason`: why an attempt, the move or its revert failed.
    - `run`: the run of the scheduler that chose the target.
    - `user_id` and `request_id` are those of who asked for it; `project_id` is the instance's.

    A project sees the state, the times and the run.
    """

    uuid: str
    instance: str
    project_id: str
    kind: MoveKind
    state: str
    cell: str | None
    source_host: str | None
    source_node: str | None
    target_host: str | None
    target_node: str | None
    requested_host: str | None
    forced: bool
    target_cell: str | None
    any_cell: bool
    attempt: int | None
    confirm: bool
    flavor: str
    evidence: str | None
    proof: ProofKind | None
    proved_by: str | None
    proved_at: float | None
    reason: str | None
    run: str | None
    user_id: str | None
    request_id: str | None
    began_at: float
    changed_at: float


class EvacuatedHost(msgspec.Struct, forbid_unknown_fields=True):
    """The evacuations of the instances of a host: the `moves` that were accepted, and of each other instance
    why not.
    """

    moves: list[ShownMove]
    refused: dict[str, str]


class ShownMoveStep(msgspec.Struct, forbid_unknown_fields=True):
    """A move entered a `state` at `at`, in seconds since the epoch.

    `host`: the target, where a new attempt begins. `reason`: of what failed before it.
    """

    state: str
    at: float
    host: str | None
    reason: str | None


class DescribedMove(ShownMove, kw_only=True):
    """A move of an instance with its steps: the states that it entered, in order."""

    steps: list[ShownMoveStep]


class MovePage(msgspec.Struct, forbid_unknown_fields=True):
    """Moves, the newest first. `next` is the marker of the next page, null on the last one.

    `cells_down` are cells that cannot be asked: their moves are missing. A project sees none of their names.
    """

    moves: list[ShownMove]
    next: str | None
    cells_down: list[str]


def shown_move(cell: str, move: Move) -> ShownMove:
    """Return a move of a cell as it is shown."""
    return ShownMove(
        uuid=move.uuid,
        instance=move.instance,
        project_id=move.spec.project_id,
        kind=move.kind,
        state=move.state,
        cell=cell,
        source_host=move.source.host,
        source_node=move.source.node,
        target_host=None if move.target is None else move.target.host,
        target_node=None if move.target is None else move.target.node,
        requested_host=move.to_host,
        forced=move.forced,
        target_cell=None if move.target is None else move.target.selection.cell,
        any_cell=move.across,
        attempt=None if move.target is None else move.target.attempt,
        confirm=move.confirms,
        flavor=move.spec.flavor.name,
        evidence=None if move.proof is None else move.proof.evidence,
        proof=None if move.proof is None else move.proof.kind,
        proved_by=None if move.proof is None else move.proof.by,
        proved_at=None if move.proof is None else move.proof.at,
        reason=move.reason,
        run=move.run or None,
        user_id=move.by.user_id,
        request_id=move.by.request_id,
        began_at=move.began,
        changed_at=move.changed_at,
    )


def described_move(cell: str, move: Move, steps: list[MoveStep]) -> DescribedMove:
    """Return a move of a cell as it is shown with its steps."""
    shown = [ShownMoveStep(each.state, each.at, each.host, each.reason) for each in steps]
    return DescribedMove(**msgspec.structs.asdict(shown_move(cell, move)), steps=shown)


_HIDDEN = (
    "cell",
    "source_host",
    "source_node",
    "target_host",
    "target_node",
    "requested_host",
    "target_cell",
    "evidence",
    "proof",
    "proved_by",
    "proved_at",
    "reason",
    "user_id",
    "request_id",
)
"""The fields that name hosts or operators, or have their texts."""


@seen_by_project(ShownMove)
def _move(shown: ShownMove) -> ShownMove:
    return msgspec.structs.replace(shown, **dict.fromkeys(_HIDDEN))


@seen_by_project(DescribedMove)
def _described(shown: DescribedMove) -> DescribedMove:
    steps = [ShownMoveStep(each.state, each.at, None, None) for each in shown.steps]
    return msgspec.structs.replace(shown, **dict.fromkeys(_HIDDEN), steps=steps)


@seen_by_project(MovePage)
def _page(page: MovePage) -> MovePage:
    return MovePage([seen(each) for each in page.moves], page.next, [])


@seen_by_project(EvacuatedHost)
def _evacuated(answer: EvacuatedHost) -> EvacuatedHost:
    return EvacuatedHost([seen(each) for each in answer.moves], dict.fromkeys(answer.refused, ""))
