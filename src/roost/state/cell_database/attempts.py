"""Attempts to build instances that have ended without a guest.

The present attempt of an instance is in the instance's row. When the attempt ends, its end goes to the
records (`roost.model.record.Attempt`), and to a row of the table `build_attempts` unless the guest runs.
"""

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model import record
from roost.model.instance import BuildAttempt
from roost.model.record import Attempt
from roost.model.spec import Selection
from roost.state.cell_database.rows import Row, attempt_of, attempt_row, selection_of
from roost.state.cell_database.tables import build_attempts, instances
from roost.storage import transaction

PRESENT = tuple(
    instances.c[name]
    for name in ("uuid", "request_id", "run", "attempt", "state", "host", "node", "selection", "began")
)
"""The columns of an instance that describe its present attempt."""


def keep_attempts(connection: Connection, ended: Sequence[BuildAttempt]) -> None:
    """Store attempts that have ended."""
    if ended:
        connection.execute(sa.insert(build_attempts), [attempt_row(each) for each in ended])


def ended_attempt(row: Row, result: str, at: float, reason: str, code: str | None = None) -> BuildAttempt:
    """Return the present attempt of an instance, which ends at ``at`` without a guest.

    ``row``: the columns `PRESENT`.
    """
    return BuildAttempt(
        instance=row.uuid,
        attempt=row.attempt,
        host=row.host,
        node=row.node,
        began=row.began,
        ended=at,
        result=result,
        reason=reason,
        code=code,
    )


def recorded_end(row: Row, cell: str, result: str, at: float, reason: str | None) -> Attempt:
    """Return the end of the present attempt of an instance for the records."""
    claimed = selection_of(row) or Selection(row.host or "", row.node or "", cell, {}, {}, 0.0)
    if not claimed.ordinal:
        # A selection that an earlier version stored has none.
        claimed = msgspec.structs.replace(claimed, ordinal=row.attempt)
    return record.end_of(
        claimed, result, at, run=row.run, request_id=row.request_id, instance=row.uuid, reason=reason
    )


@transaction
def ended_attempts_of(connection: Connection, uuid: str) -> list[BuildAttempt]:
    """Return the attempts at an instance that have ended without a guest, in order."""
    query = sa.select(build_attempts).where(build_attempts.c.instance_uuid == uuid)
    return [attempt_of(row) for row in connection.execute(query.order_by(build_attempts.c.attempt))]
