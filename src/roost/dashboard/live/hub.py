"""The hub of live pages: it looks once a second what has changed, and tells all viewers.

Without viewers it does nothing. A map that somebody views is counted once in a round, whoever views it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Final
from weakref import WeakSet

import structlog

from roost.dashboard.fleet.hosts import FleetHosts, HostsNow
from roost.dashboard.fleet.kept_levels import KeptLevels
from roost.dashboard.fleet.selection import selection_of
from roost.dashboard.live.map_changes import RELOAD, MapChanges
from roost.dashboard.live.viewer import LiveViewer, event_bytes
from roost.ledger import LedgerError
from roost.storage import StorageError

TICK: Final = "tick"
LAYOUT: Final = "layout"

ROUND_SECONDS: Final = 1.0
"""Seconds between two rounds."""

MAP_SECONDS: Final = 0.05
"""Seconds in a round for the bytes of maps. Maps for which there is no time are counted in the next round."""

_log = structlog.get_logger()


class LiveHub:
    """The viewers of live pages, and the rounds.

    ``sleep``: waits for seconds. ``monotonic``: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        hosts: FleetHosts,
        levels: KeptLevels,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hosts = hosts
        self._levels = levels
        self._sleep = sleep
        self.monotonic = monotonic
        # A stream holds its viewer: one that never began, because its client had left, is forgotten.
        self._viewers: WeakSet[LiveViewer] = WeakSet()
        self._some = asyncio.Event()
        self._maps: dict[str, MapChanges] = {}
        self._mark = ""
        self._layout = ""
        self._failed = False
        self.closed = False

    def __len__(self) -> int:
        return len(self._viewers)

    async def join(self, topics: Collection[str]) -> LiveViewer:
        """Return a new viewer, to whom all changes after this call are told. Raises `StorageError`.

        The first events tell the newest layout, and the mark of `TICK` events.
        """
        now = await self._hosts.now()
        self._look(now)
        for topic in topics:
            selection = selection_of(topic)
            if selection is not None and topic not in self._maps:
                await self._hosts.misfit(selection.criteria.flavor)
                self._maps[topic] = MapChanges(self._levels.of(self._hosts.known(), selection))
        viewer = LiveViewer(topics)
        self._tell_newest(viewer)
        self._viewers.add(viewer)
        self._some.set()
        return viewer

    def leave(self, viewer: LiveViewer) -> None:
        """Forget a viewer."""
        self._viewers.discard(viewer)

    def wants(self, topic: str) -> bool:
        """Return whether some viewer wants the events of a topic."""
        return any(topic in each.topics for each in self._viewers)

    def announce(self, topic: str, data: str) -> None:
        """Tell all viewers of a topic. ``data``: one line."""
        viewers = [each for each in self._viewers if topic in each.topics]
        if viewers:
            event = event_bytes(topic, data)
            for each in viewers:
                each.put(event)

    async def run(self) -> None:
        """Do a round each second as long as there are viewers, until cancelled."""
        while True:
            if not self._viewers:
                self._maps.clear()
                self._some.clear()
                await self._some.wait()
            await self._sleep(ROUND_SECONDS)
            await self.round()

    async def round(self) -> None:
        """Look what has changed, and tell the viewers."""
        try:
            now = await self._hosts.now()
        except (StorageError, LedgerError) as error:
            if not self._failed:
                _log.warning("live pages stand still: the ledger cannot be read", error=str(error))
            self._failed = True
            return
        self._failed = False
        mark, layout = self._mark, self._layout
        self._look(now)
        if self._layout != layout:
            self.announce(LAYOUT, self._layout)
        if self._mark != mark:
            self.announce(TICK, self._mark)
        await self._tell_maps()
        for each in [each for each in self._viewers if each.lost]:
            each.lost = False
            self._tell_newest(each)
            for topic in each.topics & self._maps.keys():
                each.put(event_bytes(topic, RELOAD))

    def close(self) -> None:
        """End all streams."""
        self.closed = True
        for each in list(self._viewers):
            each.close()

    @property
    def mark(self) -> str:
        """The data of the newest `TICK` event."""
        return self._mark

    def _look(self, now: HostsNow) -> None:
        self._mark = f"{now.version or 0}.{now.table.invalidations.end}.{now.layout.version[:8]}"
        self._layout = now.layout.version

    async def _tell_maps(self) -> None:
        wanted = frozenset[str]().union(*(each.topics for each in self._viewers))
        for gone in self._maps.keys() - wanted:
            del self._maps[gone]
        until = self.monotonic() + MAP_SECONDS
        for topic in list(self._maps):
            if self.monotonic() >= until:
                break
            selection = selection_of(topic)
            assert selection is not None
            # The next round begins with the maps for which this one has no time.
            changes = self._maps[topic] = self._maps.pop(topic)
            if selection.criteria.flavor:
                await self._hosts.misfit(selection.criteria.flavor)
            data = changes.take(self._levels.of(self._hosts.known(), selection))
            if data is not None:
                self.announce(topic, data)
            await asyncio.sleep(0)

    def _tell_newest(self, viewer: LiveViewer) -> None:
        for topic, data in ((LAYOUT, self._layout), (TICK, self._mark)):
            if topic in viewer.topics:
                viewer.put(event_bytes(topic, data))
