"""Runs and attempts as rows of tables, and back."""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.record import Attempt, Run, Step
from roost.records.errors import DamagedRecords
from roost.records.records import RunWithAttempts
from roost.records.tables import attempts, run_instances, runs

Row = tuple[Any, ...]

READ_CHUNK = 500
"""Runs whose instances and attempts are read in one query."""

_encode = msgspec.json.Encoder().encode
_decode_spec = msgspec.json.Decoder(dict[str, object]).decode
_decode_steps = msgspec.json.Decoder(tuple[Step, ...]).decode

# In the order of the tables' columns, in which Core writes the names of an INSERT.
_RUN_FIELDS = ("id", "request_id", "project_id", "user_id", "started_at", "finished_at", "version", "refusal")
_RUN_COLUMNS = (*_RUN_FIELDS, "steps", "spec")
_INSTANCE_COLUMNS = ("run", "position", "instance")
_ATTEMPT_COLUMNS = ("run", "request_id", "instance", "at", "host", "cell", "weight", "result", "reason")
_run_fields = attrgetter(*_RUN_FIELDS)
_attempt_fields = attrgetter(*_ATTEMPT_COLUMNS)

_INSTANCES = sa.select(run_instances.c.run, run_instances.c.instance).order_by(
    run_instances.c.run, run_instances.c.position
)
_ATTEMPTS = sa.select(*(attempts.c[field] for field in _ATTEMPT_COLUMNS)).order_by(
    attempts.c.at, attempts.c.number
)


class Rows(msgspec.Struct, frozen=True):
    """What one write inserts, each row in the order of the columns that are named below."""

    runs: list[Row]
    run_instances: list[Row]
    attempts: list[Row]

    def insert(self, connection: Connection) -> None:
        """Insert all rows."""
        _insert(connection, runs, _RUN_COLUMNS, self.runs)
        _insert(connection, run_instances, _INSTANCE_COLUMNS, self.run_instances)
        _insert(connection, attempts, _ATTEMPT_COLUMNS, self.attempts)


def rows_of(new_runs: Sequence[Run], new_attempts: Sequence[Attempt]) -> Rows:
    """The rows that record these."""
    return Rows(
        [(*_run_fields(run), _encode(run.steps).decode(), _encode(run.spec).decode()) for run in new_runs],
        [(run.id, position, instance) for run in new_runs for position, instance in enumerate(run.instances)],
        [_attempt_fields(attempt) for attempt in new_attempts],
    )


def read_runs(connection: Connection, query: sa.Select[Any]) -> list[RunWithAttempts]:
    """The runs that ``query`` selects from `runs`, in its order, with their attempts.

    The connection's transaction must see one snapshot: a run may be trimmed between two queries. Raises
    `DamagedRecords`.
    """
    rows = connection.execute(query).all()
    read: list[RunWithAttempts] = []
    for start in range(0, len(rows), READ_CHUNK):
        chunk = rows[start : start + READ_CHUNK]
        ids = [row.id for row in chunk]
        instances: dict[str, list[str]] = defaultdict(list)
        for run, instance in connection.execute(_INSTANCES.where(run_instances.c.run.in_(ids))):
            instances[run].append(instance)
        tried: dict[str, list[Attempt]] = defaultdict(list)
        for row in connection.execute(_ATTEMPTS.where(attempts.c.run.in_(ids))):
            tried[row.run].append(Attempt(**row._mapping))
        read.extend(
            RunWithAttempts(_run_of(row, tuple(instances[row.id])), tuple(tried[row.id])) for row in chunk
        )
    return read


def _insert(connection: Connection, table: sa.Table, columns: tuple[str, ...], rows: list[Row]) -> None:
    """Insert rows as the driver takes them: Core would look at every value again, which costs as much as
    the insert."""
    if not rows:
        return
    statement, positional = _statement(table, columns, connection.dialect)
    if positional:
        connection.exec_driver_sql(statement, rows)
    else:
        connection.exec_driver_sql(statement, [dict(zip(columns, row, strict=True)) for row in rows])


@lru_cache(32)
def _statement(table: sa.Table, columns: tuple[str, ...], dialect: sa.Dialect) -> tuple[str, bool]:
    """The statement that inserts these columns, and whether it takes them by position, not by name."""
    compiled = table.insert().inline().compile(dialect=dialect, column_keys=columns)
    if compiled.positiontup is None:
        return str(compiled), False
    assert tuple(compiled.positiontup) == columns
    return str(compiled), True


def _run_of(row: sa.Row[Any], instances: tuple[str, ...]) -> Run:
    try:
        spec, steps = _decode_spec(row.spec), _decode_steps(row.steps)
    except msgspec.DecodeError as error:
        raise DamagedRecords(f"table runs, run {row.id}: unreadable spec or steps: {error}") from error
    return Run(
        id=row.id,
        request_id=row.request_id,
        project_id=row.project_id,
        user_id=row.user_id,
        instances=instances,
        spec=spec,
        started_at=row.started_at,
        finished_at=row.finished_at,
        version=row.version,
        steps=steps,
        refusal=row.refusal,
    )
