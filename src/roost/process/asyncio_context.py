"""The context of conductors and agents in a process: databases, asyncio, clocks, logs and records."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Protocol, TypeVar

import structlog

from roost.model.record import Attempt, RecordSink, Run
from roost.process.context import Level, Routine, Work
from roost.process.logs import RequestIds, serving
from roost.process.wakes import TopicListener, Wakes

T = TypeVar("T")

_log = structlog.get_logger()


class Transactor(Protocol):
    """A database; `roost.storage.Database` is one."""

    async def read(self, work: Work[T], /) -> T:
        """Run a work in a transaction that reads one snapshot, and return its result."""

    async def write(self, work: Work[T], /) -> T:
        """Run a work in a transaction and return its result once it is durable."""


class AsyncioContext:
    """Is what `roost.process.context.Context` says, for one process.

    Args:
        database: returns the database of a name. An error that it raises is raised in the coroutine.
        records: takes runs and attempts; None: they are dropped.
        wakes: the topics of the process, which other code may wake as well.
        clock: seconds since the epoch.

    ``failure`` is the error of the last coroutine of `start` that ended with one; None if none did.
    """

    def __init__(
        self,
        database: Callable[[str], Transactor],
        *,
        records: RecordSink | None = None,
        wakes: Wakes | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        draw: Callable[[], str] = lambda: str(uuid.uuid4()),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._database = database
        self._records = records
        self.wakes = wakes or Wakes()
        self.clock = clock
        self.monotonic = monotonic
        self.draw = draw
        self.sleep = sleep
        self._running: set[asyncio.Task[Any]] = set()
        self.failure: BaseException | None = None

    async def read(self, database: str, work: Work[T], /) -> T:
        """Run a work in a transaction that reads one snapshot of a database."""
        return await self._database(database).read(work)

    async def write(self, database: str, work: Work[T], /) -> T:
        """Run a work in a transaction that writes."""
        return await self._database(database).write(work)

    def wake(self, topic: str, /) -> None:
        """Wake all coroutines that listen to a topic."""
        self.wakes.wake(topic)

    def listen(self, topic: str, /, *, from_now: bool = False) -> TopicListener:
        """Return a listener to a topic."""
        return self.wakes.listen(topic, from_now=from_now)

    async def together(self, routines: Sequence[Routine[T]], /) -> list[T]:
        """Run coroutines at the same time until all have ended. Raises the first error."""
        tasks = [asyncio.create_task(routine) for routine in routines]
        # A coroutine may return an exception as its answer: only its task tells that from a raised one.
        await asyncio.gather(*tasks, return_exceptions=True)
        return [task.result() for task in tasks]

    async def within(self, seconds: float, work: Awaitable[T], /) -> T:
        """Await something. Raises `TimeoutError` after ``seconds``."""
        async with asyncio.timeout(seconds):
            return await work

    def start(
        self, name: str, routine: Routine[T], requests: RequestIds | None = None, /
    ) -> "asyncio.Task[T]":
        """Run a coroutine in a task of its own. `close` ends it."""
        with nullcontext() if requests is None else serving(requests):
            task = asyncio.create_task(routine, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def log(
        self,
        event: str,
        values: Mapping[str, object] = {},
        level: Level = "info",
        error: BaseException | None = None,
        /,
    ) -> None:
        """Write a log line."""
        trace = {} if error is None else {"exc_info": error}
        getattr(_log, level)(event, **values, **trace)

    def record(self, runs: Sequence[Run], attempts: Sequence[Attempt], /) -> None:
        """Put runs and attempts into the records."""
        if self._records is not None:
            self._records.put(runs, attempts)

    @property
    def running(self) -> int:
        """Coroutines of `start` that have not ended."""
        return len(self._running)

    async def close(self) -> None:
        """Cancel all coroutines of `start`, wherever they wait."""
        while self._running:
            running = list(self._running)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failure = error
            _log.error("a coroutine ended with an error", coroutine=task.get_name(), exc_info=error)
