"""The share of time that queries may take, and queries that wait for it, first come, first served."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from roost.web.admission import Cause, Overloaded

BURST_SECONDS: Final = 0.02
"""Seconds that queries may take at once after a pause."""

MOST_DEBT_SECONDS: Final = 0.1
"""Largest debt in seconds: the longest wait, at a share of 1, for an earlier query that took too long.

The work of a query is limited, so a longer time means that the process was stopped, which later queries need
not make up for.
"""

QUIET_SECONDS: Final = 1.0
"""Seconds without a write after which no write is expected, and a query may take longer in the event loop."""

GRACE_SECONDS: Final = 0.02
"""Seconds after a write during which queries still leave time for writes: the client that has its answer may
send its next write."""

QUIET_SHARE: Final = 0.9
"""The share of queries while no write is under way. The rest is for the next write, which would otherwise
wait for all queries that arrived before it."""


class QueryPace(NamedTuple):
    """A token bucket of seconds. All times are of one monotonic clock.

    ``saved``: seconds that queries may take at ``at``, less than 0 after a query that took longer, and at
    least minus `MOST_DEBT_SECONDS`. Each second adds as much as their share is then.
    """

    saved: float = BURST_SECONDS
    at: float = 0.0

    def wait(self, now: float, share: float) -> float:
        """Return the seconds until the next query may start; 0 if it may start now."""
        return max(0.0, -self._saved(now, share) / share)

    def spent(self, now: float, seconds: float, share: float) -> "QueryPace":
        """Return the pace after a query that took ``seconds`` and ended at ``now``."""
        return QueryPace(max(self._saved(now, share) - seconds, -MOST_DEBT_SECONDS), now)

    def _saved(self, now: float, share: float) -> float:
        return min(BURST_SECONDS, self.saved + (now - self.at) * share)


def writes_arrive(now: float, last_write: float) -> bool:
    """Return whether further writes are expected after the one at ``last_write``."""
    return now - last_write < QUIET_SECONDS


def writer_busy(now: float, last_write: float, waiting: int) -> bool:
    """Return whether queries must leave time for writes: for ``waiting`` ones, or one that may follow."""
    return waiting > 0 or now - last_write < GRACE_SECONDS


MOST_AT_ONCE: Final = 4
"""Queries that may have their turn at the same time after a wait.

They first read the database. Without a bound many could finish a slow read together and be computed one after
the other, and writes would wait for all of them.
"""

_LEAST_WAIT: Final = 0.001

_LONGEST_WAIT: Final = 0.02
"""Seconds after which a wait is computed again: it becomes shorter when the writes are done."""


class Turns:
    """Lets queries start as `QueryPace` allows.

    ``share``: the share of time of queries while the writer is busy. ``most_waiting``: queries that may wait,
    each for ``most_seconds``. ``busy`` returns whether the writer has commands.
    """

    def __init__(
        self, share: float, most_waiting: int, most_seconds: float, busy: Callable[[], bool]
    ) -> None:
        self._pacing = QueryPace()
        self._share_beside_writes = share
        self._most_waiting = most_waiting
        self._most_seconds = most_seconds
        self._busy = busy
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._started = 0
        self._timer: asyncio.TimerHandle | None = None

    def free(self) -> bool:
        """Return whether a query may start now, without a wait."""
        return not self._waiting and not self._pause()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the turn of a query, and hold it during the context.

        Raises `Overloaded` if too many wait already, or if this one has waited for too long.
        """
        await self._wait()
        try:
            yield
        finally:
            self._started -= 1

    def spent(self, seconds: float) -> None:
        """Note that a query has taken this time."""
        self._pacing = self._pacing.spent(time.monotonic(), seconds, self._share())

    async def _wait(self) -> None:
        if len(self._waiting) >= self._most_waiting:
            raise Overloaded(Cause.QUERIES)
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mine)
        if self._timer is None:
            self._wake_later()
        try:
            async with asyncio.timeout(self._most_seconds):
                await mine
        except BaseException as error:
            if mine.done() and not mine.cancelled():
                self._started -= 1
            with contextlib.suppress(ValueError):
                self._waiting.remove(mine)
            if isinstance(error, TimeoutError):
                raise Overloaded(Cause.QUERIES) from None
            raise

    def _pause(self) -> float:
        """Return the seconds until the next query may start."""
        return self._pacing.wait(time.monotonic(), self._share())

    def _share(self) -> float:
        return self._share_beside_writes if self._busy() else QUIET_SHARE

    def _wake_later(self) -> None:
        seconds = min(max(_LEAST_WAIT, self._pause()), _LONGEST_WAIT)
        self._timer = asyncio.get_running_loop().call_later(seconds, self._wake)

    def _wake(self) -> None:
        self._timer = None
        while self._waiting and self._started < MOST_AT_ONCE and not self._pause():
            mine = self._waiting.popleft()
            if not mine.done():
                self._started += 1
                mine.set_result(None)
        if self._waiting:
            self._wake_later()
