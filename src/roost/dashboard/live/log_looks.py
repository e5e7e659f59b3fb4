"""Looks at the logs of events, and tells the viewers of live pages when there is something new."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from roost.conductor.events.newest import NewestEvents
from roost.dashboard.live.hub import LiveHub
from roost.storage import StorageError

EVENTS: Final = "events"
"""The topic of pages that show events, or states of instances."""

EVERY_SECONDS: Final = 1.0
"""Seconds between two looks."""

SECONDS_OF_A_CELL: Final = 0.01
"""Seconds between two looks for each cell at least."""

_log = structlog.get_logger()


class LogLooks:
    """Looks at the logs as long as somebody views a page that shows events. ``sleep``: waits for seconds."""

    def __init__(
        self,
        hub: LiveHub,
        newest: NewestEvents,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._hub = hub
        self._newest = newest
        self._sleep = sleep
        self._mark: str | None = None
        self._failed = False

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self._sleep(max(EVERY_SECONDS, SECONDS_OF_A_CELL * self._newest.logs))
            await self.look()

    async def look(self) -> None:
        """Look once. The first look after a time without viewers tells nothing: their pages are new."""
        if not self._hub.wants(EVENTS):
            self._mark = None
            return
        try:
            mark = await self._newest.mark()
        except StorageError as error:
            if not self._failed:
                _log.warning("events are not live: the logs cannot be read", error=str(error))
            self._failed = True
            return
        self._failed = False
        if self._mark is not None and mark != self._mark:
            self._hub.announce(EVENTS, mark)
        self._mark = mark
