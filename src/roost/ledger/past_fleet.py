"""A separate fleet that is moved through the history, to any version whose commits are kept.

Snapshots would not pay: a version of last week is needed once a month. To undo a million commits takes a
minute or two, and gives all versions on the way.
"""

from collections.abc import Callable, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.fleet import Fleet
from roost.ledger.feed import decode_changes
from roost.ledger.load import load
from roost.ledger.tables import commits
from roost.model.change import Change
from roost.storage import Database

COMMITS_AT_ONCE = 1_000
"""Commits fetched together."""


class HistoryMissing(Exception):
    """Commits that a version needs are not kept, or do not exist yet."""


class PastFleet:
    """The fleet of a database at one version after another. The fleet is not shared.

    ``progress`` is called with the number of commits undone or redone since `at` was called, and with their
    total. Raises `StorageError` if the database cannot be used.
    """

    def __init__(
        self,
        database: Database,
        fleet: Fleet,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        self._database = database
        self._fleet = fleet
        self._progress = progress

    @classmethod
    async def open(
        cls, database: Database, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> "PastFleet":
        """Load the fleet of a database as it is now. Raises: `Damaged`."""
        return cls(database, await database.load(load), progress)

    @property
    def version(self) -> int:
        """The version that the fleet is at."""
        return self._fleet.version

    async def at(self, version: int) -> Fleet:
        """Return the fleet at a version. The next call moves it; callers undo their own changes before.

        Raises:
            HistoryMissing: commits between the present version and that one are not kept.
        """
        fleet = self._fleet
        total = abs(fleet.version - version)
        while fleet.version != version:
            back = fleet.version > version
            first, last = (version + 1, fleet.version) if back else (fleet.version + 1, version)
            found = await self._database.read(lambda connection: _read(connection, first, last, back))  # noqa: B023
            if not found or found[0][0] != (last if back else first):
                raise HistoryMissing(await _why(self._database, version, last if back else first))
            for seq, at, text in found:
                changes = decode_changes(text)
                if not back:
                    fleet.advance(seq, changes, at)
                elif seq == fleet.version:
                    fleet.undo(changes)
                    fleet.version = seq - 1
                else:
                    break
            self._progress(total - abs(fleet.version - version), total)
        return fleet

    async def next_changes(self, version: int) -> Sequence[Change] | None:
        """Return the changes of the commit after a version; None if there is none."""
        found = await self._database.read(
            lambda connection: _read(connection, version + 1, version + 1, False)
        )
        return decode_changes(found[0][2]) if found else None


async def commits_after(database: Database, version: int, last: int) -> dict[int, str]:
    """Return the encoded changes of the commits after a version, up to ``last``, by number.

    Raises:
        HistoryMissing: one of them is not kept.
    """
    found: dict[int, str] = {}
    while (first := version + 1 + len(found)) <= last:
        rows = await database.read(lambda connection: _read(connection, first, last, False))
        if not rows or rows[0][0] != first:
            raise HistoryMissing(await _why(database, version, first))
        for seq, _, text in rows:
            if seq != version + 1 + len(found):
                break
            found[seq] = text
    return found


async def _why(database: Database, version: int, missing: int) -> str:
    ends = sa.select(sa.func.min(commits.c.seq), sa.func.max(commits.c.seq))
    oldest, newest = await database.read(lambda connection: connection.execute(ends).one())
    if oldest is None:
        return f"commit {missing} is not kept: no commit is"
    return (
        f"commit {missing} is not kept, so version {version} cannot be made again: there are commits "
        f"{oldest} to {newest} ([ledger] keep_commits, keep_days)"
    )


def _read(connection: Connection, first: int, last: int, back: bool) -> list[tuple[int, float, str]]:
    """Return commits ``first`` to ``last``, or in descending order (``back``), at most `COMMITS_AT_ONCE`."""
    order = commits.c.seq.desc() if back else commits.c.seq
    query = sa.select(commits.c.seq, commits.c.committed_at, commits.c.changes)
    query = query.where(commits.c.seq.between(first, last)).order_by(order).limit(COMMITS_AT_ONCE)
    return [(row.seq, row.committed_at, row.changes) for row in connection.execute(query)]
