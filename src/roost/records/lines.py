"""A file of lines with durable appends, which several processes may share and a kill does not damage.

A line is complete once its newline is written. Bytes after the last newline are the trace of an append that
was cut off and never acknowledged. The next process that opens the file or appends to it removes them.
Every change of the file holds a lock.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import structlog

from roost.records.errors import RecordsUnavailable

BLOCK = 1 << 16
"""Bytes that are read at a time."""

MODE = 0o640
"""Permissions of a new file."""

_log = structlog.get_logger()


class LineFile:
    """A file of lines, which is created if it is missing.

    Any number of threads may read at once; the other methods are for one thread at a time.

    Raises:
        RecordsUnavailable: by every method, if the file cannot be opened, read, locked or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1
        with self._reported("open"):
            self._reopen()
        try:
            with self.changing():
                self._repair()
        except RecordsUnavailable:
            self.close()
            raise

    def append(self, lines: bytes) -> None:
        """Append whole lines, each with its newline. They are durable when this returns."""
        with self._reported("write"), self.changing():
            end = self._repair()
            try:
                rest = memoryview(lines)
                while rest:
                    rest = rest[os.write(self._file, rest) :]
                os.fsync(self._file)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self._file, end)
                raise

    def forwards(self) -> Iterator[bytes]:
        """Yield the lines from the first to the last, without their newlines."""
        with self._reported("read"), self.path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    yield line[:-1]

    def backwards(self) -> Iterator[tuple[int, bytes]]:
        """Yield the lines from the last to the first, each with the offset in bytes of its start."""
        with self._reported("read"), self.path.open("rb") as file:
            end = at = file.seek(0, os.SEEK_END)
            pieces: list[bytes] = []  # Of the line whose start is not read yet; the last piece first.
            complete = False  # Whether that line has a newline.
            while end:
                start = max(0, end - BLOCK)
                file.seek(start)
                head, *lines = file.read(end - start).split(b"\n")
                end = start
                while lines:
                    line = b"".join((lines.pop(), *reversed(pieces)))
                    pieces.clear()
                    at -= len(line)
                    if complete:
                        yield at, line
                    at -= 1
                    complete = True
                pieces.append(head)
            if complete:
                yield 0, b"".join(reversed(pieces))

    def line_number(self, offset: int) -> int:
        """Return the number, from 1, of the line that starts at ``offset``."""
        newlines = 0
        with self._reported("read"), self.path.open("rb") as file:
            while offset and (block := file.read(min(BLOCK, offset))):
                newlines += block.count(b"\n")
                offset -= len(block)
        return newlines + 1

    def replace(self, lines: Iterable[bytes]) -> None:
        """Replace all lines by these, atomically and durably. Call it inside `changing`."""
        temporary = self.path.with_name(f"{self.path.name}.new")
        with self._reported("rewrite"):
            mode = os.fstat(self._file).st_mode & 0o7777
            try:
                with temporary.open("wb") as file:
                    os.fchmod(file.fileno(), mode)
                    file.writelines(line + b"\n" for line in lines)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(self.path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            self._sync_folder()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock of the file. The open file is then the one that has this path."""
        with self._reported("lock"):
            fcntl.flock(self._file, fcntl.LOCK_EX)
            while not self._is_current():
                self._reopen()
                fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _is_current(self) -> bool:
        """Whether the open file is still the one that has this path."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._file), self.path.stat())
        return False

    def _reopen(self) -> None:
        self.close()
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        try:
            self._file = os.open(self.path, flags)
        except FileNotFoundError:
            self._file = os.open(self.path, flags | os.O_CREAT, MODE)
            self._sync_folder()

    def _repair(self) -> int:
        """Remove an incomplete last line, or end it if it only lacks a newline; return the size in bytes."""
        size = os.fstat(self._file).st_size
        torn = self._after_last_newline(size)
        if not torn:
            return size
        if _is_whole(torn):
            return size + os.write(self._file, b"\n")
        _log.warning("removed an unfinished line of a records file", file=str(self.path), bytes=len(torn))
        os.ftruncate(self._file, size - len(torn))
        return size - len(torn)

    def _after_last_newline(self, end: int) -> bytes:
        torn, newline = b"", -1
        while end and newline < 0:
            start = max(0, end - (BLOCK if torn else 1))
            block = os.pread(self._file, end - start, start)
            newline = block.rfind(b"\n")
            torn = block[newline + 1 :] + torn
            end = start
        return torn

    def _sync_folder(self) -> None:
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @contextmanager
    def _reported(self, verb: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RecordsUnavailable(f"cannot {verb} records file {self.path}: {error.strerror}") from error


def _is_whole(line: bytes) -> bool:
    """Whether this is a whole JSON object. No prefix of a JSON object is one."""
    try:
        msgspec.json.decode(line, type=dict)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True
