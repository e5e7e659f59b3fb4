"""One batch of records as statements of a transaction."""

import zlib
from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.record import PENDING, REFUSED, Attempt, RunReasons, Settings
from roost.records.rows import NO_REASONS, EncodedRun, RunRow, reasons_json
from roost.records.tables import attempts, run_instances, runs, settings
from roost.storage import insert_rows

RUN_COLUMNS = tuple(column.name for column in runs.columns if column.name != "number")
ATTEMPT_COLUMNS = Attempt.__struct_fields__
"""Columns of attempts, in the order of the struct's fields."""
_INSTANCE_COLUMNS = tuple(column.name for column in run_instances.columns)
_SETTINGS_COLUMNS = tuple(column.name for column in settings.columns)

_IDENTITY = (
    attempts.c.run == sa.bindparam("of_run"),
    attempts.c.instance == sa.bindparam("of_instance"),
    attempts.c.ordinal == sa.bindparam("of_ordinal"),
)
_END = (
    sa.update(attempts)
    .where(*_IDENTITY, attempts.c.result == PENDING)
    .values({name: sa.bindparam(name) for name in ("result", "reason", "finished_at")})
)
_BEGIN = (
    sa.update(attempts)
    .where(*_IDENTITY)
    .values({name: sa.bindparam(name) for name in ("at", "weight", "version")})
)
_EXPLAIN = sa.update(runs).where(runs.c.id == sa.bindparam("of_run")).values(reasons=sa.bindparam("reasons"))

_encode = msgspec.json.Encoder().encode


class RecordBatch:
    """Records that are written together.

    An attempt has one row. A process that ends attempts may write the end before the scheduler's process
    has written the begin: the end then inserts the row, and the begin completes it.

    Args:
        known: digests of settings that the database has.
    """

    def __init__(
        self,
        new_runs: Sequence[EncodedRun],
        new_attempts: Sequence[Attempt],
        reasons: Sequence[RunReasons],
        known: frozenset[str],
    ) -> None:
        self._rows = [*{run.row.id: run.row for run in new_runs}.values()]
        begun = [each for each in new_attempts if each.result in (PENDING, REFUSED)]
        self._begun = [*{_identity(each): each for each in begun}.values()]
        self._ended = [each for each in new_attempts if each.result not in (PENDING, REFUSED)]
        self._reasons = reasons
        found = {run.settings.digest: run.settings for run in new_runs if run.settings is not None}
        self.settings: dict[str, Settings] = {
            digest: each for digest, each in found.items() if digest not in known
        }

    def insert(self, connection: Connection) -> None:
        """Write the batch. Raises `IntegrityError` if a run or a begin of an attempt is recorded already."""
        self._insert_settings(connection)
        _insert_runs(connection, self._rows)
        _insert_attempts(connection, self._begun)
        self._end(connection)
        self._explain(connection)

    def insert_new(self, connection: Connection) -> None:
        """Write the parts of the batch that are not recorded yet."""
        ids = [row.id for row in self._rows]
        recorded = set(connection.scalars(sa.select(runs.c.id).where(runs.c.id.in_(ids))))
        known = _known(connection, self._begun)
        again = [each for each in self._begun if _identity(each) in known]
        self._insert_settings(connection)
        _insert_runs(connection, [row for row in self._rows if row.id not in recorded])
        _insert_attempts(connection, [each for each in self._begun if _identity(each) not in known])
        if again:
            connection.execute(
                _BEGIN,
                [
                    _of(each, {"at": each.at, "weight": each.weight, "version": each.version})
                    for each in again
                ],
            )
        self._end(connection)
        self._explain(connection)

    def _insert_settings(self, connection: Connection) -> None:
        if not self.settings:
            return
        there = sa.select(settings.c.digest).where(settings.c.digest.in_(self.settings))
        recorded = set(connection.scalars(there))
        new = [(key, _encode(each).decode()) for key, each in self.settings.items() if key not in recorded]
        insert_rows(connection, settings, _SETTINGS_COLUMNS, new)

    def _end(self, connection: Connection) -> None:
        if not self._ended:
            return
        ends = [
            _of(each, {"result": each.result, "reason": each.reason, "finished_at": each.finished_at})
            for each in self._ended
        ]
        if connection.execute(_END, ends).rowcount == len(ends):
            return
        known = _known(connection, self._ended)
        new = {_identity(each): each for each in reversed(self._ended) if _identity(each) not in known}
        _insert_attempts(connection, list(new.values()))

    def _explain(self, connection: Connection) -> None:
        if self._reasons:
            connection.execute(
                _EXPLAIN,
                [
                    {"of_run": each.run, "reasons": compressed(reasons_json(each.reasons))}
                    for each in self._reasons
                ],
            )


def compressed(reasons: msgspec.Raw) -> bytes:
    """Return reasons in the form of the database."""
    return zlib.compress(bytes(reasons), 1)


def _identity(attempt: Attempt) -> tuple[str, str, int]:
    return attempt.run, attempt.instance, attempt.ordinal


def _of(attempt: Attempt, values: dict[str, object]) -> dict[str, object]:
    return {
        "of_run": attempt.run,
        "of_instance": attempt.instance,
        "of_ordinal": attempt.ordinal,
        **values,
    }


def _known(connection: Connection, some: Sequence[Attempt]) -> set[tuple[str, str, int]]:
    """Return the identities of those attempts that have a row."""
    columns = (attempts.c.run, attempts.c.instance, attempts.c.ordinal)
    query = sa.select(*columns).where(attempts.c.run.in_({each.run for each in some}))
    return {(row.run, row.instance, row.ordinal) for row in connection.execute(query)}


def _insert_runs(connection: Connection, new: Sequence[RunRow]) -> None:
    insert_rows(connection, runs, RUN_COLUMNS, [_run_values(row) for row in new])
    insert_rows(
        connection,
        run_instances,
        _INSTANCE_COLUMNS,
        [(row.id, position, instance) for row in new for position, instance in enumerate(row.instances)],
    )


def _insert_attempts(connection: Connection, new: Sequence[Attempt]) -> None:
    insert_rows(connection, attempts, ATTEMPT_COLUMNS, [msgspec.structs.astuple(each) for each in new])


def _run_values(row: RunRow) -> tuple[Any, ...]:
    """Return the values of a run's columns, in the order of `RUN_COLUMNS`."""
    return (
        row.id,
        row.request_id,
        row.project_id,
        row.user_id,
        row.started_at,
        row.finished_at,
        row.version,
        row.refusal,
        bytes(row.steps).decode(),
        bytes(row.spec).decode(),
        row.global_request_id,
        row.seed,
        row.node_version,
        row.settings,
        bytes(row.details).decode(),
        None if row.reasons == NO_REASONS else compressed(row.reasons),
    )
