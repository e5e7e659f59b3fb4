"""Group commit: writes that wait at the same time share a transaction.

A durable commit costs a sync of the disk, however little it writes. While one transaction commits, the writes
that arrive wait, and the next transaction takes all of them. Under load hundreds of writes share a sync; a
single write does not wait. Works of one type share their statements too: see `roost.storage.batches`.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from sqlalchemy.engine import Connection

from roost.process.lane import CallTimedOut, Lane, awaitable
from roost.storage.batches import perform
from roost.storage.errors import ConnectionLost, DatabaseUnavailable, OutcomeUnknown

T = TypeVar("T")
Work = Callable[[Connection], T]
"""A function that executes the statements of a transaction and returns their result.

It runs again if the transaction is rolled back, so it must have no effect except on the connection.
"""


class GroupCommit:
    """The writer thread of a database and the writes that wait for it.

    Args:
        write_now: runs a work in a transaction, in the thread that calls it.
        limit: returns the seconds that a write may take now, including its wait; None: no limit.
        no_answer: returns the text of the error of a write that took longer.
    """

    def __init__(
        self,
        write_now: Callable[[Work[Any]], Any],
        limit: Callable[[], float | None],
        no_answer: Callable[[], str],
    ) -> None:
        self._write_now = write_now
        self._limit = limit
        self._no_answer = no_answer
        self._lane = Lane("writer")
        self._waiting: list[_Waiting] = []
        self._draining: asyncio.Task[None] | None = None

    async def write(self, work: Work[T]) -> T:
        """Run ``work`` in the next transaction and return its result once it is durable.

        If a work raises, the transaction is rolled back and each of its works runs in a transaction by
        itself, so that only the work that raised fails.

        Raises:
            OutcomeUnknown: the connection was lost or timed out during COMMIT.
            DatabaseUnavailable: the database cannot be reached; nothing was written.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._waiting.append(_Waiting(work, future, loop.time()))
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain())
        return await future

    def give_up_after(self, seconds: float) -> None:
        """Limit the transaction that runs now to ``seconds`` from now."""
        self._lane.give_up_after(seconds)

    async def close(self) -> None:
        """Finish the waiting writes and end the thread, or abandon it if it hangs."""
        if self._draining is not None:
            # Shielded: if the caller is cancelled, the waiting ones still get their outcomes.
            await asyncio.shield(self._draining)
        await self._lane.close(self._limit())

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
        """Return the outcomes of works that share a transaction, within the time limit of the oldest."""
        left = None
        if (limit := self._limit()) is not None:
            left = limit - (asyncio.get_running_loop().time() - batch[0].since)
            if left <= 0:
                return [_Failed(DatabaseUnavailable(self._no_answer()))] * len(batch)
        works = [waiting.work for waiting in batch]
        try:
            return await self._lane.run(lambda: self._write_together(works), left)
        except CallTimedOut as error:
            kind = OutcomeUnknown if error.begun else DatabaseUnavailable
            return [_Failed(kind(self._no_answer()))] * len(batch)

    def _write_together(self, works: list[Work[Any]]) -> list[Any]:
        begun = False

        def together(connection: Connection) -> list[Any]:
            nonlocal begun
            begun = True
            return perform(connection, works)

        try:
            return self._write_now(together)  # type: ignore[no-any-return]
        except Exception as error:
            # If the database did not begin the transaction, it would fail each work in the same way, after
            # the same wait. After a lost connection the transaction may be committed, so nothing may run
            # again.
            if len(works) == 1 or not begun or isinstance(error, ConnectionLost | OutcomeUnknown):
                return [_Failed(error)] * len(works)
        outcomes: list[Any] = []
        for work in works:
            try:
                outcomes.append(self._write_now(work))
            except Exception as error:
                outcomes.append(_Failed(error))
        return outcomes


class _Waiting(NamedTuple):
    """A waiting write. ``since``: when it was requested, in seconds of the event loop's clock."""

    work: Work[Any]
    future: asyncio.Future[Any]
    since: float


class _Failed:
    """The error of a work, passed from the writer thread to the event loop."""

    def __init__(self, error: Exception) -> None:
        self.error = awaitable(error)
