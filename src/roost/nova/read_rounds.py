"""Reads that are made together, round after round, where one that hangs holds up no other."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

PATIENCE_SECONDS: Final = 2.0
"""Seconds that a round waits for its reads. Those that take longer go on, and are left out of the next ones
until they end."""


class ReadRounds:
    """Reads by name, of which each runs at most once at a time."""

    def __init__(self, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._patience = patience_seconds
        self._running: dict[str, asyncio.Task[None]] = {}

    async def make(self, reads: Mapping[str, Callable[[], Awaitable[None]]]) -> None:
        """Begin the reads that do not run any more, and wait for those for a time.

        A read that an earlier round has left running is not waited for again. Raises the error of a read that
        has ended, whichever round began it.
        """
        begun = [name for name in reads if name not in self._running]
        for name in begun:
            self._running[name] = asyncio.ensure_future(_made(reads[name]))
        if begun:
            await asyncio.wait([self._running[name] for name in begun], timeout=self._patience)
        ended = [name for name, task in self._running.items() if task.done()]
        for task in [self._running.pop(name) for name in ended]:
            if not task.cancelled():
                task.result()

    async def cancel(self, *names: str) -> None:
        """Cancel some reads, or all of them, and wait until they have ended."""
        for name in names or tuple(self._running):
            task = self._running.pop(name, None)
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait([task])


async def _made(read: Callable[[], Awaitable[None]]) -> None:
    await read()
