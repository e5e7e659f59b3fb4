"""Deadlines for futures and for work, with one timer for all of them."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

Failure = Callable[[], Exception]
"""Returns the error of what is not done in time."""


class Watched(Protocol):
    """What has a deadline; a future is one."""

    def done(self) -> bool:
        """Whether it needs no deadline any more."""

    def set_exception(self, error: Any, /) -> None:
        """Fail it. Called once at most, and only before it is done."""


class Deadlines:
    """Fails what is not done in time, for a fraction of what a timer for each would cost.

    Args:
        seconds: time for each, from the call of `watch` or `within`; None: no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._watched: deque[tuple[float, Watched, Failure]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, watched: Watched, failure: Failure) -> None:
        """Set the exception that ``failure()`` returns if the future is not done at its deadline."""
        if self._seconds is None:
            return
        self._forget_done()
        loop = asyncio.get_running_loop()
        self._watched.append((loop.time() + self._seconds, watched, failure))
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._check)

    async def within(self, work: Awaitable[T], failure: Failure) -> T:
        """Do work in the current task. Work that is not done at its deadline is cancelled.

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
    """Work of a task that is cancelled at its deadline."""

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
        """The work has ended; returns its error if it was late."""
        self._ended = True
        if self._late is not None:
            self._task.uncancel()
        return self._late

    def cancelled_too(self) -> bool:
        """Whether somebody else has cancelled the task as well."""
        return self._task.cancelling() > self._before
