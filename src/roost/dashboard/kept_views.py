"""Views that many viewers share: each is made once in a while, however many ask."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")

MOST = 200
"""Views that are kept at most; with more, the oldest go."""


class KeptViews:
    """Keeps views for a short time. Requests that come while a view is made wait for it together.

    ``monotonic``: seconds of a clock that never goes back.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._made: dict[object, tuple[float, asyncio.Task[Any]]] = {}

    async def get(self, key: object, seconds: float, make: Callable[[], Awaitable[T]]) -> T:
        """Return the view of a key, made at most ``seconds`` ago. Raises the errors of ``make``."""
        now = self._monotonic()
        kept = self._made.get(key)
        if kept is None or now - kept[0] >= seconds or (kept[1].done() and kept[1].exception() is not None):
            task = asyncio.ensure_future(_run(make))
            self._made.pop(key, None)
            self._made[key] = now, task
            while len(self._made) > MOST:
                del self._made[next(iter(self._made))]
        else:
            task = kept[1]
        # Shielded, because other requests may wait for the view when this one is cancelled.
        made: T = await asyncio.shield(task)
        return made


async def _run(make: Callable[[], Awaitable[T]]) -> T:
    return await make()
