"""Work in forked processes that is done piece by piece beside a writer, for questions that take seconds."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from roost.placement.queries.forked import run_forked
from roost.placement.queries.turns import QueryPace


class ForkedTurns:
    """The turns of pieces of work, one at a time. For use from one event loop.

    ``most``: pieces that may have or await their turn. ``seconds``, ``more_bytes``: the limits of each, as of
    `run_forked`. ``share``: of the event loop's time, which forks may take.
    """

    def __init__(self, most: int, seconds: float, more_bytes: int, share: float) -> None:
        self._most = most
        self._seconds = seconds
        self._more_bytes = more_bytes
        self._share = share
        self._lock = asyncio.Lock()
        self._present = 0
        self._pacing = QueryPace()

    @property
    def full(self) -> bool:
        """Return whether a further piece is to be refused."""
        return self._present >= self._most

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the turn of a piece, and until a fork is within the share."""
        self._present += 1
        try:
            async with self._lock:
                await asyncio.sleep(self._pacing.wait(time.monotonic(), self._share))
                yield
        finally:
            self._present -= 1

    async def run(self, work: Callable[[], bytes]) -> bytes:
        """Do a piece whose turn it is, and return its result. Forks and raises as `run_forked`."""
        return await run_forked(work, self._seconds, self._more_bytes, self._forked)

    def _forked(self, seconds: float) -> None:
        self._pacing = self._pacing.spent(time.monotonic(), seconds, self._share)
