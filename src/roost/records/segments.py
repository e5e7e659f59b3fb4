"""Segments of lines: one file that is appended to, and closed ones beside it, which are removed as a whole.

The segment in use has the path of the records. Once it is large it is closed: it is renamed to
``PATH.NUMBER.CLOSED.RUNS``, and an empty file takes its place. So a trim knows from the names alone which
segments are too old or too many. A file that has grown without being closed becomes the oldest segment.
Processes that still hold a closed segment notice it under the lock and continue in the segment in use.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec
import structlog

from roost.records.errors import RecordsUnavailable
from roost.records.line_reader import count_lines, line_number, lines_backwards, lines_forwards, reported
from roost.records.lines import LineFile

SEGMENT_BYTES = 16 << 20
"""Size from which a segment is closed: about 5,000 plain runs."""

RUN_START = b'{"run":'
"""The start of the lines that are counted in the name of a segment."""

_TIME = "%Y%m%dT%H%M%SZ"

_log = structlog.get_logger()


class Closed(msgspec.Struct, frozen=True, order=True):
    """A closed segment. A higher number is a younger one."""

    number: int
    path: Path
    closed_at: float
    """Time of closing in seconds since the epoch: every run in it started before."""
    runs: int


class SegmentPlace(msgspec.Struct, frozen=True):
    """The place of a line: the offset in bytes of its start in a file."""

    path: Path
    offset: int

    def number(self) -> int:
        """Return the number of the line, from 1.

        Raises:
            RecordsUnavailable: the file cannot be read, or a trim has removed it.
        """
        with reported("read", self.path), self.path.open("rb") as file:
            return line_number(file, self.offset)


class Segments:
    """Lines in segments. ``clock``: seconds since the epoch.

    Any number of threads may read at once; the other methods are for one thread at a time.

    Raises:
        RecordsUnavailable: by every method, if a file cannot be opened, read, locked or written.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._current = LineFile(path)
        self._close_from = SEGMENT_BYTES

    @property
    def opened(self) -> int:
        """The number of opened segments in use: under the lock, the same number means the same segment."""
        return self._current.opened

    def changing(self) -> AbstractContextManager[None]:
        """Hold the lock of all segments."""
        return self._current.changing()

    def append(self, lines: bytes) -> None:
        """Append whole lines, each with its newline, and close the segment if it is large.

        The lines are durable when this returns.
        """
        with self.changing():
            self._current.append(lines)
            if self._current.size() < self._close_from:
                return
            try:
                self.close_segment(self._clock())
                self._close_from = SEGMENT_BYTES
            except RecordsUnavailable as error:
                # The lines are durable. An error here would have the caller write them again each time.
                self._close_from = self._current.size() + SEGMENT_BYTES
                _log.warning("a segment of the records stays in use", reason=str(error))

    def close_segment(self, now: float) -> None:
        """Close the segment in use at the time ``now``; the last act inside `changing`."""
        closed = self.closed()
        number = closed[-1].number + 1 if closed else 1
        with reported("read", self.path), self.path.open("rb") as file:
            runs = count_lines(file, RUN_START)
        self._current.set_aside(self._named(number, now, runs))

    def closed(self) -> list[Closed]:
        """Return the closed segments, the oldest first. Call it inside `changing`.

        A closing that was cut off by a kill leaves a second name of the segment in use, which is removed.
        """
        found = self._listed()
        if found and self._current.is_at(found[-1].path):
            with reported("remove", found[-1].path):
                found.pop().path.unlink()
        return found

    def remove(self, segments: Iterable[Closed]) -> None:
        """Remove closed segments, oldest first, so that a kill leaves no gap. Call it inside `changing`."""
        for segment in sorted(segments):
            with reported("remove", segment.path):
                segment.path.unlink()

    def replace(self, lines: Iterable[bytes]) -> None:
        """Replace the segment in use, atomically and durably. Call it inside `changing`."""
        self._current.replace(lines)

    def replace_closed(self, segment: Closed, lines: Callable[[Path], Iterable[bytes]]) -> None:
        """Replace a closed segment by the given ones of its lines, atomically and durably.

        Without any run the segment is removed. Call it inside `changing`.
        """
        runs = sum(line.startswith(RUN_START) for line in lines(segment.path))
        if not runs:
            self.remove([segment])
            return
        path = self._named(segment.number, segment.closed_at, runs)
        with reported("rename", segment.path):
            segment.path.rename(path)
        file = LineFile(path)
        try:
            with file.changing():
                file.replace(lines(path))
        finally:
            file.close()

    def forwards(self, path: Path) -> Iterator[tuple[SegmentPlace, bytes]]:
        """Yield the lines of one segment from the first to the last."""
        with reported("read", path), path.open("rb") as file:
            offset = 0
            for line in lines_forwards(file):
                yield SegmentPlace(path, offset), line
                offset += len(line) + 1

    def backwards(self) -> Iterator[tuple[SegmentPlace, bytes]]:
        """Yield the lines of all segments from the last to the first.

        A segment is opened when it is reached. A segment that a trim has removed meanwhile has no lines.
        """
        with reported("read", self.path), self.path.open("rb") as file:
            older = self._older_than(file)
            for offset, line in lines_backwards(file):
                yield SegmentPlace(self.path, offset), line
        while older:
            segment = older.pop()
            if not segment.path.exists():  # Removed, or its name has another number of runs.
                older += [each for each in self._listed() if each.number == segment.number]
                continue
            with reported("read", segment.path), suppress(FileNotFoundError), segment.path.open("rb") as file:
                for offset, line in lines_backwards(file):
                    yield SegmentPlace(segment.path, offset), line

    def close(self) -> None:
        """Close the open file."""
        self._current.close()

    def _older_than(self, current: BinaryIO) -> list[Closed]:
        """Return the closed segments that are older than the file just opened as the one in use."""
        found = self._listed()
        for place, segment in enumerate(found):
            with suppress(FileNotFoundError):
                if os.path.samestat(segment.path.stat(), os.fstat(current.fileno())):
                    return found[:place]
        return found

    def _listed(self) -> list[Closed]:
        pattern = re.compile(re.escape(self.path.name) + r"\.(\d{6,})\.(\d{8}T\d{6}Z)\.(\d+)")
        found = []
        with reported("list", self.path):
            for path in self.path.parent.iterdir():
                if match := pattern.fullmatch(path.name):
                    closed_at = datetime.strptime(match[2], _TIME).replace(tzinfo=UTC).timestamp()
                    found.append(Closed(int(match[1]), path, closed_at, int(match[3])))
        return sorted(found)

    def _named(self, number: int, closed_at: float, runs: int) -> Path:
        # A name has whole seconds, rounded up: every run of the segment started before it.
        stamp = datetime.fromtimestamp(int(closed_at) + (closed_at % 1 > 0), UTC).strftime(_TIME)
        return self.path.with_name(f"{self.path.name}.{number:06d}.{stamp}.{runs}")
