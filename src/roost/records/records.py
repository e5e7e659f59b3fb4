"""The interface of a backend of records, and the retention of runs."""

import math
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from roost.model.record import RESULTS, Attempt, RunReasons
from roost.model.spec import Flavor
from roost.records.errors import RecordRefused
from roost.records.rows import EncodedRun, RunWithAttempts
from roost.records.search import Search
from roost.records.summary import FailedBuilds, RunSummary

SECONDS_PER_DAY = 86_400.0
BEFORE_ALL = -1e18
"""Seconds since the epoch, before the start of any run. Finite, because MariaDB has no infinity."""


class Retention(msgspec.Struct, frozen=True):
    """The retention of runs: those of the last ``days`` days are kept, and of these the last ``runs``.

    0 sets no limit.

    Raises:
        ValueError: ``days`` is negative or not finite, or ``runs`` is negative.
    """

    days: float = 30.0
    runs: int = 1_000_000

    def __post_init__(self) -> None:
        if not 0 <= self.days < math.inf:
            raise ValueError(f"retention_days is {self.days}: it must be a number of days, or 0 for any age")
        if self.runs < 0:
            raise ValueError(f"retention_runs is {self.runs}: it must be a number of runs, or 0 for any")

    def oldest(self, now: float) -> float:
        """Return the time, in seconds since the epoch, before which a run is too old."""
        return now - self.days * SECONDS_PER_DAY if self.days else BEFORE_ALL


class Records(Protocol):
    """The required methods of a backend of records, for use from one event loop.

    Several processes may use the same records. Runs are returned in the order in which they were recorded,
    the last one first.

    Raises:
        RecordsUnavailable: by every method, if the file or database cannot be read or written.
    """

    async def write(
        self, runs: Sequence[EncodedRun], attempts: Sequence[Attempt], reasons: Sequence[RunReasons] = ()
    ) -> None:
        """Record runs and attempts, and reasons of runs, all or none; they are durable when this returns.

        A run or an attempt that is written again is recorded once. An attempt with another result than
        `roost.model.record.PENDING` has ended; of several ends the first counts. Begin and end may come in
        any order, as two processes write them. Reasons of an unknown run are dropped.

        Raises:
            RecordRefused: a value cannot be recorded.
        """
        ...

    async def last(self, n: int, refused: bool = False) -> list[RunWithAttempts]:
        """Return the last ``n`` runs; with ``refused`` the last ``n`` runs that placed too few instances.

        Raises:
            DamagedRecords: a stored row or line is not a record.
        """
        ...

    async def trim(self, now: float) -> int:
        """Remove the runs beyond the retention at ``now``, with their attempts; return how many runs.

        ``now`` is in seconds since the epoch.
        """
        ...

    async def close(self) -> None:
        """Finish the write that has begun and release the file or database."""
        ...


@runtime_checkable
class CountableRecords(Records, Protocol):
    """A backend that counts its newest runs and attempts."""

    async def summary(self, since: float, most: int) -> RunSummary:
        """Count the runs since a time, the newest ``most``.

        ``since``: seconds since the epoch, compared with the start of a run.
        """
        ...

    async def by_minute(self, since: float, most: int) -> list[tuple[int, int, int]]:
        """Count the runs and the refused ones of each minute since a time, of the newest ``most`` runs.

        ``since``: seconds since the epoch. Returns: the minute, runs and refused ones; the minute is that of
        the start of a run, in whole minutes since the epoch. Minutes without runs are left out.
        """
        ...

    async def flavors(self, most_runs: int) -> list[Flavor]:
        """Return the flavors of the newest runs by name; of equal names the newest one."""
        ...

    async def flavor_counts(self, most_runs: int) -> dict[bytes, int]:
        """Count the flavors of the newest runs: each as JSON, with its runs."""
        ...

    async def failed_builds(self, since: float) -> list[FailedBuilds]:
        """Count the builds that began since a time and failed, by node.

        ``since``: seconds since the epoch.
        """
        ...


@runtime_checkable
class SearchableRecords(Records, Protocol):
    """A backend whose runs can be searched and removed, for web pages, services and archives."""

    async def find(self, search: Search, limit: int = 100) -> list[RunWithAttempts]:
        """Return the last ``limit`` runs that a search selects.

        Raises:
            DamagedRecords: a stored row or line is not a record.
            UnknownRun: there is no run ``search.before``.
        """
        ...

    def each(self, search: Search) -> AsyncIterator[list[RunWithAttempts]]:
        """Yield all runs that a search selects, the last one first, in lists of some hundreds.

        Raises:
            DamagedRecords: a stored row or line is not a record.
            UnknownRun: there is no run ``search.before``.
        """
        ...

    async def remove(self, runs: Collection[str]) -> int:
        """Remove runs by id, with their attempts; return how many existed."""
        ...


def check(runs: Sequence[EncodedRun], attempts: Sequence[Attempt]) -> None:
    """Check that every value can be read back as it is written.

    Raises:
        RecordRefused: a number is not finite, or a result is not one of `RESULTS`.
    """
    for run in runs:
        row = run.row
        if not (math.isfinite(row.started_at) and math.isfinite(row.finished_at)):
            raise RecordRefused(f"run {row.id}: its times are {row.started_at} and {row.finished_at}")
    for attempt in attempts:
        if not all(map(math.isfinite, (attempt.at, attempt.weight, attempt.finished_at or 0.0))):
            raise RecordRefused(
                f"attempt on {attempt.host} of run {attempt.run}: its times are {attempt.at} and "
                f"{attempt.finished_at}, its weight {attempt.weight}"
            )
        if attempt.result not in RESULTS:
            raise RecordRefused(
                f"attempt on {attempt.host} of run {attempt.run}: its result is {attempt.result!r}, "
                f"not one of {', '.join(RESULTS)}"
            )
