"""Records in a SQL database."""

import zlib
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError

from roost.model.record import Attempt, RunReasons
from roost.model.spec import Flavor
from roost.records.errors import RecordRefused, RecordsUnavailable, UnknownRun
from roost.records.flavors import count_flavors, read_flavors
from roost.records.records import Retention, check
from roost.records.rows import (
    NO_REASONS,
    EncodedRun,
    RunRow,
    RunWithAttempts,
    decode_settings,
    run_with_attempts,
)
from roost.records.search import Search
from roost.records.sql_batch import ATTEMPT_COLUMNS, RUN_COLUMNS, RecordBatch
from roost.records.summary import FailedBuilds, RunSummary, read_failed_builds, read_minutes, read_summary
from roost.records.tables import SCHEMA, attempts, run_instances, runs, settings
from roost.storage import Database, StorageError

T = TypeVar("T")

READ_CHUNK = 500
"""Runs whose instances and attempts are read in one query."""

TRIM_CHUNK = 200
"""Runs that are removed in one transaction. Writes wait for no more than one."""


_LAST_FIRST = runs.c.number.desc()
_INSTANCES = sa.select(run_instances.c.run, run_instances.c.instance).order_by(
    run_instances.c.run, run_instances.c.position
)
_ATTEMPTS = sa.select(*(attempts.c[name] for name in ATTEMPT_COLUMNS)).order_by(attempts.c.number)
_SETTINGS = sa.select(settings.c.digest, settings.c.settings)


class SqlRecords:
    """Records in a SQL database, which is closed with them.

    Raises:
        RecordsUnavailable: the tables are missing or belong to another version of Roost.
    """

    def __init__(self, database: Database, retention: Retention) -> None:
        self.retention = retention
        self._database = database
        self._settings: set[str] = set()
        try:
            SCHEMA.prepare(database)
        except (StorageError, SQLAlchemyError) as error:
            raise RecordsUnavailable(f"cannot keep records in {database}: {cause(error)}") from error

    async def write(
        self, runs: Sequence[EncodedRun], attempts: Sequence[Attempt], reasons: Sequence[RunReasons] = ()
    ) -> None:
        """Record runs, attempts and reasons; see `Records.write`."""
        check(runs, attempts)
        batch = RecordBatch(runs, attempts, reasons, frozenset(self._settings))
        try:
            await self._database.write(batch.insert)
        except IntegrityError:
            await self._answer(self._database.write(batch.insert_new))
        except (StorageError, SQLAlchemyError) as error:
            raise self._error(error) from error
        self._settings.update(batch.settings)

    async def last(self, n: int, refused: bool = False) -> list[RunWithAttempts]:
        """Return the last ``n`` runs; see `Records.last`."""
        return await self._read(runs.c.refusal.is_not(None) if refused else sa.true(), n)

    async def find(self, search: Search, limit: int = 100) -> list[RunWithAttempts]:
        """Return the last ``limit`` runs that a search selects; see `SearchableRecords.find`."""
        where = condition(search)
        if search.before is not None:
            where &= runs.c.number < await self._number(search.before)
        return await self._read(where, limit)

    async def summary(self, since: float, most: int) -> RunSummary:
        """Count the runs since a time; see `CountableRecords.summary`."""
        return await self._answer(self._database.read(partial(read_summary, since=since, most=most)))

    async def by_minute(self, since: float, most: int) -> list[tuple[int, int, int]]:
        """Count the runs of each minute since a time; see `CountableRecords.by_minute`."""
        return await self._answer(self._database.read(partial(read_minutes, since=since, most=most)))

    async def flavors(self, most_runs: int) -> list[Flavor]:
        """Return the flavors of the newest runs; see `CountableRecords.flavors`."""
        return await self._answer(self._database.read(partial(read_flavors, most_runs=most_runs)))

    async def flavor_counts(self, most_runs: int) -> dict[bytes, int]:
        """Count the flavors of the newest runs; see `CountableRecords.flavor_counts`."""
        return await self._answer(self._database.read(partial(count_flavors, most_runs=most_runs)))

    async def failed_builds(self, since: float) -> list[FailedBuilds]:
        """Count the builds that failed since a time, by node; see `CountableRecords.failed_builds`."""
        return await self._answer(self._database.read(partial(read_failed_builds, since=since)))

    async def each(self, search: Search) -> AsyncIterator[list[RunWithAttempts]]:
        """Yield all runs that a search selects; see `SearchableRecords.each`."""
        while found := await self.find(search, READ_CHUNK):
            yield found
            search = msgspec.structs.replace(search, before=found[-1].run.id)

    async def remove(self, runs: Collection[str]) -> int:
        """Remove runs by id; see `SearchableRecords.remove`."""
        left, gone = [*runs], 0
        while left:
            some, left = left[:TRIM_CHUNK], left[TRIM_CHUNK:]
            gone += await self._write(partial(_remove_runs, ids=some))
        return gone

    async def trim(self, now: float) -> int:
        """Remove the runs beyond the retention at ``now``; see `Records.trim`."""
        gone = await self._remove(runs.c.started_at < self.retention.oldest(now))
        surplus = await self._answer(self._database.read(self._last_surplus))
        if surplus is not None:
            gone += await self._remove(runs.c.number <= surplus)
        # An attempt from before the start of the oldest run belongs to a run that was trimmed.
        first = sa.select(sa.func.coalesce(sa.func.min(runs.c.started_at), now)).scalar_subquery()
        late = attempts.delete().where(attempts.c.at < first)
        await self._write(lambda connection: connection.execute(late).rowcount)
        return gone

    async def close(self) -> None:
        """Finish the write that has begun and close the database."""
        await self._database.close()

    def _last_surplus(self, connection: Connection) -> int | None:
        """Return the number of the last run beyond the number of runs to keep."""
        if not self.retention.runs:
            return None
        return connection.scalar(
            sa.select(runs.c.number).order_by(_LAST_FIRST).offset(self.retention.runs).limit(1)
        )

    async def _number(self, run: str) -> int:
        """Return the place of a run in the order of recording. Raises `UnknownRun`."""
        query = sa.select(runs.c.number).where(runs.c.id == run)
        number = await self._answer(self._database.read(lambda connection: connection.scalar(query)))
        if number is None:
            raise UnknownRun(f"no run {run} is recorded in {self._database}")
        return int(number)

    async def _remove(self, condition: sa.ColumnElement[bool]) -> int:
        """Remove the runs that meet a condition, `TRIM_CHUNK` at a time; return how many."""
        gone, removed = 0, TRIM_CHUNK
        while removed == TRIM_CHUNK:
            removed = await self._write(lambda connection: _remove_some(connection, condition))
            gone += removed
        return gone

    async def _read(self, where: sa.ColumnElement[bool], limit: int) -> list[RunWithAttempts]:
        query = sa.select(runs).where(where).order_by(_LAST_FIRST).limit(max(limit, 0))
        return await self._answer(self._database.read(lambda connection: _select(connection, query)))

    async def _write(self, work: Callable[[Connection], T]) -> T:
        return await self._answer(self._database.write(work))

    async def _answer(self, answer: Awaitable[T]) -> T:
        """Return the answer of the database; its errors become `RecordsError` ones."""
        try:
            return await answer
        except (StorageError, SQLAlchemyError) as error:
            raise self._error(error) from error

    def _error(self, error: StorageError | SQLAlchemyError) -> RecordRefused | RecordsUnavailable:
        if isinstance(error, IntegrityError | DataError):
            return RecordRefused(f"cannot record in {self._database}: {cause(error)}")
        return RecordsUnavailable(f"records in {self._database}: {cause(error)}")


def condition(search: Search) -> sa.ColumnElement[bool]:
    """Return the condition on `runs` of a search, without ``before``."""
    where: sa.ColumnElement[bool] = sa.true()
    for column in ("project_id", "user_id"):
        if (value := getattr(search, column)) is not None:
            where &= runs.c[column] == value
    if search.run is not None:
        where &= runs.c.id == search.run
    if search.request_id is not None:
        where &= sa.or_(runs.c.request_id == search.request_id, runs.c.global_request_id == search.request_id)
    if search.since is not None:
        where &= runs.c.started_at >= search.since
    if search.until is not None:
        where &= runs.c.started_at < search.until
    if search.refused:
        where &= runs.c.refusal.is_not(None)
    if search.instance is not None:
        where &= runs.c.id.in_(
            sa.select(run_instances.c.run).where(run_instances.c.instance == search.instance)
        )
    if search.of_attempts:
        of_attempt: sa.ColumnElement[bool] = sa.true()
        for column in ("host", "result", "instance"):
            if (value := getattr(search, column)) is not None:
                of_attempt &= attempts.c[column] == value
        where &= runs.c.id.in_(sa.select(attempts.c.run).where(of_attempt))
    return where


def _select(connection: Connection, query: sa.Select[Any]) -> list[RunWithAttempts]:
    """Return the runs that ``query`` selects from `runs`, in its order.

    The transaction must see one snapshot: a run may be trimmed between two queries.
    """
    selected = connection.execute(query).all()
    found: list[RunWithAttempts] = []
    for start in range(0, len(selected), READ_CHUNK):
        chunk = selected[start : start + READ_CHUNK]
        ids = [row.id for row in chunk]
        instances: dict[str, list[str]] = defaultdict(list)
        for run, instance in connection.execute(_INSTANCES.where(run_instances.c.run.in_(ids))):
            instances[run].append(instance)
        tried: dict[str, list[Attempt]] = defaultdict(list)
        for row in connection.execute(_ATTEMPTS.where(attempts.c.run.in_(ids))):
            tried[row.run].append(Attempt(**row._mapping))
        digests = {row.settings for row in chunk} - {None}
        known = _SETTINGS.where(settings.c.digest.in_(digests))
        settings_by_digest = {row.digest: decode_settings(row.settings) for row in connection.execute(known)}
        found += [
            run_with_attempts(
                _run_row(row, instances[row.id]), tried[row.id], settings_by_digest.get(row.settings)
            )
            for row in chunk
        ]
    return found


def _run_row(row: sa.Row[Any], instances: Sequence[str]) -> RunRow:
    values = {name: row._mapping[name] for name in RUN_COLUMNS}
    values["spec"] = msgspec.Raw(row.spec.encode())
    values["steps"] = msgspec.Raw(row.steps.encode())
    values["details"] = msgspec.Raw(b"{}" if row.details is None else row.details.encode())
    values["reasons"] = _reasons(row.reasons)
    return RunRow(**values, instances=tuple(instances))


def _reasons(stored: bytes | None) -> msgspec.Raw:
    return NO_REASONS if stored is None else msgspec.Raw(zlib.decompress(stored))


def _remove_some(connection: Connection, condition: sa.ColumnElement[bool]) -> int:
    """Remove at most `TRIM_CHUNK` runs that meet a condition; return how many."""
    ids = connection.scalars(sa.select(runs.c.id).where(condition).limit(TRIM_CHUNK)).all()
    return _remove_runs(connection, ids) if ids else 0


def _remove_runs(connection: Connection, ids: Sequence[str]) -> int:
    """Remove runs by id; return how many existed."""
    connection.execute(attempts.delete().where(attempts.c.run.in_(ids)))
    connection.execute(run_instances.delete().where(run_instances.c.run.in_(ids)))
    return connection.execute(runs.delete().where(runs.c.id.in_(ids))).rowcount


def cause(error: Exception) -> str:
    """Return the driver's message on one line, without the statement and its values."""
    return " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())
