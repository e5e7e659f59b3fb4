"""Wakes requests that wait for commits of any worker.

While a request waits, one task polls the head for all of them. Why the ledger does not notify them: the
commits of other workers are seen only by polling, and a poll is one indexed query.
"""

import asyncio
import contextlib

from roost.ledger import Ledger
from roost.storage import StorageError

LOOK_SECONDS = 0.1
"""Seconds between two polls."""


class ChangeFollower:
    """Follows the head of a ledger until it is closed."""

    def __init__(self, ledger: Ledger) -> None:
        self.closed = False
        self._ledger = ledger
        self._head = 0
        self._moved = asyncio.Event()
        self._waiting = 0
        self._looking: asyncio.Task[None] | None = None

    def close(self) -> None:
        """Wake all waiting requests. From now on no request waits."""
        self.closed = True
        self._wake()

    async def beyond(self, seq: int, seconds: float) -> bool:
        """Wait for a commit after ``seq``, at most ``seconds``. Returns whether there is one."""
        until = asyncio.get_running_loop().time() + seconds
        self._waiting += 1
        try:
            if self._looking is None and not self.closed:
                self._looking = asyncio.create_task(self._look())
            while self._head <= seq and not self.closed:
                left = until - asyncio.get_running_loop().time()
                if left <= 0:
                    break
                moved = self._moved
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(moved.wait(), left)
        finally:
            self._waiting -= 1
        return self._head > seq

    async def _look(self) -> None:
        try:
            while self._waiting and not self.closed:
                # The database may answer again before the waits time out.
                with contextlib.suppress(StorageError):
                    head = (await self._ledger.current()).version
                    if head != self._head:
                        self._head = head
                        self._wake()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._looking = None

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()
