"""The conversions between rows of moves and values, and the columns that they need."""

from collections.abc import Collection

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import Requester
from roost.model.move import ARRIVING, LEAVING, Carried, DeathProof, Move, MovePlace, MoveStep
from roost.model.move_states import PREPARING, RESTING, RUNS, SENDING, UNDER_WAY
from roost.model.spec import RequestSpec, Selection
from roost.state.cell_database.rows import Row, selection_text, spec_text
from roost.state.cell_database.tables import moves
from roost.storage import in_batches, one_of, one_of_constants

SOURCE, TARGET = "source", "target"
"""The sides of a move, as the names of its columns begin."""

_JSON = msgspec.json.Encoder()
_SELECTION = msgspec.json.Decoder(Selection)
_ALTERNATES = msgspec.json.Decoder(tuple[Selection, ...])
_SPEC = msgspec.json.Decoder(RequestSpec)
_PROOF = msgspec.json.Decoder(DeathProof)
_REQUESTER = msgspec.json.Decoder(Requester)
_CARRIED = msgspec.json.Decoder(Carried)

MOVES = sa.select(*(column for column in moves.columns if column.name != "history"))
"""The query of the columns from which `move_of` makes a move."""

NAMED_MOVES = MOVES.where(one_of(moves.c.uuid, "uuids"))
"""The query of the moves with the uuids ``uuids``."""


def move_of(row: Row) -> Move:
    """Return the move of a row. Raises `ValueError` if a part of it cannot be read."""
    spec = _SPEC.decode(row.spec)
    return Move(
        uuid=row.uuid,
        instance=row.instance_uuid,
        kind=row.kind,
        state=row.state,
        source=MovePlace(row.source_attempt, _SELECTION.decode(row.source), _SPEC.decode(row.source_spec)),
        spec=spec,
        by=_REQUESTER.decode(row.requester),
        began=row.began,
        changed_at=row.changed_at,
        to_host=row.to_host,
        forced=bool(row.forced),
        in_place=bool(row.in_place),
        confirms=row.confirms,
        target=None
        if row.target is None
        else MovePlace(row.target_attempt, _SELECTION.decode(row.target), spec),
        alternates=_ALTERNATES.decode(row.alternates),
        run=row.run,
        at_source=row.at_source,
        proof=None if row.proof is None else _PROOF.decode(row.proof),
        reason=row.reason,
        ends_as=row.ends_as,
        owner=row.owner,
        owner_epoch=row.owner_epoch,
        across=bool(row.across),
        side=row.side,
        other_cell=row.other_cell,
        carried=None if row.carried is None else _CARRIED.decode(row.carried),
        consumer=row.consumer or row.instance_uuid,
    )


def carried_text(carried: Carried) -> str:
    """Return the facts of an instance as their column holds them."""
    return _JSON.encode(carried).decode()


def move_row(move: Move) -> dict[str, object]:
    """Return the row of a move that begins, or of the arriving half of one."""
    first = _JSON.encode(MoveStep(move.state, move.began)).decode() + "\n"
    return {
        "uuid": move.uuid,
        "instance_uuid": move.instance,
        "kind": move.kind,
        "state": move.state,
        "source_host": move.source.host,
        "source_attempt": move.source.attempt,
        "source": selection_text(move.source.selection),
        "source_spec": spec_text(move.source.spec),
        "alternates": "[]",
        "spec": spec_text(move.spec),
        "requester": _JSON.encode(move.by).decode(),
        "run": move.run,
        "to_host": move.to_host,
        "forced": move.forced,
        "in_place": move.in_place,
        "confirms": move.confirms,
        "at_source": move.at_source,
        "proof": None if move.proof is None else _JSON.encode(move.proof).decode(),
        "owner_epoch": 0,
        "began": move.began,
        "changed_at": move.began,
        "history": first,
        "across": move.across,
        "consumer": None if move.consumer == move.instance else move.consumer,
        **_arriving_row(move),
    }


def _arriving_row(move: Move) -> dict[str, object]:
    """Return the columns that a move which begins has only as the half that arrives in another cell."""
    if move.target is None or move.carried is None:
        return {}
    return {
        "target_host": move.target.host,
        "target_attempt": move.target.attempt,
        "target": selection_text(move.target.selection),
        "side": move.side,
        "other_cell": move.other_cell,
        "carried": carried_text(move.carried),
    }


def resting(connection: Connection, uuids: Collection[str]) -> set[str]:
    """Return which of some moves may have stopped the guest of their instance's row."""
    return {
        uuid for some in in_batches(uuids) for uuid in connection.execute(_RESTING, {"uuids": some}).scalars()
    }


_RESTING = sa.select(moves.c.uuid).where(
    one_of(moves.c.uuid, "uuids"),
    one_of_constants(moves.c.state, RESTING)
    | (one_of_constants(moves.c.state, (SENDING, PREPARING)) & (moves.c.at_source != RUNS)),
)


def is_here(side: str) -> sa.ColumnElement[bool]:
    """Return the condition that the source, or the target, of a move is in this cell."""
    return moves.c.side.is_distinct_from(ARRIVING if side == SOURCE else LEAVING)


def attempts_of_moves(connection: Connection, hosts: Collection[str]) -> set[tuple[str, str, int]]:
    """Return the attempts that some hosts may have by moves that are under way: host, instance, attempt."""
    return {tuple(row) for some in in_batches(hosts) for row in connection.execute(_THERE, {"hosts": some})}


_THERE = sa.union_all(
    *(
        sa.select(moves.c[f"{side}_host"], moves.c.instance_uuid, moves.c[f"{side}_attempt"]).where(
            one_of(moves.c[f"{side}_host"], "hosts"),
            one_of_constants(moves.c.state, UNDER_WAY),
            is_here(side),
        )
        for side in (SOURCE, TARGET)
    )
)
