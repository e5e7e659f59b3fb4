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
        """Begin the reads that do not run any more, and wait for all of them for a time.

        Raises the error of a read, which may have begun in an earlier round.
        """
        for name, read in reads.items():
            if name not in self._running:
                self._running[name] = asyncio.ensure_future(_made(read))
        mine = {name: self._running[name] for name in reads}
        if not mine:
            return
        try:
            await asyncio.wait(mine.values(), timeout=self._patience)
        finally:
            ended = {name: task for name, task in mine.items() if task.done()}
            for name in ended:
                self._running.pop(name, None)
        for task in ended.values():
            if not task.cancelled():
                task.result()

    async def cancel(self, *names: str) -> None:
        """Cancel some reads, or all of them, and wait until they have ended."""
        for name in names or tuple(self._running):
            task = self._running.pop(name, None)
            if task is not None:
                task.cancel()
                await asyncio.wait([task])


async def _made(read: Callable[[], Awaitable[None]]) -> None:
    await read()
