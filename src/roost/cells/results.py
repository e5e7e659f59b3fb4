"""The results of builds and the faults of attempts, as statements of a transaction.

An attempt that ends has an end in the records, a `roost.model.record.Attempt`.
"""

from collections.abc import Collection, Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.cells.rows import Row, fault_row, selection_of
from roost.cells.tables import faults, instances
from roost.model import record
from roost.model.instance import ACTIVE, ASSIGNED, FAILED, BuildResult, Fault
from roost.model.record import BUILT, Attempt
from roost.model.spec import Selection
from roost.storage import in_batches

_END_ATTEMPT = (
    sa.update(instances)
    .where(instances.c.uuid == sa.bindparam("key"))
    .where(instances.c.attempt == sa.bindparam("of_attempt"), instances.c.state == ASSIGNED)
    .values(state=sa.bindparam("new_state"), reason=sa.bindparam("why"), changed_at=sa.bindparam("at"))
)

_OF_ATTEMPT = tuple(
    instances.c[name] for name in ("uuid", "request_id", "run", "attempt", "host", "node", "selection")
)


def end_attempts(
    connection: Connection, results: Sequence[BuildResult], now: float, cell: str
) -> list[Attempt]:
    """Store results of builds at ``now``; returns the ends of their attempts.

    A result of an attempt that has ended changes nothing.
    """
    current = _current(connection, results)
    if not current:
        return []
    connection.execute(
        _END_ATTEMPT,
        [
            {
                "key": result.instance,
                "of_attempt": result.attempt,
                "new_state": ACTIVE if result.failure is None else FAILED,
                "why": result.failure,
                "at": now,
            }
            for result, _ in current
        ],
    )
    keep_faults(
        connection,
        [
            Fault(result.instance, result.attempt, result.host, result.failure, now)
            for result, _ in current
            if result.failure is not None
        ],
    )
    return [
        _end(row, cell, BUILT if result.failure is None else record.FAILED, now, result.failure)
        for result, row in current
    ]


def abandoned_attempts(
    connection: Connection, uuids: Sequence[str], now: float, reason: str, cell: str
) -> list[Attempt]:
    """The ends of attempts of those of these instances whose build is under way."""
    query = sa.select(*_OF_ATTEMPT).where(instances.c.uuid.in_(uuids), instances.c.state == ASSIGNED)
    return [_end(row, cell, record.ABANDONED, now, reason) for row in connection.execute(query)]


def _end(row: Row, cell: str, result: str, now: float, reason: str | None) -> Attempt:
    claimed = selection_of(row) or Selection(row.host or "", row.node or "", cell, {}, {}, 0.0)
    if not claimed.ordinal:
        # A selection that an earlier version stored has none.
        claimed = msgspec.structs.replace(claimed, ordinal=row.attempt)
    return record.end_of(
        claimed, result, now, run=row.run, request_id=row.request_id, instance=row.uuid, reason=reason
    )


def _current(connection: Connection, results: Sequence[BuildResult]) -> list[tuple[BuildResult, Row]]:
    """The results of attempts that are not over, one for each, with the rows of their instances."""
    awaited: dict[tuple[str, int, str | None], Row] = {}
    for some in in_batches({result.instance for result in results}):
        named = sa.select(*_OF_ATTEMPT).where(instances.c.uuid.in_(some), instances.c.state == ASSIGNED)
        awaited.update(((row.uuid, row.attempt, row.host), row) for row in connection.execute(named))
    current = []
    for result in results:
        row = awaited.pop((result.instance, result.attempt, result.host), None)
        if row is not None:
            current.append((result, row))
    return current


def keep_faults(connection: Connection, new: Collection[Fault]) -> None:
    """Record the faults of attempts."""
    if not new:
        return
    connection.execute(sa.insert(faults), [fault_row(fault) for fault in new])
