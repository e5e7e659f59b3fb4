"""Queries that wait for their share of the time, first come, first served."""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from roost.placement.queries.pacing import QUIET_SHARE, Pacing, shares
from roost.web.admission import Cause, Overloaded

_LEAST_WAIT = 0.001


class Turns:
    """Lets queries start, one at a time, as `Pacing` allows.

    ``share``: of the time while writes arrive. ``most_waiting``: queries that may wait. ``last_write``
    returns when the last write arrived, in seconds of `time.monotonic`.
    """

    def __init__(self, share: float, most_waiting: int, last_write: Callable[[], float]) -> None:
        self._pacing = Pacing()
        self._share_beside_writes = share
        self._most_waiting = most_waiting
        self._last_write = last_write
        self._waiting: deque[asyncio.Future[None]] = deque()

    def free(self) -> bool:
        """Whether a query may start now, without a wait."""
        return not self._waiting and not self._pause()

    async def wait(self) -> None:
        """Wait until this query may start. Raises `Overloaded` if too many wait already."""
        if len(self._waiting) >= self._most_waiting:
            raise Overloaded(Cause.QUERIES)
        loop = asyncio.get_running_loop()
        mine: asyncio.Future[None] = loop.create_future()
        self._waiting.append(mine)
        if len(self._waiting) == 1:
            self._wake_later()
        await mine

    def spent(self, seconds: float) -> None:
        """A query has taken this much time."""
        now = time.monotonic()
        self._pacing = self._pacing.spent(now, seconds, self._share(now))

    def _pause(self) -> float:
        """The seconds until the next query may start."""
        now = time.monotonic()
        return self._pacing.wait(now, self._share(now))

    def _share(self, now: float) -> float:
        return self._share_beside_writes if shares(now, self._last_write()) else QUIET_SHARE

    def _wake_later(self) -> None:
        seconds = max(_LEAST_WAIT, self._pause())
        asyncio.get_running_loop().call_later(seconds, self._wake)

    def _wake(self) -> None:
        if self._pause() == 0.0:
            while self._waiting:
                mine = self._waiting.popleft()
                if not mine.done():
                    mine.set_result(None)
                    break
        if self._waiting:
            self._wake_later()
