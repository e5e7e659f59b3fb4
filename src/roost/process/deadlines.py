"""Deadlines for futures and for awaitables, with one timer for all of them."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

Failure = Callable[[], Exception]
"""Returns the error that a future gets if it is not done at its deadline."""


class WatchedFuture(Protocol):
    """An object with a deadline. `asyncio.Future` is one."""

    def done(self) -> bool:
        """Return whether the object is done, so that its deadline no longer counts."""

    def set_exception(self, error: Any, /) -> None:
        """Fail the object with an error. Called at most once, and only before it is done."""


class Deadlines:
    """Fails futures that are not done in time, at a fraction of the cost of one timer for each.

    Args:
        seconds: time limit of each, from the call of `watch` or `within`; None: no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._watched: deque[tuple[float, WatchedFuture, Failure]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, watched: WatchedFuture, failure: Failure) -> None:
        """Set the exception that ``failure()`` returns if the future is not done at its deadline."""
        if self._seconds is None:
            return
        self._forget_done()
        loop = asyncio.get_running_loop()
        self._watched.append((loop.time() + self._seconds, watched, failure))
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._check)

    async def within(self, work: Awaitable[T], failure: Failure) -> T:
        """Await ``work`` in the current task, and cancel it if it is not done at its deadline.

        Raises: the error that ``failure()`` returns, at the deadline.
        """
        task = asyncio.current_task()
        assert task is not None
        bound = _Bound(task)
        self.watch(bound, failure)
        try:
            result = await work
        except BaseException as error:
            late = bound.end()
            if late is not None and isinstance(error, asyncio.CancelledError) and not bound.cancelled_too():
                raise late from None
            raise
        bound.end()
        return result

    def close(self) -> None:
        """Stop watching."""
        self._watched.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _forget_done(self) -> None:
        while self._watched and self._watched[0][1].done():
            self._watched.popleft()

    def _check(self) -> None:
        self._timer = None
        self._forget_done()
        loop = asyncio.get_running_loop()
        while self._watched:
            deadline, watched, failure = self._watched[0]
            if deadline > loop.time():
                self._timer = loop.call_at(deadline, self._check)
                return
            self._watched.popleft()
            if not watched.done():
                watched.set_exception(failure())


class _Bound:
    """The awaitable of one `Deadlines.within`; its task is cancelled at the deadline."""

    __slots__ = ("_before", "_ended", "_late", "_task")

    def __init__(self, task: "asyncio.Task[Any]") -> None:
        self._task = task
        self._before = task.cancelling()
        self._ended = False
        self._late: Exception | None = None

    def done(self) -> bool:
        return self._ended

    def set_exception(self, error: Exception, /) -> None:
        self._late = error
        self._task.cancel()

    def end(self) -> Exception | None:
        """Record that the work has ended. Returns its error if it was late, else None."""
        self._ended = True
        if self._late is not None:
            self._task.uncancel()
        return self._late

    def cancelled_too(self) -> bool:
        """Return whether the task was also cancelled by something other than the deadline."""
        return self._task.cancelling() > self._before
