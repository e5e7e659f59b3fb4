"""Records in files of JSON lines, one row a line, in the order in which they were recorded.

Each segment has the settings that its runs name, so that older segments can be removed.
"""

from collections.abc import AsyncIterator, Collection, Iterator, Sequence, Set
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from roost.model.record import Attempt, RunReasons, Settings
from roost.process.lane import Lane
from roost.records.errors import DamagedRecords
from roost.records.jsonl_reader import JsonLine, JsonlReader, ReadRun
from roost.records.records import SECONDS_PER_DAY, Retention, check
from roost.records.rows import EncodedRun, RunWithAttempts, run_with_attempts
from roost.records.search import Search
from roost.records.segments import SegmentPlace, Segments

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(JsonLine).decode

READ_CHUNK = 500
"""Runs in one list of `JsonLinesRecords.each`."""


class JsonLinesRecords:
    """Records in files of JSON lines. A search reads from the end to the last run that it returns.

    Raises:
        RecordsUnavailable: the file cannot be opened.
    """

    def __init__(self, path: Path, retention: Retention) -> None:
        self.retention = retention
        self._file = Segments(path)
        self._settings: dict[str, Settings] = {}
        self._settings_written: set[str] = set()
        self._settings_in = 0
        """The segment, by `Segments.opened`, to which `_settings_written` refers."""
        self._reader = Lane("records-reader")
        self._writer = Lane("records-writer")

    async def write(
        self, runs: Sequence[EncodedRun], attempts: Sequence[Attempt], reasons: Sequence[RunReasons] = ()
    ) -> None:
        """Record runs, attempts and reasons; see `Records.write`.

        A kill during a write may leave a part of it.
        """
        await self._writer.run(lambda: self._write(runs, attempts, reasons))

    async def last(self, n: int, refused: bool = False) -> list[RunWithAttempts]:
        """Return the last ``n`` runs; see `Records.last`."""
        return await self.find(Search(refused=refused), n)

    async def find(self, search: Search, limit: int = 100) -> list[RunWithAttempts]:
        """Return the last ``limit`` runs that a search selects; see `SearchableRecords.find`."""
        return await self._reader.run(lambda: [*islice(self._found(search), limit)] if limit > 0 else [])

    async def each(self, search: Search) -> AsyncIterator[list[RunWithAttempts]]:
        """Yield all runs that a search selects; see `SearchableRecords.each`."""
        found = self._found(search)
        while some := await self._reader.run(lambda: [*islice(found, READ_CHUNK)]):
            yield some

    async def remove(self, runs: Collection[str]) -> int:
        """Remove runs by id; see `SearchableRecords.remove`. Writes wait meanwhile."""
        return await self._writer.run(lambda: self._remove(frozenset(runs)))

    async def trim(self, now: float) -> int:
        """Remove the runs beyond the retention at ``now``; see `Records.trim`.

        The segment in use is read and trimmed run by run. A closed segment is removed as a whole, unread, if
        it was closed before the allowed age, or later segments have enough runs. So up to one segment of
        runs too many may be kept, for up to a day too long. Writes wait meanwhile. A segment is replaced
        atomically: after a kill it is either trimmed or unchanged.

        Raises:
            DamagedRecords: a line of the segment in use is not a record.
        """
        return await self._writer.run(lambda: self._trim(now))

    async def close(self) -> None:
        """Finish the write that has begun and close the file.

        After a cancellation, a hanging thread is abandoned: it does not keep the program from ending.
        """
        for lane in (self._writer, self._reader):
            await lane.close(None)
        self._file.close()

    def _write(
        self, runs: Sequence[EncodedRun], attempts: Sequence[Attempt], reasons: Sequence[RunReasons]
    ) -> None:
        check(runs, attempts)
        settings = {run.settings.digest: run.settings for run in runs if run.settings is not None}
        lines = [_encode(JsonLine(run=run.row)) for run in runs]
        lines += [_encode(JsonLine(attempt=attempt)) for attempt in attempts]
        lines += [_encode(JsonLine(reasons=each)) for each in reasons]
        if not lines:
            return
        with self._file.changing():
            if self._file.opened != self._settings_in:
                self._settings_in = self._file.opened
                self._settings_written.clear()
            new = [settings[digest] for digest in settings if digest not in self._settings_written]
            self._file.append(b"\n".join((*(_encode(JsonLine(settings=each)) for each in new), *lines, b"")))
            self._settings_written.update(settings)

    def _found(self, search: Search) -> Iterator[RunWithAttempts]:
        """Read the file backwards and yield the runs that the search selects."""
        reading = JsonlReader(search)
        for line in self._lines_backwards():
            yield from map(self._whole, reading.take(line))
        yield from map(self._whole, reading.rest())

    def _whole(self, read: ReadRun) -> RunWithAttempts:
        row = read.row
        settings = None if row.settings is None else self._settings_of(row.settings)
        return run_with_attempts(row, read.attempts, settings, read.reasons)

    def _settings_of(self, digest: str) -> Settings | None:
        """Return the settings of a digest; their line is before the runs that name them."""
        if digest not in self._settings:
            for line in self._lines_backwards():
                if line.settings is not None:
                    self._settings[line.settings.digest] = line.settings
                    if line.settings.digest == digest:
                        break
        return self._settings.get(digest)

    def _remove(self, gone: frozenset[str]) -> int:
        with self._file.changing():
            found: set[str] = set()
            for segment in self._file.closed():
                if there := self._lines_of(segment.path, gone):
                    found |= there
                    self._file.replace_closed(segment, partial(self._lines_without, gone=gone))
            if there := self._lines_of(self._file.path, gone):
                found |= there
                self._file.replace(self._lines_without(self._file.path, gone))
            return len(found)

    def _lines_of(self, path: Path, runs: frozenset[str]) -> frozenset[str]:
        """Return the ids in ``runs`` of which a segment has lines."""
        return runs & {line.run_id for _, line in self._lines(path)}

    def _trim(self, now: float) -> int:
        oldest, most = self.retention.oldest(now), self.retention.runs
        with self._file.changing():
            # A run that was written twice counts at its last place.
            started: dict[str, float] = {}
            for _, line in self._lines(self._file.path):
                if line.run is not None:
                    started.pop(line.run.id, None)
                    started[line.run.id] = line.run.started_at
            closed = self._file.closed()
            old = []
            younger = len(started)
            for segment in reversed(closed):
                if segment.closed_at < oldest or (most and younger >= most):
                    old.append(segment)
                else:
                    younger += segment.runs
            self._file.remove(old)
            newest = [*started.items()][-most:]  # all of them if ``most`` is 0
            kept = {run: started_at for run, started_at in newest if started_at >= oldest}
            gone = started.keys() - kept.keys()
            if gone:
                stay = None if len(old) < len(closed) else kept.keys()
                self._file.replace(self._lines_without(self._file.path, gone, stay))
            elif kept and next(iter(kept.values())) <= now - SECONDS_PER_DAY:
                self._file.close_segment(now)
            return len(gone) + sum(segment.runs for segment in old)

    def _lines_without(self, path: Path, gone: Set[str], stay: Set[str] | None = None) -> Iterator[bytes]:
        """Yield the lines of a segment without those of some runs.

        All settings are yielded, once: another process may use them. ``stay``: the only runs that remain in
        all segments; None: a line may belong to a run in another segment.
        """
        seen: set[str] = set()
        for text, line in self._lines(path):
            if line.settings is not None:
                if line.settings.digest not in seen:
                    seen.add(line.settings.digest)
                    yield text
            elif line.run_id not in gone and (stay is None or line.run_id in stay):
                yield text

    def _lines(self, path: Path) -> Iterator[tuple[bytes, JsonLine]]:
        for place, text in self._file.forwards(path):
            yield text, _line_of(place, text)

    def _lines_backwards(self) -> Iterator[JsonLine]:
        for place, text in self._file.backwards():
            yield _line_of(place, text)


def _line_of(place: SegmentPlace, text: bytes) -> JsonLine:
    """Return the line at a place. Raises `DamagedRecords`, which names the place."""
    try:
        line = _decode(text)
        if line.run_id is None and line.settings is None:
            raise msgspec.ValidationError("neither a run nor an attempt")
    except msgspec.DecodeError as error:
        message = f"records file {place.path}, line {place.number()}: not a record: {error}"
        raise DamagedRecords(message) from error
    return line
