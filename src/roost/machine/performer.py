"""The asyncio shell of machines: performs their steps on databases and services."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import nullcontext
from typing import Any, Protocol, TypeVar

import structlog

from roost.machine import steps
from roost.machine.steps import Call, Machine, MachineStep, Work
from roost.machine.wakes import Wakes
from roost.model.record import RecordSink
from roost.process.logs import RequestIds, serving

T = TypeVar("T")

_log = structlog.get_logger()


class Transactor(Protocol):
    """A database; `roost.storage.Database` is one."""

    async def read(self, work: Work[T], /) -> T:
        """Run a work in a transaction that reads one snapshot, and return its result."""

    async def write(self, work: Work[T], /) -> T:
        """Run a work in a transaction and return its result once it is durable."""


Service = Callable[[Call[Any]], Awaitable[Any]]
"""Answers questions. Raises `UnknownService` for a question that it does not know."""


class UnknownService(Exception):
    """A machine asks a service that its process does not have, or a question that the service does not
    know."""


class Performer:
    """Runs the machines of one process.

    Args:
        database: returns the database of a name. An error that it raises is thrown into the machine.
        services: by name.
        records: takes runs and attempts; None: they are dropped.
        wakes: the topics of the process, which other code may wake as well.
        clock: seconds since the epoch.

    ``failure`` is the error of the last machine of `start` that ended with one; None if none did.
    """

    def __init__(
        self,
        database: Callable[[str], Transactor],
        services: Mapping[str, Service] | None = None,
        *,
        records: RecordSink | None = None,
        wakes: Wakes | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        draw: Callable[[], str] = lambda: str(uuid.uuid4()),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._database = database
        self._services = services or {}
        self._records = records
        self.wakes = wakes or Wakes()
        self._sleep = sleep
        self._at_once: dict[type[MachineStep[Any]], Callable[[Any], object]] = {
            steps.Monotonic: lambda _: monotonic(),
            steps.Clock: lambda _: clock(),
            steps.Draw: lambda _: draw(),
            steps.Wake: lambda step: self.wakes.wake(step.topic),
            steps.Start: lambda step: self._start(step),
            steps.Log: _log_line,
            steps.Record: self._record,
            steps.Increment: lambda step: step.counter.inc(step.amount),
        }
        self._running: set[asyncio.Task[Any]] = set()
        self.failure: BaseException | None = None

    async def run(self, machine: Machine[T]) -> T:
        """Run a machine to its end. Raises the error that leaves it. A cancellation closes the machine."""
        return await self._run(machine.__await__())

    async def _run(self, running: Generator[Any, Any, T]) -> T:
        seen: dict[str, int] = {}
        at_once = self._at_once
        try:
            step = next(running)
            while True:
                # Most steps wait for nothing, and a coroutine for each would cost more than the step.
                perform = at_once.get(type(step))
                try:
                    answer = await self._perform(step, seen) if perform is None else perform(step)
                except Exception as error:
                    step = running.throw(error)
                else:
                    step = running.send(answer)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]
        finally:
            running.close()

    def start(self, name: str, machine: Machine[T], requests: RequestIds | None = None) -> "asyncio.Task[T]":
        """Run a machine in a task of its own. `close` ends it."""
        with nullcontext() if requests is None else serving(requests):
            task = self._begun(machine, name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    @property
    def running(self) -> int:
        """Machines of `start` that have not ended."""
        return len(self._running)

    async def idle(self) -> None:
        """Wait until no machine of `start` runs."""
        while self._running:
            await asyncio.wait(self._running)

    async def close(self) -> None:
        """Close all machines of `start`, at any step."""
        while self._running:
            running = list(self._running)
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    def _begun(self, machine: Machine[T], name: str | None = None) -> "asyncio.Task[T]":
        running = machine.__await__()
        task = asyncio.create_task(self._run(running), name=name)
        # A task that is cancelled before its first step never gets to the machine.
        task.add_done_callback(lambda _: running.close())
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failure = error
            _log.error("a machine ended with an error", machine=task.get_name(), exc_info=error)

    async def _perform(self, step: MachineStep[Any], seen: dict[str, int]) -> Any:
        match step:
            case steps.Read(database, work):
                return await self._database(database).read(work)
            case steps.Write(database, work):
                return await self._database(database).write(work)
            case steps.Ask(service, question):
                if service not in self._services:
                    raise UnknownService(f"this process has no service {service!r}")
                return await self._services[service](question)
            case steps.Sleep(seconds):
                return await self._sleep(seconds)
            case steps.Await(topic, seconds):
                return await self.wakes.wait(topic, seconds, seen)
            case steps.Together(machines):
                return await self._together(machines)
            case steps.Within(seconds, machine):
                async with asyncio.timeout(seconds):
                    return await self.run(machine)
        raise TypeError(f"a machine yielded {step!r}, which is not a step")

    async def _together(self, machines: Any) -> list[Any]:
        tasks = [self._begun(machine) for machine in machines]
        # A machine may return an exception as its answer: only its task tells that from a raised one.
        await asyncio.gather(*tasks, return_exceptions=True)
        return [task.result() for task in tasks]

    def _start(self, step: steps.Start) -> None:
        self.start(step.name, step.machine, step.requests)

    def _record(self, step: steps.Record) -> None:
        if self._records is not None:
            self._records.put(step.runs, step.attempts)


def _log_line(step: steps.Log) -> None:
    trace = {} if step.error is None else {"exc_info": step.error}
    getattr(_log, step.level)(step.event, **step.values, **trace)
