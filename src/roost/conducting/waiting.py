"""Waits for databases that are away when a program starts, so that nobody has to start it again."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TypeVar

import structlog

from roost.model.errors import OperatorError
from roost.storage import DatabaseUnavailable

T = TypeVar("T")

PAUSE_SECONDS = 1.0
"""Between two tries."""

_log = structlog.get_logger()


def is_away(error: BaseException) -> bool:
    """Whether an error says, or follows from one that says, that a database does not answer."""
    cause = error.__cause__
    return isinstance(error, DatabaseUnavailable) or (cause is not None and is_away(cause))


async def open_when_there(
    stack: AsyncExitStack, open_: Callable[[AsyncExitStack], Awaitable[T]], pause: float = PAUSE_SECONDS
) -> T:
    """Open something once all its databases answer. What a try has opened is closed before the next one.

    Raises: what ``open_`` raises for another cause.
    """
    is_told = False
    while True:
        try:
            async with AsyncExitStack() as tried:
                opened = await open_(tried)
                stack.push_async_callback(tried.pop_all().aclose)
                return opened
        except OperatorError as error:
            if not is_away(error):
                raise
            _tell(error, is_told)
        is_told = True
        await asyncio.sleep(pause)


def do_when_there(work: Callable[[], None], pause: float = PAUSE_SECONDS) -> None:
    """Do something once all its databases answer. Raises: what ``work`` raises for another cause."""
    is_told = False
    while True:
        try:
            return work()
        except OperatorError as error:
            if not is_away(error):
                raise
            _tell(error, is_told)
        is_told = True
        time.sleep(pause)


def _tell(error: Exception, is_told: bool) -> None:
    if not is_told:
        _log.warning("the start waits for a database", error=str(error))
