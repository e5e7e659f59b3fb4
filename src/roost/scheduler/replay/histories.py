"""The histories that decisions are made again on, and parts of them in memory."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from roost.fleet import Fleet
from roost.ledger.feed import decode_changes
from roost.ledger.past_fleet import HistoryMissing
from roost.model.change import Change
from roost.state.api_database.node_journal import JournalMissing, Stored


class FleetHistory(Protocol):
    """The fleet at one version after another, such as `roost.ledger.past_fleet.PastFleet`."""

    @property
    def version(self) -> int:
        """The version that the fleet is at."""

    async def at(self, version: int) -> Fleet:
        """Return the fleet at a version. The next call moves it. Raises `HistoryMissing`."""

    async def next_changes(self, version: int) -> Sequence[Change] | None:
        """Return the changes of the commit after a version; None if there is none."""


class NodeHistory(Protocol):
    """The journals of node tables, such as `roost.state.api_database.node_journal.NodeJournals`."""

    async def newest(self) -> tuple[str, int] | None:
        """Return the journal written last and the number of its last event; None without journals."""

    async def base(self, journal: str, version: int) -> Stored:
        """Return the newest base of a journal that is not after ``version``. Raises `JournalMissing`."""

    async def after(self, journal: str, batch: int) -> list[Stored]:
        """Return the next batches of a journal after one, in order, without bases."""


class RememberedFleet:
    """A fleet that is moved by commits in memory. It never waits.

    ``commits``: the changes of consecutive commits by number, encoded; the last is that of the fleet.
    """

    def __init__(self, fleet: Fleet, commits: Mapping[int, str]) -> None:
        self._fleet = fleet
        self._commits = commits

    @property
    def version(self) -> int:
        """The version that the fleet is at."""
        return self._fleet.version

    async def at(self, version: int) -> Fleet:
        """Return the fleet at a version. Raises: `HistoryMissing`."""
        fleet = self._fleet
        while fleet.version > version:
            fleet.undo(self._changes(fleet.version))
            fleet.version -= 1
        while fleet.version < version:
            # Nothing that is decided depends on the time of a commit.
            fleet.advance(fleet.version + 1, self._changes(fleet.version + 1), 0.0)
        return fleet

    async def next_changes(self, version: int) -> Sequence[Change] | None:
        """Return the changes of the commit after a version; None if there is none."""
        text = self._commits.get(version + 1)
        return None if text is None else decode_changes(text)

    def _changes(self, version: int) -> Sequence[Change]:
        if version not in self._commits:
            raise HistoryMissing(f"commit {version} is not kept")
        return decode_changes(self._commits[version])


class RememberedNodes:
    """One journal from a base on, in memory. It never waits."""

    def __init__(self, journal: str, base: Stored, batches: Sequence[Stored]) -> None:
        self._journal = journal
        self._base = base
        self._batches = batches

    async def newest(self) -> tuple[str, int] | None:
        """Return the journal and the number of its last event."""
        return self._journal, (self._batches or [self._base])[-1].last

    async def base(self, journal: str, version: int) -> Stored:
        """Return the base. Raises `JournalMissing` for another journal, or an older version."""
        if journal != self._journal or version < self._base.last:
            raise JournalMissing(f"node journal {journal} is not kept at {version}")
        return self._base

    async def after(self, journal: str, batch: int) -> list[Stored]:
        """Return the batches after one."""
        return [each for each in self._batches if each.batch > batch]
