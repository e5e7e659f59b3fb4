"""The guests that hosts have stopped by their fences, and that are to run again."""

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ACTIVE, LOST, POWERING_ON
from roost.model.move_states import CONTINUING, OFF, SETTLED, SWITCHED
from roost.state.cell_database.history import enter_state
from roost.state.cell_database.move_changes import enter
from roost.state.cell_database.move_ends import locked_at
from roost.state.cell_database.tables import instances, moves
from roost.storage import in_batches, one_of, one_of_constants

STOPPED_BY_FENCE = "its host had not heard of its cell and has stopped the guest; it is started again"
"""The reason of an instance whose guest is started again after a fence."""


def start_fenced(
    connection: Connection, fenced: Mapping[str, Mapping[str, int]], at: float
) -> dict[str, list[str]]:
    """Have hosts start the guests again that they have stopped by their fences; returns the uuids by host.

    ``fenced``: by host the attempt of each guest. What its instance wants counts: one that is active, or was
    found to be lost, runs again. One that runs on the target of a move which waits for its word is started by
    that move. Others whose move is under way stay as they are until that has ended, and are told again.
    """
    started: dict[str, list[str]] = {}
    told = {(uuid, attempt, host) for host, guests in fenced.items() for uuid, attempt in guests.items()}
    for some in in_batches(uuid for uuid, _, _ in told):
        for row in connection.execute(_STOPPED, {"uuids": some}):
            if (row.uuid, row.attempt, row.host) in told:
                started.setdefault(row.host, []).append(row.uuid)
    uuids = sorted(uuid for of_host in started.values() for uuid in of_host)
    enter_state(connection, uuids, POWERING_ON, at, STOPPED_BY_FENCE)
    for uuid in sorted({uuid for uuid, _, _ in told} - {*uuids}):
        move = locked_at(connection, uuid)
        if move is None or move.target is None or move.state != SWITCHED or move.at_source == OFF:
            continue
        if (uuid, move.target.attempt, move.target.host) in told:
            enter(connection, move, CONTINUING, at, reason=STOPPED_BY_FENCE)
            started.setdefault(move.target.host, []).append(uuid)
    return started


_TIDIED = sa.select(moves.c.uuid).where(one_of_constants(moves.c.state, SETTLED))
_STOPPED = (
    sa.select(instances.c.uuid, instances.c.attempt, instances.c.host)
    .where(
        one_of(instances.c.uuid, "uuids"),
        one_of_constants(instances.c.state, (ACTIVE, LOST)),
        instances.c.move.is_(None) | instances.c.move.in_(_TIDIED),
    )
    .order_by(instances.c.uuid)
    .with_for_update()
)
