"""Timing of the steps of coroutines: the code between two suspensions holds the event loop."""

from collections.abc import Callable, Coroutine, Generator
from time import perf_counter
from typing import Any, Final, Generic, Protocol, TypeVar

T = TypeVar("T")

HELD_SECONDS: Final = 0.02
"""Seconds of a step after which it counts as a hold of the event loop."""

Name = Callable[[], str]
"""Returns the name of the operation. It is called only for a hold, after the step."""


class Holds(Protocol):
    """Receives holds of the event loop. ``seconds``: the sum of those received."""

    seconds: float

    def note(self, operation: str, seconds: float) -> None:
        """Receive a hold."""


class TimedSteps(Generic[T]):
    """An awaitable around a coroutine that reports each step longer than `HELD_SECONDS`.

    Steps nest: a step reports its time without the holds that steps inside it have reported. ``clock``:
    seconds.
    """

    __slots__ = ("_clock", "_coroutine", "_holds", "_name")

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, T],
        name: Name,
        holds: Holds,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._coroutine = coroutine
        self._name = name
        self._holds = holds
        self._clock = clock

    def __await__(self) -> Generator[Any, Any, T]:
        coroutine, holds, clock = self._coroutine, self._holds, self._clock
        sent: Any = None
        thrown: BaseException | None = None
        while True:
            noted = holds.seconds
            began = clock()
            try:
                waited = coroutine.send(sent) if thrown is None else coroutine.throw(thrown)
            except StopIteration as end:
                found: T = end.value
                return found
            finally:
                seconds = clock() - began
                if seconds > HELD_SECONDS:
                    seconds -= holds.seconds - noted
                    if seconds > HELD_SECONDS:
                        holds.note(self._name(), seconds)
            try:
                sent = yield waited
                thrown = None
            except GeneratorExit:
                coroutine.close()
                raise
            except BaseException as error:
                thrown = error


async def timed(coroutine: Coroutine[Any, Any, T], name: Name, holds: Holds) -> T:
    """Run a coroutine as `TimedSteps` does, for callers that take only coroutines."""
    return await TimedSteps(coroutine, name, holds)


_CODES: Final = (timed.__code__, TimedSteps.__await__.__code__)


def timed_coroutine(awaited: Any) -> Any:
    """Return the coroutine that `timed` or `TimedSteps` runs, to find where it waits.

    Any other awaitable is returned itself.
    """
    frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
    while frame is not None and frame.f_code in _CODES:
        awaited = frame.f_locals["coroutine"]
        frame = getattr(awaited, "cr_frame", None)
    return awaited
