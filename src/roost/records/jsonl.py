"""Records in a file of JSON lines, one row a line, in the order in which they were recorded."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path

import msgspec

from roost.lane import Lane
from roost.model.record import Attempt, Run, RunReasons, Settings
from roost.records.errors import DamagedRecords
from roost.records.lines import LineFile
from roost.records.records import Retention, RunWithAttempts, check, check_criteria
from roost.records.rows import RunRow, row_of, run_with_attempts


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line, which has one of these."""

    run: RunRow | None = None
    attempt: Attempt | None = None
    reasons: RunReasons | None = None
    settings: Settings | None = None

    @property
    def run_id(self) -> str | None:
        """The id of the run that this line is about; None for settings."""
        if self.run is not None:
            return self.run.id
        if self.attempt is not None:
            return self.attempt.run
        return self.reasons.run if self.reasons is not None else None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


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

        def wanted(row: RunRow) -> bool:
            return not refused or row.refusal is not None

        return await self._reader.run(lambda: self._read(wanted, n))

    async def find(
        self, request_id: str | None = None, instance: str | None = None, limit: int = 100
    ) -> list[RunWithAttempts]:
        """Return the last runs of a request or for an instance; see `Records.find`."""
        check_criteria(request_id, instance)
        return await self._reader.run(
            lambda: self._read(lambda row: row.matches(request_id, instance), limit)
        )

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

    def _read(self, wanted: Callable[[RunRow], bool], limit: int) -> list[RunWithAttempts]:
        found: dict[str, RunRow] = {}
        attempts: dict[str, list[Attempt]] = defaultdict(list)
        reasons: dict[str, RunReasons] = {}
        missing: set[str] = set()
        for line in self._lines_backwards() if limit > 0 else ():
            if line.settings is not None:
                self._settings[line.settings.digest] = line.settings
                missing.discard(line.settings.digest)
            elif line.attempt is not None:
                attempts[line.attempt.run].append(line.attempt)
            elif line.reasons is not None:
                reasons.setdefault(line.reasons.run, line.reasons)
            elif line.run is not None and len(found) < limit and wanted(line.run):
                found.setdefault(line.run.id, line.run)
                if line.run.settings is not None and line.run.settings not in self._settings:
                    missing.add(line.run.settings)
            if len(found) == limit and not missing:
                break
        return [
            run_with_attempts(
                row,
                reversed(attempts[row.id]),
                None if row.settings is None else self._settings.get(row.settings),
                reasons.get(row.id),
            )
            for row in found.values()
        ]

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
