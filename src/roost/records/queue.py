"""The queue of records from the scheduler and the conductors to the backend that stores them.

A decision that has claimed hosts must not fail, wait, or be repeated because its record cannot be written.
`RecordQueue.put` therefore never raises and never waits. One task writes the queued records in batches.
While the backend is unavailable, the queue fills up to its limit; further records are dropped and counted.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec
import structlog

from roost.model.record import Attempt, Run, RunReasons
from roost.process.metrics import catalogue as metrics
from roost.records.errors import RecordsUnavailable
from roost.records.records import Records
from roost.records.rows import EncodedRun, encoded

QUEUE_LIMIT = 10_000
"""Records (runs and attempts) that may wait to be written. A further record is dropped."""

BATCH_LIMIT = 1_000
"""Records in one write, unless a single `RecordQueue.put` had more."""

GATHER_SECONDS = 0.2
"""Seconds that the first record of a batch waits for others, so that writes of records seldom compete with
decisions for disk and processor. A `RecordQueue.flush` does not wait."""

RETRY_SECONDS = 1.0
"""Pause before a batch that the backend could not write is written again."""

SLOW_SECONDS = 10.0
"""Seconds after which an unanswered write counts as an outage."""

CLOSE_SECONDS = 5.0
"""Seconds that closing may spend on waiting records, and again on the backend."""

_log = structlog.get_logger()

_WRITTEN, _DROPPED, _REFUSED = (
    metrics.RECORDS.labels(outcome) for outcome in ("written", "dropped", "refused")
)


class _Entry(msgspec.Struct, frozen=True):
    """The records of one `RecordQueue.put`, which are written together or not at all."""

    runs: tuple[EncodedRun, ...]
    attempts: tuple[Attempt, ...]
    reasons: tuple[RunReasons, ...]

    @property
    def size(self) -> int:
        return len(self.runs) + len(self.attempts) + len(self.reasons)


RecordFollower = Callable[[Sequence[Run], Sequence[Attempt]], None]
"""Takes the runs and attempts of a `RecordQueue.put`. Returns at once and raises nothing."""


class RecordQueue:
    """Records on their way to a backend, for use from one event loop.

    Args:
        backend: stores the records; it is closed with the queue.
        limit: records that may wait; see `QUEUE_LIMIT`.
        gather_seconds: see `GATHER_SECONDS`.
        retry_seconds: see `RETRY_SECONDS`.
        slow_seconds: see `SLOW_SECONDS`.
        close_seconds: see `CLOSE_SECONDS`.

    ``dropped`` counts records that were lost because the queue was full or was closed before they were
    written. ``failed`` counts records that the backend refused. Both only grow. ``followers`` are told of
    all runs and attempts that are queued.

    The log has one warning when an outage begins, and one line when it is over that says how many records
    were lost.
    """

    def __init__(
        self,
        backend: Records,
        limit: int = QUEUE_LIMIT,
        *,
        gather_seconds: float = GATHER_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
        slow_seconds: float = SLOW_SECONDS,
        close_seconds: float = CLOSE_SECONDS,
    ) -> None:
        self.backend = backend
        self.dropped = 0
        self.failed = 0
        self.followers: list[RecordFollower] = []
        self._limit = limit
        self._gather_seconds = gather_seconds
        self._retry_seconds = retry_seconds
        self._slow_seconds = slow_seconds
        self._close_seconds = close_seconds
        self._entries: deque[_Entry] = deque()
        self._waiting = 0
        self._handled = 0
        self._writing: asyncio.Task[None] | None = None
        self._lost_before_outage: int | None = None
        self._closed = False
        self._hurry = asyncio.Event()
        self._batch_ended = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Records that are queued or being written."""
        return self._waiting

    def put(
        self, runs: Sequence[Run], attempts: Sequence[Attempt], reasons: Sequence[RunReasons] = ()
    ) -> None:
        """Queue records, or drop and count them if the queue is full or closed.

        Attempts and reasons are put with their run or later. Needs a running event loop.
        """
        size = len(runs) + len(attempts) + len(reasons)
        if self._closed or self._waiting + size > self._limit:
            self._begin_outage("the queue is closed" if self._closed else f"{self._waiting} records wait")
            self.dropped += size
            _DROPPED.inc(size)
            return
        try:
            # Encoded at once, while the run is in the processor's cache. In the queue its many objects would
            # be traversed by the garbage collector again and again, and the writing thread would take
            # Python's lock from the decisions to encode them.
            rows = tuple(map(encoded, runs))
        except Exception as error:
            self._refuse(size, error)
            return
        self._entries.append(_Entry(rows, tuple(attempts), tuple(reasons)))
        for follow in self.followers:
            follow(runs, attempts)
        self._waiting += size
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())

    async def flush(self, seconds: float | None = None) -> bool:
        """Wait until the records in the queue are written or refused, at most ``seconds``; return whether so.

        Records that are put meanwhile do not count, as under load the queue is never empty. During an outage
        without a time limit, this waits for the end of the outage.
        """
        until = self._handled + self._waiting
        self._hurry.set()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while self._handled < until:
                        await self._batch_ended.wait()
        finally:
            self._hurry.clear()
        return self._handled >= until

    async def close(self) -> None:
        """Write waiting records for at most ``close_seconds``, drop the rest, and close the backend."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._close_seconds):
                while self._waiting:
                    await self.flush()
        self._closed = True
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait({self._writing})
        if self._waiting:
            self.dropped += self._waiting
            _DROPPED.inc(self._waiting)
            _log.warning("scheduling records were dropped at the end", records=self._waiting)
            self._waiting = 0
        try:
            async with asyncio.timeout(self._close_seconds):
                await self.backend.close()
        except TimeoutError:
            _log.warning("the backend of scheduling records did not close", seconds=self._close_seconds)

    async def _write_all(self) -> None:
        """Write until the queue is empty."""
        try:
            while self._entries:
                await self._gather()
                batch = self._next_batch()
                accepted = await self._write(batch)
                size = sum(entry.size for entry in batch)
                self._waiting -= size
                self._handled += size
                # Present waiters are woken; later ones wait for the next batch.
                self._batch_ended.set()
                self._batch_ended.clear()
                if accepted and self._waiting <= self._limit // 2:
                    self._end_outage()
        finally:
            self._writing = None

    async def _gather(self) -> None:
        """Wait until a batch is full, or its first record has waited `GATHER_SECONDS`."""
        if self._waiting < BATCH_LIMIT:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._gather_seconds):
                    await self._hurry.wait()

    def _next_batch(self) -> list[_Entry]:
        batch = [self._entries.popleft()]
        size = batch[0].size
        while self._entries and size + self._entries[0].size <= BATCH_LIMIT:
            batch.append(self._entries.popleft())
            size += batch[-1].size
        return batch

    async def _write(self, batch: Sequence[_Entry]) -> bool:
        """Write a batch, again after each outage; return whether the backend accepted all of it.

        A refused batch is halved until the offending entries are found.
        """
        while True:
            try:
                await self._write_once(batch)
                _WRITTEN.inc(sum(entry.size for entry in batch))
                return True
            except RecordsUnavailable as error:
                self._begin_outage(str(error))
            except Exception as error:
                # A record may hold a value that the backend cannot encode. That must not stop the others.
                if len(batch) > 1:
                    half = len(batch) // 2
                    accepted = [await self._write(part) for part in (batch[:half], batch[half:])]
                    return all(accepted)
                self._refuse(batch[0].size, error)
                return False
            await asyncio.sleep(self._retry_seconds)

    async def _write_once(self, batch: Sequence[_Entry]) -> None:
        slow = asyncio.get_running_loop().call_later(
            self._slow_seconds, self._begin_outage, f"no answer after {self._slow_seconds:g} seconds"
        )
        try:
            await self.backend.write(
                [run for entry in batch for run in entry.runs],
                [attempt for entry in batch for attempt in entry.attempts],
                [reasons for entry in batch for reasons in entry.reasons],
            )
        finally:
            slow.cancel()

    def _refuse(self, size: int, error: Exception) -> None:
        """Count records that cannot be recorded."""
        self._begin_outage(f"{type(error).__name__}: {error}")
        self.failed += size
        _REFUSED.inc(size)

    def _begin_outage(self, reason: str) -> None:
        """Warn once, with the reason, that records cannot be written."""
        if self._lost_before_outage is None:
            self._lost_before_outage = self._lost
            _log.warning("scheduling records cannot be written", reason=reason)

    def _end_outage(self) -> None:
        if self._lost_before_outage is not None:
            lost = self._lost - self._lost_before_outage
            self._lost_before_outage = None
            _log.warning("scheduling records are written again", lost=lost)

    @property
    def _lost(self) -> int:
        return self.dropped + self.failed
