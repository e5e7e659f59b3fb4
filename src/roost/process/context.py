"""The context of conductors and agents: all that their coroutines use of the process that runs them.

A coroutine of a conductor or an agent awaits nothing but its context and the services that it was given. It
has no clock, no randomness and no I/O of its own, so the same code runs in a process, with `AsyncioContext`,
and in the simulator of the tests, which draws delays, losses, crashes and outages from a seed.

It may be cancelled wherever it waits, as its process may die there, so it awaits nothing in a ``finally``.
The next process finds the rest of the work in the databases.
"""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from sqlalchemy.engine import Connection

from roost.model.record import Attempt, Run
from roost.process.logs import RequestIds

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Level: TypeAlias = Literal["debug", "info", "warning", "error"]

Routine: TypeAlias = Coroutine[Any, Any, T]
"""A coroutine of a conductor or an agent that returns a ``T``."""


class Work(Protocol[T_co]):
    """The statements of one transaction and their result: a call of a transaction, or a struct.

    A transaction that is rolled back runs again, so a work has no effect except on the connection.
    """

    def __call__(self, connection: Connection, /) -> T_co:
        """Execute the statements in the transaction of a connection."""


class Listener(Protocol):
    """Waits for the wakes of a topic that it has not seen."""

    def wait(self, seconds: float) -> Awaitable[bool]:
        """Wait until the topic is woken, at most ``seconds``; returns whether it was.

        A wake since the last wait counts. So a coroutine that reads, finds no work and then waits misses no
        wake.
        """


class Context(Protocol):
    """The databases, clocks, topics, tasks, logs and records of a process."""

    def read(self, database: str, work: Work[T], /) -> Awaitable[T]:
        """Run a work in a transaction that reads one snapshot of a database.

        A short read runs without a transaction (`roost.storage.transactions.short_read`).
        ``database``: ``api``, or ``cell/NAME``. Raises `StorageError`.
        """

    def write(self, database: str, work: Work[T], /) -> Awaitable[T]:
        """Run a work in a transaction that writes, and return its result once it is durable.

        ``database``: ``api``, or ``cell/NAME``. Raises `StorageError`; after `OutcomeUnknown` the transaction
        may be committed, even later.
        """

    def monotonic(self) -> float:
        """Return the seconds of the process's monotonic clock. Only this clock measures time spans."""

    def clock(self) -> float:
        """Return the seconds since the epoch, for times that people read. No decision depends on them."""

    def draw(self) -> str:
        """Return a nonce: a random, unique uuid."""

    def sleep(self, seconds: float, /) -> Awaitable[None]:
        """Wait for ``seconds``."""

    def wake(self, topic: str, /) -> None:
        """Wake all coroutines of the process that listen to a topic."""

    def listen(self, topic: str, /, *, from_now: bool = False) -> Listener:
        """Return a listener to a topic. Its first wait ends at once, unless only wakes ``from_now`` count."""

    def together(self, routines: Sequence[Routine[T]], /) -> Awaitable[list[T]]:
        """Run coroutines at the same time and return their results, in their order.

        Waits until all have ended. Then it raises the first error, if there was one: a coroutine that is left
        running could write later than its caller's next attempt.
        """

    def within(self, seconds: float, work: Awaitable[T], /) -> Awaitable[T]:
        """Await something and return its result.

        Raises `TimeoutError` after ``seconds``: it is cancelled then, wherever it waits.
        """

    def start(self, name: str, routine: Routine[Any], requests: RequestIds | None = None, /) -> object:
        """Run a coroutine beside this one, until its end or the end of the process.

        ``name`` is for logs. ``requests``: the ids that its log lines carry. An error that leaves the
        coroutine is a defect of it, and is logged and kept.
        """

    def log(
        self,
        event: str,
        values: Mapping[str, object] = {},
        level: Level = "info",
        error: BaseException | None = None,
        /,
    ) -> None:
        """Write a log line. ``error``: its traceback is written as well."""

    def record(self, runs: Sequence[Run], attempts: Sequence[Attempt], /) -> None:
        """Put runs and attempts into the records. Never waits and never fails."""


BEGUN_AGAIN = "a coroutine ended with an error, and is begun again"
"""The event of a coroutine that must not end and has a defect."""


async def lasting(
    context: Context, name: str, begin: Callable[[], Routine[None]], pause: float = 1.0
) -> None:
    """Run a coroutine; after an error, which is a defect, begin it again in ``pause`` seconds.

    One unexpected row must not stop a part of a process's work for good. Ends when the coroutine ends.
    """
    while True:
        try:
            await begin()
            return
        except Exception as error:
            context.log(BEGUN_AGAIN, {"coroutine": name, "seconds": pause}, "error", error)
        await context.sleep(pause)
