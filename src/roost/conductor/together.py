"""The concurrent execution of several works, each to its end."""

import asyncio
from collections.abc import Awaitable, Iterable


async def together(works: Iterable[Awaitable[object]]) -> None:
    """Wait until all have ended, then raise the first error, if there was one.

    Why not `asyncio.gather` by itself: it raises at once and leaves the others running, and a retry would
    meet writes of the first run that land later.
    """
    for outcome in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
