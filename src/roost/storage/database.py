"""One database: reads in one thread, writes in another, many writes in one transaction.

Why group commit here: a durable commit costs a sync of the disk however little it holds. While one
transaction is being made durable, the writes that arrive wait together, and all of them go into the next
one. Under load a sync is shared by hundreds of writes; alone, a write waits for nobody.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.engine.url import URL, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, InterfaceError, OperationalError

from roost.storage.errors import DatabaseUnavailable

T = TypeVar("T")
Work = Callable[[Connection], T]
"""A piece of work in a transaction. It may be run again if the transaction is rolled back, so it must
have no effect beside the connection's."""

SQLITE_BUSY_SECONDS = 30
"""How long a writer waits for another process's transaction."""

CONFLICT_TRIES = 20
"""How often a transaction is run that the server undoes for another's sake."""


class Database:
    """One database, for use from one event loop.

    Args:
        url: SQLAlchemy URL. For SQLite the file is created if its folder exists.
        read_only: nothing can be written; a SQLite file must be there already.

    Raises `DatabaseUnavailable` if it cannot be opened.
    """

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.url = _parse(url)
        if self.is_sqlite:
            self._check_file(must_exist=read_only)
        self._engine = _engine(self, "BEGIN", read_only, isolation="REPEATABLE READ")
        self._write_engine = _engine(self, "BEGIN IMMEDIATE", read_only)
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="reader")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._waiting: list[tuple[Work[Any], asyncio.Future[Any]]] = []
        self._draining: asyncio.Task[None] | None = None
        self._closed = False
        try:
            with self._engine.connect():
                pass
        except DBAPIError as error:
            raise DatabaseUnavailable(f"cannot open database {self}: {_in_one_line(error)}") from error

    def __str__(self) -> str:
        return self.url.render_as_string(hide_password=True)

    @property
    def is_sqlite(self) -> bool:
        """Whether this is a SQLite file, which has one writer at a time and no server."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def engine(self) -> Engine:
        """The engine for writing, for tools that run without an event loop."""
        return self._write_engine

    async def read(self, work: Work[T]) -> T:
        """Run ``work`` in the reader thread, in a transaction that sees one snapshot."""
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(self._reader, self.read_now, work)

    def read_now(self, work: Work[T]) -> T:
        """Run ``work`` in this thread, in a transaction that sees one snapshot."""
        with _reported(self), self._engine.begin() as connection:
            return work(connection)

    async def write(self, work: Work[T]) -> T:
        """Run ``work`` in the writer thread and return its result once it is durable.

        Works that wait at the same time share a transaction. If one of them raises, the transaction is
        rolled back and each is run in a transaction of its own, so that the error is only its own.
        """
        self._check_open()
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append((work, future))
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())
        return await future

    def write_now(self, work: Work[T]) -> T:
        """Run ``work`` in a transaction of its own in this thread, again if others' transactions undid it."""
        for _ in range(CONFLICT_TRIES):
            try:
                with _reported(self), self._write_engine.begin() as connection:
                    return work(connection)
            except _Conflict as error:
                conflict = error
        raise conflict

    async def close(self) -> None:
        """Finish what is waiting and close all connections."""
        self._closed = True
        if self._draining is not None:
            await self._draining
        self._reader.shutdown()
        self._writer.shutdown()
        self._engine.dispose()
        self._write_engine.dispose()

    def _check_open(self) -> None:
        if self._closed:
            raise DatabaseUnavailable(f"database {self} is closed")

    def _check_file(self, must_exist: bool) -> None:
        name = self.url.database
        if not name or name == ":memory:":
            # Reader and writer would each have a database of its own.
            raise DatabaseUnavailable(f"cannot open database {self}: name a file, as in sqlite:///roost.db")
        if must_exist and not Path(name).exists():
            raise DatabaseUnavailable(f"cannot open database {self}: there is no file {name}")

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting, []
            outcomes = await loop.run_in_executor(
                self._writer, self._write_together, [work for work, _ in batch]
            )
            for (_, future), outcome in zip(batch, outcomes, strict=True):
                if future.cancelled():
                    continue
                if isinstance(outcome, _Failed):
                    future.set_exception(outcome.error)
                else:
                    future.set_result(outcome)
        self._draining = None

    def _write_together(self, works: list[Work[Any]]) -> list[Any]:
        begun = False

        def together(connection: Connection) -> list[Any]:
            nonlocal begun
            begun = True
            return [work(connection) for work in works]

        try:
            return self.write_now(together)
        except Exception as error:
            # What is true of the database is true of each work; each would only wait for it in its turn.
            # After a lost connection, besides, nobody knows whether the transaction was committed.
            if len(works) == 1 or not begun or isinstance(error, _ConnectionLost):
                return [_Failed(error)] * len(works)
        outcomes: list[Any] = []
        for work in works:
            try:
                outcomes.append(self.write_now(work))
            except Exception as error:
                outcomes.append(_Failed(error))
        return outcomes


class _Conflict(DatabaseUnavailable):
    """The server undid a transaction for another's sake: a deadlock, a failed certification in Galera."""


class _ConnectionLost(DatabaseUnavailable):
    """The connection went away during a transaction."""


class _Failed:
    """A work's error, on its way from the writer thread to the one who waits."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _reported:  # noqa: N801 - used as a statement, like contextlib's own
    """Turns a driver's "cannot reach it" or "cannot read it" into `DatabaseUnavailable`; others pass."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        # SQLite has no class of its own for "malformed" and "not a database".
        if isinstance(error, (OperationalError, InterfaceError)) or type(error) is DatabaseError:
            what = DatabaseUnavailable
            if _is_conflict(error):
                what = _Conflict
            elif error.connection_invalidated:
                what = _ConnectionLost
            raise what(f"database {self._database}: {_in_one_line(error)}") from error


def _parse(url: str) -> URL:
    try:
        return make_url(url)
    except ArgumentError as error:
        raise DatabaseUnavailable(f"not a database URL: {url!r}") from error


def _is_conflict(error: DBAPIError) -> bool:
    orig = error.orig
    return getattr(orig, "sqlstate", None) in ("40001", "40P01") or getattr(orig, "args", ())[:1] == (1213,)


def _in_one_line(error: DBAPIError) -> str:
    return " ".join(str(error.orig).split())


def _engine(database: Database, begin: str, read_only: bool, isolation: str = "READ COMMITTED") -> Engine:
    try:
        if not database.is_sqlite:
            engine = sa.create_engine(
                database.url, pool_size=2, pool_pre_ping=True, isolation_level=isolation
            )
            return engine.execution_options(postgresql_readonly=True) if read_only else engine
        engine = sa.create_engine(
            database.url,
            poolclass=sa.pool.QueuePool,
            pool_size=2,
            connect_args={"check_same_thread": False, "timeout": SQLITE_BUSY_SECONDS},
        )
    except (ArgumentError, ImportError) as error:
        raise DatabaseUnavailable(f"cannot open database {database}: {error}") from error
    settings = ("query_only=ON",) if read_only else ("journal_mode=WAL", "synchronous=FULL")

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        # The driver's own transaction handling is off, so that BEGIN is ours to choose.
        connection.isolation_level = None
        for setting in (*settings, "foreign_keys=ON"):
            _set(connection, setting)

    @sa.event.listens_for(engine, "begin")
    def start(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine


def _set(connection: Any, setting: str) -> None:
    """Set one of SQLite's settings, waiting for others: it does not wait itself while a file becomes WAL."""
    until = time.monotonic() + SQLITE_BUSY_SECONDS
    while True:
        try:
            connection.execute(f"PRAGMA {setting}")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(0.01)
