"""The instances that may hold a claim that nobody answered for.

A scheduler that dies right after a claim loses the record of its run. So most suspects come from Nova's own
databases: instances in cell0, evacuations that no host has taken, and unshelves that failed. The records add
instances of which Nova has nothing left.
"""

from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from roost.nova.audit.unanswered import ClaimSuspect, fails_to_unshelve
from roost.nova.database.actions import UNSHELVE, read_actions
from roost.nova.database.cells import NovaCell
from roost.nova.database.evacuations import read_untaken
from roost.nova.database.traces import read_latest_rows, read_offloaded
from roost.records import RunWithAttempts, Search, SearchableRecords
from roost.records.records import SECONDS_PER_DAY, Records

MOST_ROWS = 10_000
"""Rows of cell0, and of each cell's evacuations, that one round looks at. A round after a start looks at the
latest ones, whatever their age."""

OVERLAP_SECONDS = 600.0
"""Seconds before the end of the last search in the records from which the next one begins: a run is recorded
when it has ended."""


class LatestRows:
    """The position in a table whose latest rows are judged by several rounds.

    ``seconds``: a row is judged again until a round has judged it so long ago, by the monotonic clock.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._judged: deque[tuple[float, int]] = deque()
        self._highest = 0
        self.after = 0

    def read(self, ids: Iterable[int]) -> None:
        """Note the ids of the rows of a round."""
        self._highest = max((self._highest, *ids))

    def judged(self, now: float) -> None:
        """Note that a round has judged all rows that were read."""
        if not self._judged or self._highest > self._judged[-1][1]:
            self._judged.append((now, self._highest))
        while self._judged and now - self._judged[0][0] >= self._seconds:
            self.after = self._judged.popleft()[1]


class Suspects:
    """Finds the suspects of each round.

    ``timeout``: the seconds after which no caller waits for an answer any more. ``waiting``: the suspects
    whose build request was still there in the last round, at most `MOST_ROWS`. A run is read from the records
    once, and a user may delete the request of such an instance at any later time.
    """

    def __init__(self, records: Records, timeout: float) -> None:
        self._records = records
        self._timeout = timeout
        self._latest: dict[tuple[str, str], LatestRows] = {}
        self._recorded_until: float | None = None
        self.waiting: Sequence[ClaimSuspect] = ()

    async def buried(self, cell0: NovaCell) -> list[ClaimSuspect]:
        """Return the suspects of cell0. Raises `StorageError`."""
        latest = self._rows("cell0", cell0.uuid)
        rows = await cell0.database.read(read_latest_rows(latest.after, MOST_ROWS))
        latest.read(row.id for row in rows)
        return [ClaimSuspect(row.uuid) for row in rows]

    async def evacuated(self, cell: NovaCell) -> list[ClaimSuspect]:
        """Return the suspects among a cell's evacuations. Raises `StorageError`."""
        latest = self._rows("evacuations", cell.uuid)
        rows = await cell.database.read(read_untaken(latest.after, MOST_ROWS))
        latest.read(row.id for row in rows)
        return [ClaimSuspect(each) for each in {row.instance: None for row in rows}]

    async def unshelved(self, cell: NovaCell) -> list[ClaimSuspect]:
        """Return the suspects among a cell's shelved instances: their last unshelve has failed.

        Raises: `StorageError`.
        """
        names = await cell.database.read(read_offloaded(MOST_ROWS))
        actions = await cell.database.read(read_actions(names, UNSHELVE)) if names else {}
        return [ClaimSuspect(name) for name, some in actions.items() if fails_to_unshelve(some)]

    async def recorded(self, suspect: ClaimSuspect) -> ClaimSuspect:
        """Return a suspect with the claim of the last run of it that is recorded, if any is.

        The claim that it has may be of an earlier run. Raises `RecordsError`.
        """
        if isinstance(self._records, SearchableRecords):
            for each in await self._records.find(Search(instance=suspect.instance), 10):
                for found in _claims(each):
                    if found.instance == suspect.instance:
                        return found
        return suspect

    async def of_records(self, clock: float) -> AsyncIterator[list[ClaimSuspect]]:
        """Yield the instances that runs have claimed for, whose callers cannot be waiting any more.

        They come in lists of some hundreds, of the last runs first. ``clock``: seconds since the epoch. After
        a start the runs of the last day are read. Raises `RecordsError`.
        """
        if not isinstance(self._records, SearchableRecords):
            return
        until = clock - self._timeout
        since = until - SECONDS_PER_DAY if self._recorded_until is None else self._recorded_until
        async for some in self._records.each(Search(since=since - OVERLAP_SECONDS, until=until)):
            yield [claim for each in some for claim in _claims(each)]

    def judged(self, clock: float, now: float, requested: Sequence[ClaimSuspect]) -> None:
        """Note that a round has judged all suspects, those of the records until ``clock``.

        ``now``: seconds of the monotonic clock. ``requested``: those whose build request is still there.
        """
        self.waiting = requested[:MOST_ROWS]
        self._recorded_until = clock - self._timeout
        for latest in self._latest.values():
            latest.judged(now)

    def _rows(self, table: str, cell: str) -> LatestRows:
        # A late claim comes at the latest when a call has waited in the broker, and was decided, that long.
        return self._latest.setdefault((table, cell), LatestRows(2 * self._timeout))


def _claims(found: RunWithAttempts) -> Iterator[ClaimSuspect]:
    for each in found.run.destinations:
        # A run that claims nothing, as of a rebuild, has no generation.
        if each.selected.generation is not None:
            yield ClaimSuspect(each.instance, each.selected.allocations, found.run.id)
