"""Hosts that are proved to be dead: what waits for them goes on without them.

The instances that ran there are evacuated, or shelved without the host: see
`roost.state.cell_database.moves.begin_move`. Others wait only because a host that is silent may do its part
yet: attempts that were told to start their guest, and reverts. No time limit ends them, as nobody else can
know that no guest starts there. By the proof it is known.

What the host has to destroy it still has to: it is ordered to, and what moves hold there stays claimed.
"""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.instance import ASSIGNED, FAILED, STARTING, AttemptKey
from roost.model.move import DeathProof, MoveRefused
from roost.model.record import Attempt
from roost.state.cell_database.building import HOST_GONE, fail_attempts
from roost.state.cell_database.move_changes import MOVE
from roost.state.cell_database.move_ends import go_on_without
from roost.state.cell_database.silent_hosts import checked_proof
from roost.state.cell_database.tables import instances
from roost.storage import entering, one_of_constants


@entering(FAILED, MOVE)
def end_waiting_for(
    connection: Connection, *, host: str, proof: DeathProof, at: float, cell: str
) -> list[Attempt] | MoveRefused:
    """Let builds and moves go on without a host that is dead; returns the ends of attempts for the records.

    ``proof``: see `roost.state.cell_database.silent_hosts.checked_proof`, which may refuse it. The host does
    not come back before the transaction ends: then it finds that its attempts are over.
    """
    checked = checked_proof(connection, host, proof, lock=True)
    if isinstance(checked, MoveRefused):
        return checked
    reason = f"its host is dead: {checked.evidence}"
    rows = connection.execute(_BUILDING, {"of_host": host})
    building = tuple(AttemptKey(row.uuid, row.attempt) for row in rows)
    failing = fail_attempts(building, reason, at, cell, (ASSIGNED, STARTING), HOST_GONE)
    return [*failing(connection), *go_on_without(connection, host, reason, HOST_GONE, at)]


_BUILDING = (
    sa.select(instances.c.uuid, instances.c.attempt)
    .where(
        instances.c.host == sa.bindparam("of_host"),
        one_of_constants(instances.c.state, (ASSIGNED, STARTING)),
    )
    .order_by(instances.c.uuid)
)
