"""Records in a SQL database."""

from collections.abc import Awaitable, Sequence
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, SQLAlchemyError

from roost.model.record import Attempt, Run
from roost.records.errors import RecordRefused, RecordsUnavailable
from roost.records.records import Retention, RunWithAttempts, check
from roost.records.rows import read_runs, rows_of
from roost.records.tables import SCHEMA, attempts, run_instances, runs
from roost.storage import Database, StorageError

T = TypeVar("T")

TRIM_CHUNK = 200
"""Runs removed in one transaction, so that much to trim holds up no write for long."""

_NEWEST_FIRST = (runs.c.started_at.desc(), runs.c.number.desc())


class SqlRecords:
    """Records in a SQL database, which this takes over and closes.

    Raises `RecordsUnavailable` if the tables are missing or belong to another version of Roost.
    """

    def __init__(self, database: Database, retention: Retention) -> None:
        self._database = database
        self.retention = retention
        try:
            SCHEMA.prepare(database)
        except (StorageError, SQLAlchemyError) as error:
            raise RecordsUnavailable(f"cannot keep records in {database}: {cause(error)}") from error

    async def write(self, runs: Sequence[Run], attempts: Sequence[Attempt]) -> None:
        """Record runs and attempts; see `Records.write`. A run that is already recorded is refused."""
        check(runs, attempts)
        if runs or attempts:
            await self._answer(self._database.write(rows_of(runs, attempts).insert))

    async def last(self, n: int) -> list[RunWithAttempts]:
        """The last ``n`` runs; see `Records.last`."""
        return await self._read(sa.true(), n)

    async def find(
        self, request_id: str | None = None, instance: str | None = None, limit: int = 100
    ) -> list[RunWithAttempts]:
        """The last runs of a request or for an instance; see `Records.find`."""
        if request_id is None and instance is None:
            raise ValueError("find needs a request id or an instance")
        where: sa.ColumnElement[bool] = sa.true()
        if request_id is not None:
            where &= runs.c.request_id == request_id
        if instance is not None:
            where &= runs.c.id.in_(sa.select(run_instances.c.run).where(run_instances.c.instance == instance))
        return await self._read(where, limit)

    async def trim(self, now: float) -> int:
        """Remove what is not to be kept at ``now``; see `Records.trim`."""
        oldest = self.retention.oldest(now)
        goes = runs.c.started_at < oldest
        surplus = await self._answer(self._database.read(self._newest_surplus))
        if surplus is not None and surplus.started_at >= oldest:
            goes = (runs.c.started_at < surplus.started_at) | (
                (runs.c.started_at == surplus.started_at) & (runs.c.number <= surplus.number)
            )
        gone, removed = 0, TRIM_CHUNK
        while removed == TRIM_CHUNK:
            removed = await self._answer(self._database.write(lambda connection: _remove(connection, goes)))
            gone += removed
        # An attempt from before the oldest run was written after its own run had gone.
        first = sa.select(sa.func.coalesce(sa.func.min(runs.c.started_at), now)).scalar_subquery()
        late = attempts.delete().where(attempts.c.at < first)
        await self._answer(self._database.write(lambda connection: connection.execute(late).rowcount))
        return gone

    async def close(self) -> None:
        """Finish what is being written and close the database."""
        await self._database.close()

    def _newest_surplus(self, connection: Connection) -> sa.Row[int, float] | None:
        """The newest run beyond the number of runs to keep."""
        if not self.retention.runs:
            return None
        query = sa.select(runs.c.number, runs.c.started_at).order_by(*_NEWEST_FIRST)
        return connection.execute(query.offset(self.retention.runs).limit(1)).one_or_none()

    async def _read(self, where: sa.ColumnElement[bool], limit: int) -> list[RunWithAttempts]:
        query = sa.select(runs).where(where).order_by(*_NEWEST_FIRST).limit(max(limit, 0))
        return await self._answer(self._database.read(lambda connection: read_runs(connection, query)))

    async def _answer(self, answer: Awaitable[T]) -> T:
        """What the database answers, with its errors as ours."""
        try:
            return await answer
        except (IntegrityError, DataError) as error:
            raise RecordRefused(f"cannot record in {self._database}: {cause(error)}") from error
        except (StorageError, SQLAlchemyError) as error:
            raise RecordsUnavailable(f"records in {self._database}: {cause(error)}") from error


def _remove(connection: Connection, goes: sa.ColumnElement[bool]) -> int:
    """Remove the oldest of the runs that go, at most `TRIM_CHUNK`; return how many."""
    oldest = sa.select(runs.c.id).where(goes).order_by(runs.c.started_at).limit(TRIM_CHUNK)
    ids = connection.scalars(oldest).all()
    if ids:
        connection.execute(attempts.delete().where(attempts.c.run.in_(ids)))
        connection.execute(run_instances.delete().where(run_instances.c.run.in_(ids)))
        connection.execute(runs.delete().where(runs.c.id.in_(ids)))
    return len(ids)


def cause(error: Exception) -> str:
    """The driver's own words in one line, without the statement and its values, which would fill a page."""
    return " ".join(str(error.orig if isinstance(error, DBAPIError) else error).split())
