"""The steps of machines: frozen values that name an operation, each with the type of its answer.

A machine awaits a step and gets its answer with its type: ``now = await Monotonic()``.
"""

from collections.abc import Awaitable, Generator, Mapping, Sequence
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar

import msgspec
from sqlalchemy.engine import Connection

from roost.model.record import Attempt, Run
from roost.process.logs import RequestIds

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Level: TypeAlias = Literal["debug", "info", "warning", "error"]


class MachineStep(msgspec.Struct, Generic[T], frozen=True):
    """An operation that a machine has its shell do. ``T`` is the type of the answer.

    Awaiting it yields it to the shell. Raises the error of the step.
    """

    def __await__(self) -> "Generator[MachineStep[Any], Any, T]":
        return (yield self)  # type: ignore[no-any-return]


Machine: TypeAlias = Awaitable[T]
"""A coroutine that awaits nothing but steps and returns a ``T``, or a single step."""


# Databases and services


class Work(Protocol[T_co]):
    """The statements of one transaction and their result: a frozen struct, named for what it does.

    A transaction that is rolled back runs again, so a work has no effect except on the connection.
    """

    def __call__(self, connection: Connection, /) -> T_co:
        """Execute the statements in the transaction of a connection."""


class Read(MachineStep[T], Generic[T], frozen=True):
    """Run a work in a transaction that reads one snapshot of a database.

    A work whose type has ``is_short = True`` runs without a transaction (`roost.storage.Database.read`).
    ``database``: ``api``, or ``cell/NAME``. Raises `StorageError`.
    """

    database: str
    work: Work[T]


class Write(MachineStep[T], Generic[T], frozen=True):
    """Run a work in a transaction that writes, and answer its result once it is durable.

    ``database``: ``api``, or ``cell/NAME``. Raises `StorageError`; after `OutcomeUnknown` the transaction may
    be committed, even later.
    """

    database: str
    work: Work[T]


class Call(msgspec.Struct, Generic[T], frozen=True):
    """A question to a service. ``T`` is the type of its answer."""


class Ask(MachineStep[T], Generic[T], frozen=True):
    """Ask a service, such as the scheduler, placement, a driver or an endpoint.

    Raises what the service raises.
    """

    service: str
    question: Call[T]


# Time and chance


class Monotonic(MachineStep[float], frozen=True):
    """Answer the seconds of the process's monotonic clock. Only this clock measures time spans."""


class Clock(MachineStep[float], frozen=True):
    """Answer the seconds since the epoch, for times that people read. No decision depends on them."""


class Draw(MachineStep[str], frozen=True):
    """Answer a nonce: a random, unique uuid."""


class Sleep(MachineStep[None], frozen=True):
    """Wait for ``seconds``."""

    seconds: float


class Await(MachineStep[bool], frozen=True):
    """Wait until a topic is woken, at most ``seconds``; answer whether it was.

    A topic that was woken since this machine last awaited it, or that it never awaited, counts as woken at
    once. So a machine that reads, finds no work and then awaits misses no wake.
    """

    topic: str
    seconds: float


class Wake(MachineStep[None], frozen=True):
    """Wake all machines of the process that await a topic."""

    topic: str


# Machines


class Together(MachineStep[list[T]], Generic[T], frozen=True):
    """Run machines at the same time and answer their results, in their order.

    Waits until all have ended. Then it raises the first error, if there was one: a machine that is left
    running could write later than its caller's next attempt.
    """

    machines: Sequence[Machine[T]]


class Within(MachineStep[T], Generic[T], frozen=True):
    """Run a machine and answer its result.

    Raises `TimeoutError` after ``seconds``: the machine is closed then, at any step.
    """

    seconds: float
    machine: Machine[T]


class Start(MachineStep[None], frozen=True):
    """Run a machine beside this one, until its end or the end of the process.

    ``name`` is for logs. ``requests``: the ids that its log lines carry. An error that leaves the machine is
    a defect of the machine; the shell logs it and keeps it.
    """

    name: str
    machine: Machine[Any]
    requests: RequestIds | None = None


# Logs, records and metrics


class Log(MachineStep[None], frozen=True):
    """Write a log line. ``error``: its traceback is written as well."""

    event: str
    values: Mapping[str, object] = {}
    level: Level = "info"
    error: BaseException | None = None


class Record(MachineStep[None], frozen=True):
    """Put runs and attempts into the records. Never waits and never fails."""

    runs: Sequence[Run] = ()
    attempts: Sequence[Attempt] = ()


class MetricCounter(Protocol):
    """A counter of the metrics."""

    def inc(self, amount: float = 1.0) -> None:
        """Add ``amount``."""


class Increment(MachineStep[None], frozen=True):
    """Raise a counter of the metrics."""

    counter: MetricCounter
    amount: float = 1.0
