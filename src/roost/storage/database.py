"""One database: reads in one thread, writes in another, many writes in one transaction.

Why group commit here: a durable commit costs a sync of the disk however little it holds. While one
transaction is being made durable, the writes that arrive wait together, and all of them go into the next
one. Under load a sync is shared by hundreds of writes; alone, a write does not wait.

A server that hangs accepts connections and acknowledges what it is sent, but does not answer. So each
operation has a limit, `ANSWER_SECONDS` unless told otherwise, after which its caller gets an error whatever
the thread that makes it is doing; that thread is replaced (`Lane`). A SQLite file has no server that hangs.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.engine.url import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError

from roost.storage.conflicts import Trouble, in_one_line, is_rolled_back, trouble
from roost.storage.engine import (
    ANSWER_SECONDS,
    for_reading_only,
    looking_engine,
    reading_engine,
    writing_engine,
)
from roost.storage.errors import (
    DatabaseDamaged,
    DatabaseFull,
    DatabaseReadOnly,
    DatabaseRefused,
    DatabaseUnavailable,
    OutcomeUnknown,
)
from roost.storage.lane import Lane, Unanswered

T = TypeVar("T")
Work = Callable[[Connection], T]
"""A piece of work in a transaction. It may be run again if the transaction is rolled back, so it must
have no effect beside the connection's."""

CONFLICT_TRIES = 20
"""How often a transaction is run that the server undoes for another's sake."""

CONFLICT_PAUSE = 0.05
"""At most so many seconds pass before it is run again; at first nearly none."""


class Database:
    """One database, for use from one event loop.

    Args:
        url: SQLAlchemy URL. A SQLite file that does not exist is created if its folder exists.
        read_only: nothing can be written, and a SQLite file is not created.
        create: whether a SQLite file that does not exist is created.
        answer_seconds: how long an operation may take on a server.

    Raises `DatabaseUnavailable` if it cannot be opened.
    """

    def __init__(
        self,
        url: str,
        *,
        read_only: bool = False,
        create: bool = True,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.url = _parse(url)
        self.answer_seconds = answer_seconds
        self.stopping = False
        self._limit = None if self.is_sqlite else answer_seconds
        if self.is_sqlite:
            self._check_file(must_exist=read_only or not create)
        opened = for_reading_only(self.url) if read_only else self.url
        try:
            self._engine = reading_engine(opened, read_only, answer_seconds)
            self._write_engine = writing_engine(opened, read_only, answer_seconds)
            self._look_engine = looking_engine(opened, answer_seconds)
        except (ArgumentError, ImportError) as error:
            raise DatabaseUnavailable(f"cannot open database {self}: {error}") from error
        self._looking: Connection | None = None
        self._reader = Lane("reader")
        self._writer = Lane("writer")
        self._waiting: list[_Waiting] = []
        self._draining: asyncio.Task[None] | None = None
        self._closed = False
        try:
            # Of a server the connection with the shorter limit; a SQLite file is set up by the other one.
            with (self._engine if self.is_sqlite else self._look_engine).connect():
                pass
        except DBAPIError as error:
            raise DatabaseUnavailable(f"cannot open database {self}: {in_one_line(error)}") from error

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

    @property
    def limit(self) -> float | None:
        """Seconds that an operation may take; None: a SQLite file, which has no server that could hang."""
        return self._limit

    async def read(self, work: Work[T]) -> T:
        """Run ``work`` in the reader thread, in a transaction that sees one snapshot.

        Raises `DatabaseUnavailable` if the database cannot be reached or does not answer in time.
        """
        return await self._read_within(self._limit, lambda: self.read_now(work))

    async def load(self, work: Work[T]) -> T:
        """Run ``work`` like `read`, but without a limit for the whole: it may read all there is.

        Raises `DatabaseUnavailable`.
        """
        return await self._read_within(self._limit if self.stopping else None, lambda: self.read_now(work))

    async def look(self, work: Work[T]) -> T:
        """Run ``work``, which is one short statement, outside of transactions.

        SQLite answers in this thread, sooner than another one would have woken up: readers do not wait there.
        Raises `DatabaseUnavailable` if the database cannot be reached or does not answer in time.
        """
        if self.is_sqlite:
            self._check_open()
            return self._look_now(work)
        return await self._read_within(self._limit, lambda: self._look_now(work))

    async def _read_within(self, seconds: float | None, call: Callable[[], T]) -> T:
        self._check_open()
        try:
            return await self._reader.run(call, seconds)
        except Unanswered as error:
            raise DatabaseUnavailable(self.no_answer()) from error

    def _look_now(self, work: Work[T]) -> T:
        # Kept for the next look only after a look that went well.
        kept, self._looking = self._looking, None
        connection = kept
        try:
            if connection is None:
                connection = self._look_engine.connect()
            found = work(connection)
        except DBAPIError as error:
            _drop(connection)
            ours = self._as_ours(error)
            if isinstance(ours, _ConnectionLost) and kept is not None:
                return self._look_now(work)  # it may have been lost long ago
            if ours is None:
                raise
            raise ours from error
        except BaseException:
            _drop(connection)
            raise
        self._looking = connection
        return found

    def read_now(self, work: Work[T]) -> T:
        """Run ``work`` in this thread, in a transaction that sees one snapshot."""
        try:
            with self._engine.begin() as connection:
                return work(connection)
        except DBAPIError as error:
            if (ours := self._as_ours(error)) is None:
                raise
            raise ours from error

    async def write(self, work: Work[T]) -> T:
        """Run ``work`` in the writer thread and return its result once it is durable.

        Works that wait at the same time share a transaction. If one of them raises, the transaction is
        rolled back and each is run in a transaction of its own, so that the error is only its own.

        Raises `OutcomeUnknown` if the database went away while it was committing, and `DatabaseUnavailable`
        if it was away before; then nothing was written.
        """
        self._check_open()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._waiting.append(_Waiting(work, future, loop.time()))
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())
        return await future

    def write_now(self, work: Work[T]) -> T:
        """Run ``work`` in a transaction of its own in this thread, again if others' transactions undid it.

        Raises `OutcomeUnknown` if the database went away while it was committing.
        """
        for tried in range(CONFLICT_TRIES):
            committing = False
            try:
                with self._write_engine.begin() as connection:
                    result = work(connection)
                    committing = True
                return result
            except DBAPIError as error:
                ours = self._as_ours(error, committing)
                if ours is None:
                    raise
                if not isinstance(ours, _Conflict):
                    raise ours from error
                conflict = ours
            time.sleep(random.uniform(0, min(CONFLICT_PAUSE, 0.001 * 2**tried)))
        raise conflict

    def stop_within(self, seconds: float) -> None:
        """Have every operation end within so many seconds, those under way and all later ones, on a server.

        For a process that is told to stop, and whose database may hang.
        """
        self.stopping = True
        if self._limit is not None:
            self._limit = min(self._limit, seconds)
            for lane in (self._reader, self._writer):
                lane.give_up_after(self._limit)

    async def close(self) -> None:
        """Finish what is waiting and close all connections but those of threads that hang."""
        self._closed = True
        if self._draining is not None:
            await self._draining
        await self._reader.close(self._limit)
        kept, self._looking = self._looking, None
        _drop(kept)
        await self._writer.close(self._limit)
        for engine in (self._look_engine, self._engine, self._write_engine):
            engine.dispose()

    def _as_ours(self, error: DBAPIError, committing: bool = False) -> Exception | None:
        """The error to raise for a driver's, None: that one."""
        text = f"database {self}: {in_one_line(error)}"
        match trouble(error):
            case None:
                return None
            case Trouble.REFUSED_ROW:
                assert error.orig is not None
                return IntegrityError(error.statement, error.params, error.orig)
            case Trouble.CONFLICT:
                return _Conflict(text)
            case _ if committing and not is_rolled_back(error):
                return OutcomeUnknown(text)
            case Trouble.LOST:
                return _ConnectionLost(text)
            case found:
                return _ERRORS.get(found, DatabaseUnavailable)(text)

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

    def no_answer(self) -> str:
        """What is said of an operation that took too long."""
        return f"database {self}: no answer for {self._limit:g} s"

    async def _drain(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            for waiting, outcome in zip(batch, await self._write_batch(batch), strict=True):
                if waiting.future.cancelled():
                    continue
                if isinstance(outcome, _Failed):
                    waiting.future.set_exception(outcome.error)
                else:
                    waiting.future.set_result(outcome)
        self._draining = None

    async def _write_batch(self, batch: "list[_Waiting]") -> list[Any]:
        """The outcomes of works that share a transaction, within the time that is left for the oldest."""
        left = None
        if self._limit is not None:
            left = self._limit - (asyncio.get_running_loop().time() - batch[0].since)
            if left <= 0:
                return [_Failed(DatabaseUnavailable(self.no_answer()))] * len(batch)
        works = [waiting.work for waiting in batch]
        try:
            return await self._writer.run(lambda: self._write_together(works), left)
        except Unanswered as error:
            kind = OutcomeUnknown if error.begun else DatabaseUnavailable
            return [_Failed(kind(self.no_answer()))] * len(batch)

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
            if len(works) == 1 or not begun or isinstance(error, _ConnectionLost | OutcomeUnknown):
                return [_Failed(error)] * len(works)
        outcomes: list[Any] = []
        for work in works:
            try:
                outcomes.append(self.write_now(work))
            except Exception as error:
                outcomes.append(_Failed(error))
        return outcomes


_ERRORS: dict[Trouble, type[DatabaseUnavailable]] = {
    Trouble.FULL: DatabaseFull,
    Trouble.READ_ONLY: DatabaseReadOnly,
    Trouble.DAMAGED: DatabaseDamaged,
    Trouble.REFUSED: DatabaseRefused,
}


class _Conflict(DatabaseUnavailable):
    """The server undid a transaction for another's sake: a deadlock, a failed certification in Galera."""


class _ConnectionLost(DatabaseUnavailable):
    """The connection went away during a transaction."""


class _Waiting(NamedTuple):
    """A work to be written. ``since``: when it was asked for, by the event loop's clock."""

    work: Work[Any]
    future: asyncio.Future[Any]
    since: float


class _Failed:
    """A work's error, on its way from the writer thread to the one who waits."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def _drop(connection: Connection | None) -> None:
    """Give up a connection, whatever state it is in."""
    if connection is not None:
        with contextlib.suppress(DBAPIError):
            connection.invalidate()
            connection.close()


def _parse(url: str) -> URL:
    try:
        return make_url(url)
    except ArgumentError as error:
        raise DatabaseUnavailable(f"not a database URL: {url!r}") from error
