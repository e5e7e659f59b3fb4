"""Several things at the same time, all of them to their end."""

import asyncio
from collections.abc import Awaitable, Iterable


async def together(works: Iterable[Awaitable[object]]) -> None:
    """Wait until all have ended, then raise the first error, if there was one.

    Why not `asyncio.gather` by itself: it raises at once and leaves the others running, and whoever tries
    again would meet writes of the first time that land later.
    """
    for outcome in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
