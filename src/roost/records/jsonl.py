"""Records in a file of JSON lines, one row a line, in the order in which they were recorded."""

from collections.abc import AsyncIterator, Collection, Iterator, Sequence, Set
from itertools import islice
from pathlib import Path

import msgspec

from roost.lane import Lane
from roost.model.record import Attempt, Run, RunReasons, Settings
from roost.records.errors import DamagedRecords
from roost.records.jsonl_reading import Line, Reading, ReadRun
from roost.records.lines import LineFile
from roost.records.records import Retention, check
from roost.records.rows import RunWithAttempts, row_of, run_with_attempts
from roost.records.search import Search

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode

READ_CHUNK = 500
"""Runs in one list of `JsonLinesRecords.each`."""


class JsonLinesRecords:
    """Records in a file of JSON lines. A search reads the file from its end to the last run that it returns.

    Raises:
        RecordsUnavailable: the file cannot be opened.
    """

    def __init__(self, path: Path, retention: Retention) -> None:
        self.retention = retention
        self._file = LineFile(path)
        self._settings: dict[str, Settings] = {}
        self._settings_written: set[str] = set()
        self._reader = Lane("records-reader")
        self._writer = Lane("records-writer")

    async def write(
        self, runs: Sequence[Run], attempts: Sequence[Attempt], reasons: Sequence[RunReasons] = ()
    ) -> None:
        """Record runs, attempts and reasons; see `Records.write`.

        A kill during a write may leave a part of it.
        """
        await self._writer.run(lambda: self._write(runs, attempts, reasons))

    async def last(self, n: int, refused: bool = False) -> list[RunWithAttempts]:
        """Return the last ``n`` runs; see `Records.last`."""
        return await self.find(Search(refused=refused), n)

    async def find(self, search: Search, limit: int = 100) -> list[RunWithAttempts]:
        """Return the last ``limit`` of the runs that are searched for; see `SearchableRecords.find`."""
        return await self._reader.run(lambda: [*islice(self._found(search), limit)] if limit > 0 else [])

    async def each(self, search: Search) -> AsyncIterator[list[RunWithAttempts]]:
        """Yield all runs that are searched for; see `SearchableRecords.each`."""
        found = self._found(search)
        while some := await self._reader.run(lambda: [*islice(found, READ_CHUNK)]):
            yield some

    async def remove(self, runs: Collection[str]) -> int:
        """Remove runs by id; see `SearchableRecords.remove`. Writes wait meanwhile."""
        return await self._writer.run(lambda: self._remove(frozenset(runs)))

    async def trim(self, now: float) -> int:
        """Remove the runs that are not to be kept at ``now``; see `Records.trim`.

        Writes wait meanwhile. The file is replaced at once: after a kill it is either trimmed or as it was.

        Raises:
            DamagedRecords: a line is not a record.
        """
        return await self._writer.run(lambda: self._trim(now))

    async def close(self) -> None:
        """Finish the write that has begun and close the file.

        After a cancellation, a thread that hangs is left to itself: it does not keep the program from ending.
        """
        for lane in (self._writer, self._reader):
            await lane.close(None)
        self._file.close()

    def _write(self, runs: Sequence[Run], attempts: Sequence[Attempt], reasons: Sequence[RunReasons]) -> None:
        check(runs, attempts)
        new = {run.settings.digest: run.settings for run in runs if run.settings is not None}
        for digest in self._settings_written:
            new.pop(digest, None)
        lines = [_encode(Line(settings=settings)) for settings in new.values()]
        lines += [_encode(Line(run=row_of(run))) for run in runs]
        lines += [_encode(Line(attempt=attempt)) for attempt in attempts]
        lines += [_encode(Line(reasons=each)) for each in reasons]
        if lines:
            self._file.append(b"\n".join((*lines, b"")))
        self._settings_written.update(new)

    def _found(self, search: Search) -> Iterator[RunWithAttempts]:
        """Read the file backwards and yield the runs that are searched for."""
        reading = Reading(search)
        for line in self._lines_backwards():
            yield from map(self._whole, reading.take(line))
        yield from map(self._whole, reading.rest())

    def _whole(self, read: ReadRun) -> RunWithAttempts:
        row = read.row
        settings = None if row.settings is None else self._settings_of(row.settings)
        return run_with_attempts(row, read.attempts, settings, read.reasons)

    def _settings_of(self, digest: str) -> Settings | None:
        """The settings of a digest; they are somewhere before the runs that name them."""
        if digest not in self._settings:
            for line in self._lines_backwards():
                if line.settings is not None:
                    self._settings[line.settings.digest] = line.settings
                    if line.settings.digest == digest:
                        break
        return self._settings.get(digest)

    def _remove(self, gone: frozenset[str]) -> int:
        with self._file.changing():
            there = {line.run.id for _, line in self._lines() if line.run is not None}
            if there & gone:
                self._file.replace(self._kept_lines(there - gone))
            return len(there & gone)

    def _trim(self, now: float) -> int:
        with self._file.changing():
            # A run that was written twice counts at its last place.
            started: dict[str, float] = {}
            for _, line in self._lines():
                if line.run is not None:
                    started.pop(line.run.id, None)
                    started[line.run.id] = line.run.started_at
            oldest = self.retention.oldest(now)
            newest = list(started.items())[-self.retention.runs :]  # all of them if it is 0
            kept = {run for run, started_at in newest if started_at >= oldest}
            if len(kept) < len(started):
                self._file.replace(self._kept_lines(kept))
            return len(started) - len(kept)

    def _kept_lines(self, runs: Set[str]) -> Iterator[bytes]:
        """The lines of these runs, and all settings once: another process may be using them."""
        seen: set[str] = set()
        for text, line in self._lines():
            if line.settings is None:
                if line.run_id in runs:
                    yield text
            elif line.settings.digest not in seen:
                seen.add(line.settings.digest)
                yield text

    def _lines(self) -> Iterator[tuple[bytes, Line]]:
        for number, text in enumerate(self._file.forwards(), 1):
            try:
                yield text, _line_of(text)
            except msgspec.DecodeError as error:
                raise self._damaged(number, error) from error

    def _lines_backwards(self) -> Iterator[Line]:
        for offset, text in self._file.backwards():
            try:
                yield _line_of(text)
            except msgspec.DecodeError as error:
                raise self._damaged(self._file.line_number(offset), error) from error

    def _damaged(self, number: int, reason: object) -> DamagedRecords:
        return DamagedRecords(f"records file {self._file.path}, line {number}: not a record: {reason}")


def _line_of(text: bytes) -> Line:
    line = _decode(text)
    if line.run_id is None and line.settings is None:
        raise msgspec.ValidationError("neither a run nor an attempt")
    return line
