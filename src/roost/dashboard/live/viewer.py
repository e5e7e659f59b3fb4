"""A viewer of live pages: the topics that it wants, and a bounded queue of events."""

import asyncio
from collections import deque
from collections.abc import Collection
from typing import Final

MOST_WAITING: Final = 64
"""Events that wait for a viewer at most."""

MOST_BYTES: Final = 256 * 1024
"""Bytes of events that wait for a viewer at most."""


def event_bytes(topic: str, data: str) -> bytes:
    """Return an event as the stream has it. ``data``: one line."""
    return f"event: {topic}\ndata: {data}\n\n".encode()


class LiveViewer:
    """A viewer.

    ``topics``: the names of the wanted events. ``lost``: events were dropped because too many waited; the hub
    then sends what makes up for them. ``closed``: the stream ends after the events that wait.
    """

    def __init__(self, topics: Collection[str]) -> None:
        self.topics = frozenset(topics)
        self.lost = False
        self.closed = False
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()

    def put(self, event: bytes) -> None:
        """Add an event, or drop all that wait if there are too many."""
        if len(self._waiting) >= MOST_WAITING or self._bytes + len(event) > MOST_BYTES:
            self._waiting.clear()
            self._bytes = 0
            self.lost = True
        else:
            self._waiting.append(event)
            self._bytes += len(event)
        self._arrived.set()

    def close(self) -> None:
        """End the stream after the events that wait."""
        self.closed = True
        self._arrived.set()

    @property
    def waiting(self) -> int:
        """The number of events that wait."""
        return len(self._waiting)

    async def take(self, seconds: float) -> bytes:
        """Return the events that wait, as soon as there are any; nothing after ``seconds`` without one."""
        if not self._waiting and not self.closed:
            self._arrived.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._arrived.wait()
            except TimeoutError:
                return b""
        found = b"".join(self._waiting)
        self._waiting.clear()
        self._bytes = 0
        return found
