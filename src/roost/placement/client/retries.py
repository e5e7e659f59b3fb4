"""Writes that are repeated after a conflict with another writer."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from roost.placement.errors import ConcurrentUpdate

T = TypeVar("T")

ATTEMPTS = 10
"""Attempts of a write that checks no generation. The conflict in the last one is raised."""


async def never() -> bool:
    """Return False: no conflict is final."""
    return False


async def retry_conflicts(write: Callable[[], Awaitable[T]], is_final: Callable[[], Awaitable[bool]]) -> T:
    """Write, and repeat after a conflict unless ``is_final`` says that it would occur again."""
    for _ in range(ATTEMPTS - 1):
        try:
            return await write()
        except ConcurrentUpdate:
            if await is_final():
                raise
    return await write()
