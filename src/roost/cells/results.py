"""The results of builds and the faults of attempts, as statements of a transaction."""

from collections.abc import Collection, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.cells.rows import fault_row
from roost.cells.tables import faults, instances
from roost.model.instance import ACTIVE, ASSIGNED, FAILED, BuildResult, Fault
from roost.storage import in_batches

_END_ATTEMPT = (
    sa.update(instances)
    .where(instances.c.uuid == sa.bindparam("key"))
    .where(instances.c.attempt == sa.bindparam("of_attempt"), instances.c.state == ASSIGNED)
    .values(state=sa.bindparam("new_state"), reason=sa.bindparam("why"), changed_at=sa.bindparam("at"))
)


def end_attempts(connection: Connection, results: Sequence[BuildResult], now: float) -> None:
    """Record results of builds at ``now``. A result of an attempt that has ended changes nothing."""
    current = _current(connection, results)
    if not current:
        return
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
            for result in current
        ],
    )
    keep_faults(
        connection,
        [
            Fault(result.instance, result.attempt, result.host, result.failure, now)
            for result in current
            if result.failure is not None
        ],
    )


def _current(connection: Connection, results: Sequence[BuildResult]) -> list[BuildResult]:
    """The results of attempts that are not over, one for each."""
    columns = (instances.c.uuid, instances.c.attempt, instances.c.host)
    awaited: set[tuple[str, int, str | None]] = set()
    for some in in_batches({result.instance for result in results}):
        named = sa.select(*columns).where(instances.c.uuid.in_(some), instances.c.state == ASSIGNED)
        awaited.update((row.uuid, row.attempt, row.host) for row in connection.execute(named))
    current = []
    for result in results:
        attempt = (result.instance, result.attempt, result.host)
        if attempt in awaited:
            awaited.remove(attempt)
            current.append(result)
    return current


def keep_faults(connection: Connection, new: Collection[Fault]) -> None:
    """Record the faults of attempts."""
    if not new:
        return
    connection.execute(sa.insert(faults), [fault_row(fault) for fault in new])
