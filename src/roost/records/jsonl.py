"""Records in a file of JSON lines: ``{"run": {…}}`` and ``{"attempt": {…}}``, in order of writing."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from roost.model.record import Attempt, Run
from roost.records.errors import DamagedRecords, RecordsError, SearchUnsupported
from roost.records.lines import LineFile
from roost.records.records import Retention, RunWithAttempts, check


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line: a run or an attempt."""

    run: Run | None = None
    attempt: Attempt | None = None


class _RunMark(msgspec.Struct, frozen=True):
    id: str
    started_at: float


class _AttemptMark(msgspec.Struct, frozen=True):
    run: str


class _Mark(msgspec.Struct, frozen=True):
    """What trimming needs to know of a line."""

    run: _RunMark | None = None
    attempt: _AttemptMark | None = None

    @property
    def belongs_to(self) -> str | None:
        """The id of the run that this line is, or is an attempt of."""
        if self.run is not None:
            return self.run.id
        return self.attempt.run if self.attempt is not None else None


class _Waiting:
    """Lines that wait to be written, and what became of them."""

    def __init__(self, lines: bytes) -> None:
        self.lines = lines
        self.error: RecordsError | None = None


_encode = msgspec.json.Encoder().encode
_decode_line = msgspec.json.Decoder(_Line).decode
_decode_mark = msgspec.json.Decoder(_Mark).decode


class JsonLinesRecords:
    """Records in a file of JSON lines. It cannot search. Raises `RecordsUnavailable`."""

    def __init__(self, path: Path, retention: Retention) -> None:
        self._file = LineFile(path)
        self.retention = retention
        self._waiting: deque[_Waiting] = deque()
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="records-reader")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="records-writer")

    async def write(self, runs: Sequence[Run], attempts: Sequence[Attempt]) -> None:
        """Record runs and attempts; see `Records.write`. After a kill, a part of them may be recorded."""
        check(runs, attempts)
        lines = [_encode(_Line(run=run)) for run in runs]
        lines += [_encode(_Line(attempt=attempt)) for attempt in attempts]
        if not lines:
            return
        waiting = _Waiting(b"\n".join((*lines, b"")))
        self._waiting.append(waiting)
        await asyncio.get_running_loop().run_in_executor(self._writer, self._write_waiting)
        if waiting.error is not None:
            raise waiting.error

    async def last(self, n: int) -> list[RunWithAttempts]:
        """The ``n`` runs written last; see `Records.last`. Reads no more of the file than holds them."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, self._last, n)

    async def find(
        self, request_id: str | None = None, instance: str | None = None, limit: int = 100
    ) -> list[RunWithAttempts]:
        """Raise `SearchUnsupported`."""
        raise SearchUnsupported(
            f"records file {self._file.path} cannot be searched by request or instance: "
            "only records of backend 'sql' can, see option [records] backend"
        )

    async def trim(self, now: float) -> int:
        """Remove what is not to be kept at ``now``; see `Records.trim`. Raises `DamagedRecords`.

        Writes wait meanwhile. The file is replaced at once: a kill leaves it as it was or trimmed.
        """
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._trim, now)

    async def close(self) -> None:
        """Finish what is being written and close the file."""
        self._reader.shutdown()
        self._writer.shutdown()
        self._file.close()

    def _write_waiting(self) -> None:
        """Write all that waits with one sync.

        Every write comes here after it has queued its lines, in one thread: when its turn is over its
        lines have been written, by itself or by one before it, which then left it nothing to do.
        """
        group: list[_Waiting] = []
        while self._waiting:
            group.append(self._waiting.popleft())
        if not group:
            return
        try:
            self._file.append(b"".join(waiting.lines for waiting in group))
        except RecordsError as error:
            for waiting in group:
                waiting.error = error

    def _last(self, n: int) -> list[RunWithAttempts]:
        found: list[RunWithAttempts] = []
        if n < 1:
            return found
        tried: dict[str, list[Attempt]] = defaultdict(list)
        for offset, text in self._file.backwards():
            try:
                line = _decode_line(text)
            except msgspec.DecodeError as error:
                raise self._damaged(self._file.line_number(offset), error) from error
            if line.attempt is not None:
                tried[line.attempt.run].append(line.attempt)
            elif line.run is not None:
                # An attempt is written with its run or later, so that all of them have been read.
                attempts = reversed(tried.pop(line.run.id, []))
                found.append(RunWithAttempts(line.run, tuple(sorted(attempts, key=lambda at: at.at))))
                if len(found) == n:
                    break
            else:
                raise self._damaged(self._file.line_number(offset), "neither a run nor an attempt")
        return found

    def _trim(self, now: float) -> int:
        with self._file.changing():
            started = [(mark.run.id, mark.run.started_at) for _, mark in self._marks() if mark.run]
            oldest = self.retention.oldest(now)
            newest = started[-self.retention.runs :]  # all of them if it is 0
            kept = {run for run, started_at in newest if started_at >= oldest}
            gone = sum(run not in kept for run, _ in started)
            if gone:
                self._file.replace(text for text, mark in self._marks() if mark.belongs_to in kept)
            return gone

    def _marks(self) -> Iterator[tuple[bytes, _Mark]]:
        for number, text in enumerate(self._file.forwards(), 1):
            try:
                mark = _decode_mark(text)
            except msgspec.DecodeError as error:
                raise self._damaged(number, error) from error
            if mark.belongs_to is None:
                raise self._damaged(number, "neither a run nor an attempt")
            yield text, mark

    def _damaged(self, number: int, why: object) -> DamagedRecords:
        return DamagedRecords(f"records file {self._file.path}, line {number}: not a record: {why}")
