"""One database: short reads in one thread, long ones in another, writes in a third.

Short reads are the head checks and deltas that every claim needs. The rows of a long one may grow with the
cloud, such as those of all consumers of a provider, and no claim waits for it.

A server that hangs accepts connections, and its kernel acknowledges what it receives, but it does not answer.
So each operation has a time limit, `ANSWER_SECONDS` by default. After it the caller gets an error even if the
thread still waits, and the thread is replaced (`Lane`). A SQLite file has no server that can hang, and no
such limit.
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import ArgumentError, DBAPIError

from roost.process.lane import CallTimedOut, Lane
from roost.storage.database_url import DRIVERS, DatabaseUrl, as_url
from roost.storage.driver_errors import opening_error, storage_error
from roost.storage.engine import (
    ANSWER_SECONDS,
    autocommit_engine,
    check_file,
    for_reading_only,
    reading_engine,
    writing_engine,
)
from roost.storage.errors import (
    ConflictRolledBack,
    ConnectionLost,
    DatabaseFull,
    DatabaseMisconfigured,
    DatabaseReadOnly,
    DatabaseUnavailable,
)
from roost.storage.group_commit import GroupCommit, Work

T = TypeVar("T")

CONFLICT_ATTEMPTS = 20
"""Runs of a transaction that the server rolls back in favour of others; then its caller gets the error."""

CONFLICT_PAUSE_SECONDS = 0.05
"""Upper bound of the random pause between two of these runs; the first pauses are shorter."""


class Database:
    """One database, for use from one event loop.

    Args:
        url: SQLAlchemy URL, which ``given`` keeps. A SQLite file that does not exist is created if its folder
            exists.
        read_only: nothing can be written, and a SQLite file is not created.
        create: whether a SQLite file that does not exist is created.
        answer_seconds: time limit of an operation, on a server.
        deferred: the database is opened at the first operation, which raises if that fails. So a process can
            start while its database is down.

    ``refused``: the error of the last write if it was refused for want of space, or because the database
    takes no writes; None after a write that succeeds.

    Raises:
        DatabaseUnavailable: the database cannot be opened.
        DatabaseMisconfigured: it cannot be opened until the URL is corrected or the driver installed.
    """

    def __init__(
        self,
        url: DatabaseUrl | str,
        *,
        read_only: bool = False,
        create: bool = True,
        answer_seconds: float = ANSWER_SECONDS,
        deferred: bool = False,
    ) -> None:
        self.given = as_url(url)
        self.url = self.given.parsed
        self.answer_seconds = answer_seconds
        self.stopping = False
        self.refused: DatabaseUnavailable | None = None
        self._limit = None if self.is_sqlite else answer_seconds
        if self.is_sqlite:
            check_file(self.given, must_exist=read_only or not create)
        opened = for_reading_only(self.url) if read_only else self.url
        try:
            self._engine = reading_engine(opened, read_only, answer_seconds)
            self._write_engine = writing_engine(opened, read_only, answer_seconds)
            self._autocommit_engine = autocommit_engine(opened, answer_seconds)
        except ImportError as error:
            reason = f"its driver cannot be loaded ({error}); use one of {', '.join(DRIVERS)}"
            raise DatabaseMisconfigured(f"cannot open database {self}: {reason}") from error
        except ArgumentError as error:
            raise DatabaseMisconfigured(f"cannot open database {self}: {self.hide(str(error))}") from None
        self._autocommit: Connection | None = None
        self._reader = Lane("reader")
        self._long_reader = Lane("long reader")
        self._writes = GroupCommit(self.write_now, lambda: self._limit, self.no_answer)
        self._closed = False
        self._opened = False
        self._opening = threading.RLock()
        self._is_opening = False
        self._preparations: list[Callable[[Database], None]] = []
        if not deferred:
            self._open()

    def __str__(self) -> str:
        return str(self.given)

    def hide(self, message: str) -> str:
        """Return a driver's message without the secrets of the URL."""
        return self.given.hide(message)

    @property
    def is_sqlite(self) -> bool:
        """True for a SQLite file, which has one writer at a time and no server."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def engine(self) -> Engine:
        """The engine for writing, for tools without an event loop."""
        return self._write_engine

    @property
    def limit(self) -> float | None:
        """Seconds that an operation may take; None for a SQLite file."""
        return self._limit

    def when_open(self, prepare: "Callable[[Database], None]") -> None:
        """Call ``prepare`` with this database now, or before the first operation if that opens it.

        Raises the errors of ``prepare``. If an operation opens the database, it raises them, and the next
        operation calls ``prepare`` again.
        """
        if self._opened:
            prepare(self)
        else:
            self._preparations.append(prepare)

    async def read(self, work: Work[T], *, by_key: bool = False) -> T:
        """Run ``work`` in the thread of long reads, in a transaction that sees one snapshot.

        ``by_key``: it reads rows by key, which are few however large the cloud is. It then runs in the thread
        of short reads, and does not wait for long ones.

        A short read (`roost.storage.short_read`) needs no transaction: it is one short statement, or several
        that may each see another snapshot. It runs as by `autocommit_read`, so a statement costs one message
        to a server instead of three.

        Raises:
            DatabaseUnavailable: the database cannot be reached or does not answer in time.
        """
        if getattr(work, "is_short", False):
            return await self.autocommit_read(work)
        lane = self._reader if by_key else self._long_reader
        return await self._read_within(self._limit, lambda: self.read_now(work), lane)

    async def load(self, work: Work[T]) -> T:
        """Run ``work`` like `read`, but without a time limit for the whole: it may read the whole database.

        It is meant for loading a replica and bringing it up to date. It runs in the thread of short reads,
        none of which is of use before that is done.

        Raises:
            DatabaseUnavailable: the database cannot be reached or does not answer a statement in time.
        """
        seconds = self._limit if self.stopping else None
        return await self._read_within(seconds, lambda: self.read_now(work), self._reader)

    async def autocommit_read(self, work: Work[T]) -> T:
        """Run ``work``, one short query, in the thread of short reads and outside of transactions.

        On SQLite it runs in the calling thread, unless it opens the database: readers of SQLite do not wait
        for writers, and waking another thread would take longer.

        Raises:
            DatabaseUnavailable: the database cannot be reached or does not answer in time.
        """
        if self.is_sqlite and self._opened:
            self._check_open()
            return self._autocommit_read_now(work)
        return await self._read_within(self._limit, lambda: self._autocommit_read_now(work), self._reader)

    async def _read_within(self, seconds: float | None, call: Callable[[], T], lane: Lane) -> T:
        self._check_open()
        try:
            return await lane.run(call, seconds)
        except CallTimedOut as error:
            raise DatabaseUnavailable(self.no_answer()) from error

    def _autocommit_read_now(self, work: Work[T]) -> T:
        # The connection is reused for the next read only after a success.
        kept, self._autocommit = self._autocommit, None
        connection = kept
        self._open()
        try:
            if connection is None:
                connection = self._autocommit_engine.connect()
            found = work(connection)
        except DBAPIError as error:
            _drop(connection)
            ours = storage_error(error, self)
            if isinstance(ours, ConnectionLost) and kept is not None:
                return self._autocommit_read_now(work)  # the reused connection may have been lost while idle
            if ours is None:
                raise
            raise ours from error
        except BaseException:
            _drop(connection)
            raise
        self._autocommit = connection
        return found

    def read_now(self, work: Work[T]) -> T:
        """Run ``work`` in the calling thread, in a transaction that sees one snapshot.

        Raises:
            DatabaseUnavailable: the database cannot be reached or read.
        """
        self._open()
        try:
            with self._engine.begin() as connection:
                return work(connection)
        except DBAPIError as error:
            if (ours := storage_error(error, self)) is None:
                raise
            raise ours from error

    async def write(self, work: Work[T]) -> T:
        """Run ``work`` in the writer thread, in a transaction that it shares with the other waiting writes.

        Returns:
            Its result, once the transaction is durable.

        Raises:
            OutcomeUnknown: the connection was lost or timed out during COMMIT.
            DatabaseUnavailable: the database cannot be reached; nothing was written.
        """
        self._check_open()
        return await self._writes.write(work)

    def write_now(self, work: Work[T]) -> T:
        """Run ``work`` in the calling thread, in a transaction of its own; after a conflict run it again.

        A work raises `ConflictRolledBack` to be run again, if it finds that another transaction has committed
        between two of its statements.

        Raises:
            OutcomeUnknown: the connection was lost or timed out during COMMIT.
            DatabaseUnavailable: the database cannot be reached; nothing was written.
        """
        self._open()
        for attempt in range(CONFLICT_ATTEMPTS):
            committing = False
            try:
                with self._write_engine.begin() as connection:
                    result = work(connection)
                    committing = True
                self.refused = None
                return result
            except DBAPIError as error:
                ours = storage_error(error, self, committing)
                if ours is None:
                    raise
                if isinstance(ours, DatabaseFull | DatabaseReadOnly):
                    self.refused = ours
                if not isinstance(ours, ConflictRolledBack):
                    raise ours from error
                conflict = ours
            except ConflictRolledBack as raised:
                conflict = raised
            time.sleep(random.uniform(0, min(CONFLICT_PAUSE_SECONDS, 0.001 * 2**attempt)))
        raise conflict

    def stop_within(self, seconds: float) -> None:
        """Limit each operation on a server to ``seconds``, from now or from its start if that is later.

        For a process that must stop while its database may hang.
        """
        self.stopping = True
        if self._limit is not None:
            self._limit = min(self._limit, seconds)
            self._reader.give_up_after(self._limit)
            self._long_reader.give_up_after(self._limit)
            self._writes.give_up_after(self._limit)

    async def close(self) -> None:
        """Finish the waiting operations and close all connections except those of threads that hang."""
        self._closed = True
        await self._writes.close()
        await self._reader.close(self._limit)
        await self._long_reader.close(self._limit)
        kept, self._autocommit = self._autocommit, None
        _drop(kept)
        for engine in (self._autocommit_engine, self._engine, self._write_engine):
            engine.dispose()

    def no_answer(self) -> str:
        """The text of the error of an operation that took too long."""
        return f"database {self}: no answer for {self._limit:g} s"

    def _open(self) -> None:
        """Open the database unless it is open. Raises `DatabaseUnavailable`, and errors of preparations."""
        if self._opened:
            return
        with self._opening:
            # Preparations run operations, in this thread.
            if self._opened or self._is_opening:
                return
            self._is_opening = True
            try:
                self._connect()
                for prepare in self._preparations:
                    prepare(self)
                self._opened = True
            finally:
                self._is_opening = False

    def _connect(self) -> None:
        try:
            # On a server the autocommit engine has the shorter time limit. The reading engine sets up a
            # SQLite file.
            with (self._engine if self.is_sqlite else self._autocommit_engine).connect():
                pass
        except DBAPIError as error:
            raise opening_error(error, self) from error
        except (ArgumentError, TypeError, ValueError) as error:  # a driver's, for a parameter of the URL
            raise DatabaseMisconfigured(f"cannot open database {self}: {self.hide(str(error))}") from None

    def _check_open(self) -> None:
        if self._closed:
            raise DatabaseUnavailable(f"database {self} is closed")


def _drop(connection: Connection | None) -> None:
    """Close a connection, whatever its state."""
    if connection is not None:
        with contextlib.suppress(DBAPIError):
            connection.invalidate()
            connection.close()
