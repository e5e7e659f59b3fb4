"""Selects the runs of a search from JSON lines that are read backwards. Pure: it does no I/O.

The attempts and reasons of a run come after it. But the end of an attempt is written by another process,
which may be faster than the process that writes the run: its line may then come before the run's. A run is
therefore returned only after the lines of the `EARLY_SECONDS` before its start have been read.
"""

from collections.abc import Iterator

import msgspec

from roost.model.record import Attempt, RunReasons, Settings
from roost.records.errors import UnknownRun
from roost.records.rows import RunRow, merged
from roost.records.search import Search

EARLY_SECONDS = 60.0
"""Seconds of records before the start of a run in which ends of its attempts may be."""


class JsonLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line, which has exactly one of these members."""

    run: RunRow | None = None
    attempt: Attempt | None = None
    reasons: RunReasons | None = None
    settings: Settings | None = None

    @property
    def run_id(self) -> str | None:
        """The id of the run of this line; None for settings."""
        if self.run is not None:
            return self.run.id
        if self.attempt is not None:
            return self.attempt.run
        return self.reasons.run if self.reasons is not None else None


class ReadRun(msgspec.Struct, frozen=True):
    """A run with its attempts in the order in which they were recorded, and the reasons that came later."""

    row: RunRow
    attempts: tuple[Attempt, ...]
    reasons: RunReasons | None


class JsonlReader:
    """Collects the runs of a search while the lines are read from the last to the first."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._begun = search.before is None
        self._attempts: dict[str, list[Attempt]] = {}
        self._reasons: dict[str, RunReasons] = {}
        self._open: dict[str, RunRow] = {}
        # A run that was written twice counts at its last place, whether or not it is on this page.
        self._seen: set[str] = set()

    def take(self, line: JsonLine) -> Iterator[ReadRun]:
        """Take the next line; yield the runs whose lines have all been read, as this line shows."""
        if line.attempt is not None:
            self._attempts.setdefault(line.attempt.run, []).append(line.attempt)
        elif line.reasons is not None:
            self._reasons.setdefault(line.reasons.run, line.reasons)
        elif line.run is not None:
            yield from self._closed(line.run.finished_at + EARLY_SECONDS)
            self._take_run(line.run)

    def rest(self) -> Iterator[ReadRun]:
        """Yield the remaining runs after all lines have been read. Raises `UnknownRun`."""
        if not self._begun:
            raise UnknownRun(f"no run {self._search.before} is recorded")
        yield from self._closed(None)

    def _take_run(self, row: RunRow) -> None:
        if row.id in self._seen:
            return
        self._seen.add(row.id)
        if self._begun and self._search.takes_run(row):
            self._open[row.id] = row
        else:
            self._begun = self._begun or row.id == self._search.before
            self._attempts.pop(row.id, None)
            self._reasons.pop(row.id, None)

    def _closed(self, time: float | None) -> Iterator[ReadRun]:
        """Yield the first open runs, as long as they started after ``time``; None: yield all of them."""
        while self._open:
            row = next(iter(self._open.values()))
            if time is not None and row.started_at <= time:
                return
            del self._open[row.id]
            attempts = tuple(reversed(self._attempts.pop(row.id, ())))
            read = ReadRun(row, attempts, self._reasons.pop(row.id, None))
            if self._search.takes_attempts(merged(row.instances, attempts)):
                yield read
