"""Past versions of the fleet: forks of it, with the commits since then undone.

A client reads all its pages at one version, while the fleet moves on. Why no fork is kept from the first page
on: most clients read only one page. So a worker rebuilds the version when a second page is requested, and
keeps a few versions for further pages.
"""

import asyncio
import weakref
from collections import OrderedDict
from functools import partial

from roost.fleet import Fleet
from roost.ledger import Ledger
from roost.ledger.feed import commits_before, decode_changes
from roost.placement.v1.candidate_reader import CandidateReader
from roost.placement.wire.provider_texts import ProviderTexts
from roost.web.errors import Gone

MOST_VERSIONS = 4
"""Forks that are kept at most. Each takes the memory of a fleet."""

IDLE_SECONDS = 120.0
"""Seconds without a request after which a fork is dropped."""

FARTHEST_COMMITS = 10_000
"""Commits that are undone at most to rebuild a version. A request for an older one gets a 410."""

FARTHEST_CHANGES = 500_000
"""Changes that are undone at most to rebuild a version, in some seconds. An older version is a 410."""

MOST_READERS = 8
"""Unfinished searches that are kept on one version at most."""


class PastVersion:
    """The fleet as it was at one version; it never changes."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.texts = ProviderTexts()
        self.last_used = 0.0
        self._readers: OrderedDict[tuple[bytes, int], CandidateReader] = OrderedDict()

    def take(self, name: bytes, offset: int) -> CandidateReader | None:
        """Take out a kept reader of the query with this fingerprint that is not beyond ``offset``, or None.

        No other caller gets the same reader before `keep` gives it back.
        """
        before = [key for key in self._readers if key[0] == name and key[1] <= offset]
        return self._readers.pop(max(before)) if before else None

    def keep(self, reader: CandidateReader, name: bytes) -> None:
        """Keep an unfinished reader for the next page."""
        self._readers[name, reader.position] = reader
        if len(self._readers) > MOST_READERS:
            self._readers.popitem(last=False)


class Past:
    """Past versions of one ledger's fleet."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._versions: OrderedDict[int, PastVersion] = OrderedDict()
        self._making: dict[int, asyncio.Task[PastVersion]] = {}
        self._turn = asyncio.Lock()
        self._forgetting: asyncio.TimerHandle | None = None
        self._newest: weakref.ref[Fleet] | None = None

    def close(self) -> None:
        """Drop all versions and cancel those in the making."""
        if self._forgetting is not None:
            self._forgetting.cancel()
        for task in self._making.values():
            task.cancel()
        self._versions.clear()

    async def at(self, version: int) -> PastVersion:
        """Return the fleet at a version. Raises `Gone` if it cannot be rebuilt."""
        await self._follow()
        past = self._versions.get(version)
        if past is None:
            if version not in self._making:
                task = asyncio.create_task(self._make(version))
                self._making[version] = task
                task.add_done_callback(lambda made: self._made(version, made))
            # A client that disconnects must not cancel the task that other requests wait for.
            past = await asyncio.shield(self._making[version])
        else:
            self._versions.move_to_end(version)
        past.last_used = asyncio.get_running_loop().time()
        self._forget_later()
        return past

    async def _make(self, version: int) -> PastVersion:
        async with self._turn:
            newest = await self._follow()
            later = [kept.fleet for seq, kept in self._versions.items() if seq > version]
            fleet = min((newest, *later), key=lambda each: each.version).fork()
            await self._rewind(fleet, version)
            if await self._follow() is not newest:
                raise Gone("The state was loaded anew meanwhile: begin without a cursor.")
            self._versions[version] = past = PastVersion(fleet)
            while len(self._versions) > MOST_VERSIONS:
                self._versions.popitem(last=False)
            return past

    async def _follow(self) -> Fleet:
        """Return the newest fleet. If it was reloaded, drop the versions that were made from the former one.

        The database may have been restored from a backup, after which version numbers name other states.
        """
        newest = await self._ledger.current()
        if self._newest is None or self._newest() is not newest:
            self._versions.clear()
            self._newest = weakref.ref(newest)
        return newest

    def _made(self, version: int, task: "asyncio.Task[PastVersion]") -> None:
        del self._making[version]
        if not task.cancelled():
            task.exception()  # else asyncio logs it as never retrieved when no request waits

    async def _rewind(self, fleet: Fleet, version: int) -> None:
        far = Gone(f"Version {version} is too far back to be made again: begin without a cursor.")
        if fleet.version - version > FARTHEST_COMMITS:
            raise far
        undone = 0
        while fleet.version > version:
            seq = fleet.version
            found = await self._ledger.database.read(partial(commits_before, seq=seq, down_to=version + 1))
            if not found or found[0].seq != seq:
                raise Gone(f"Commits after version {version} are trimmed away: begin without a cursor.")
            for commit in found:
                changes = decode_changes(commit.changes)
                undone += len(changes)
                if undone > FARTHEST_CHANGES:
                    raise far
                fleet.undo(changes)
                fleet.version = commit.seq - 1
                await asyncio.sleep(0)

    def _forget_later(self) -> None:
        if self._forgetting is None:
            loop = asyncio.get_running_loop()
            self._forgetting = loop.call_later(IDLE_SECONDS, self._forget)

    def _forget(self) -> None:
        self._forgetting = None
        before = asyncio.get_running_loop().time() - IDLE_SECONDS
        for version in [seq for seq, past in self._versions.items() if past.last_used <= before]:
            del self._versions[version]
        if self._versions:
            self._forget_later()
