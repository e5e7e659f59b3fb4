"""Records in a file of JSON lines, one row a line, in the order in which they were recorded."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from roost.lane import Lane
from roost.model.record import Attempt, Run
from roost.records.errors import DamagedRecords
from roost.records.lines import LineFile
from roost.records.records import Retention, RunWithAttempts, check, check_criteria
from roost.records.rows import RunRow, row_of, run_with_attempts


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line, which has either a run or an attempt."""

    run: RunRow | None = None
    attempt: Attempt | None = None

    @property
    def run_id(self) -> str | None:
        """The id of the run that this line stores or whose attempt it stores; None if it stores neither."""
        if self.run is not None:
            return self.run.id
        return self.attempt.run if self.attempt is not None else None


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
        self._reader = Lane("records-reader")
        self._writer = Lane("records-writer")

    async def write(self, runs: Sequence[Run], attempts: Sequence[Attempt]) -> None:
        """Record runs and attempts; see `Records.write`. A kill during a write may leave a part of it."""
        await self._writer.run(lambda: self._write(runs, attempts))

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

    def _write(self, runs: Sequence[Run], attempts: Sequence[Attempt]) -> None:
        check(runs, attempts)
        lines = [_encode(Line(run=row_of(run))) for run in runs]
        lines += [_encode(Line(attempt=attempt)) for attempt in attempts]
        if lines:
            self._file.append(b"\n".join((*lines, b"")))

    def _read(self, wanted: Callable[[RunRow], bool], limit: int) -> list[RunWithAttempts]:
        found: dict[str, RunWithAttempts] = {}
        attempts: dict[str, list[Attempt]] = defaultdict(list)
        for line in self._lines_backwards() if limit > 0 else ():
            if line.attempt is not None:
                attempts[line.attempt.run].append(line.attempt)
            elif line.run is not None:
                # An attempt is written with its run or later: all attempts of this run have been read.
                row, latest_first = line.run, attempts.pop(line.run.id, [])
                if wanted(row) and row.id not in found:
                    found[row.id] = run_with_attempts(row, reversed(latest_first))
                    if len(found) == limit:
                        break
        return list(found.values())

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
                self._file.replace(text for text, line in self._lines() if line.run_id in kept)
            return len(started) - len(kept)

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
    if line.run_id is None:
        raise msgspec.ValidationError("neither a run nor an attempt")
    return line
