"""Deadlines for futures, with one timer for all of them."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any


class Deadlines:
    """Fails each watched future that is not done in time.

    Args:
        seconds: time for each future, from the call of `watch`; None: no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._watched: deque[tuple[float, asyncio.Future[Any], Callable[[], Exception]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, future: "asyncio.Future[Any]", failure: Callable[[], Exception]) -> None:
        """Set the exception that ``failure()`` returns if the future is not done at its deadline."""
        if self._seconds is None:
            return
        self._forget_done()
        loop = future.get_loop()
        self._watched.append((loop.time() + self._seconds, future, failure))
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._check)

    def close(self) -> None:
        """Stop watching all futures."""
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
        while self._watched:
            deadline, future, failure = self._watched[0]
            loop = future.get_loop()
            if deadline > loop.time():
                self._timer = loop.call_at(deadline, self._check)
                return
            self._watched.popleft()
            if not future.done():
                future.set_exception(failure())
