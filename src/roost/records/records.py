"""What a backend of records does, and the values that it takes and gives."""

import math
from collections.abc import Sequence
from typing import Protocol

import msgspec

from roost.model.record import CLAIMED, FAILED, REFUSED, Attempt, Run
from roost.records.errors import RecordRefused

RESULTS = (CLAIMED, REFUSED, FAILED)
SECONDS_PER_DAY = 86_400.0
BEFORE_ALL = -1e18
"""A time before that of any record, in seconds; finite, because MariaDB knows no infinity."""


class RunWithAttempts(msgspec.Struct, frozen=True):
    """A run and everything that was tried because of it, in order of time."""

    run: Run
    attempts: tuple[Attempt, ...] = ()


class Retention(msgspec.Struct, frozen=True):
    """How long records are kept: runs started in the last ``days``, of those the newest ``runs``.

    0 keeps any age or any number. Raises ValueError for what is no number of days or runs.
    """

    days: float = 30.0
    runs: int = 1_000_000

    def __post_init__(self) -> None:
        if not 0 <= self.days < math.inf:
            raise ValueError(f"retention_days is {self.days}: it must be a number of days, or 0 for any age")
        if self.runs < 0:
            raise ValueError(f"retention_runs is {self.runs}: it must be a number of runs, or 0 for any")

    def oldest(self, now: float) -> float:
        """The time, in seconds since the epoch, before which a run is too old."""
        return now - self.days * SECONDS_PER_DAY if self.days else BEFORE_ALL


class Records(Protocol):
    """A backend of records, for use from one event loop; other processes may use the same records.

    Newest first is by start where there is an index to sort by, else in order of writing: the same,
    unless several schedulers write at once. All methods raise `RecordsUnavailable`.
    """

    async def write(self, runs: Sequence[Run], attempts: Sequence[Attempt]) -> None:
        """Record runs and attempts; durable when it returns.

        An attempt is written with its run or later. Writes that wait at the same time share the cost of
        a sync. Raises `RecordRefused`, and then nothing of this call is recorded.
        """
        ...

    async def last(self, n: int) -> list[RunWithAttempts]:
        """The last ``n`` runs, newest first. Raises `DamagedRecords`."""
        ...

    async def find(
        self, request_id: str | None = None, instance: str | None = None, limit: int = 100
    ) -> list[RunWithAttempts]:
        """The last ``limit`` runs of this request, for this instance, or both; newest first.

        An instance is found also in runs that did not try to place it. Raises `SearchUnsupported`.
        """
        ...

    async def trim(self, now: float) -> int:
        """Remove the runs, with their attempts, that are not to be kept at ``now``; return how many runs."""
        ...

    async def close(self) -> None:
        """Finish what is being written and release what is open."""
        ...


def check(runs: Sequence[Run], attempts: Sequence[Attempt]) -> None:
    """Raise `RecordRefused` for what would not come back as it was written."""
    for run in runs:
        if not (math.isfinite(run.started_at) and math.isfinite(run.finished_at)):
            raise RecordRefused(f"run {run.id}: its times are {run.started_at} and {run.finished_at}")
    for attempt in attempts:
        if not (math.isfinite(attempt.at) and math.isfinite(attempt.weight)):
            raise RecordRefused(
                f"attempt on {attempt.host} of run {attempt.run}: its time is {attempt.at}, "
                f"its weight {attempt.weight}"
            )
        if attempt.result not in RESULTS:
            raise RecordRefused(
                f"attempt on {attempt.host} of run {attempt.run}: its result is {attempt.result!r}, "
                f"not one of {', '.join(RESULTS)}"
            )
