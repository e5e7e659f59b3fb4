"""A file of lines with durable appends, which several processes may share and a kill does not damage.

A line is complete once its newline is written. Bytes after the last newline come from an append that was
cut off and never acknowledged. The next process that opens the file or appends to it removes them. Every
change of the file holds a lock.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import msgspec
import structlog

from roost.records.errors import RecordsUnavailable
from roost.records.line_reader import BLOCK, reported

MODE = 0o640
"""Permissions of a new file."""

_log = structlog.get_logger()


class LineFile:
    """A file of lines, which is created if it is missing. Its methods are for one thread at a time.

    ``opened``: the number of times the file was opened; while it stays the same, so does the file.

    Raises:
        RecordsUnavailable: by every method, if the file cannot be opened, read, locked or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.opened = 0
        self._file = -1
        self._is_locked = False
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

    def set_aside(self, path: Path) -> None:
        """Give the file another path and begin an empty one, durably; the last act inside `changing`.

        There is always a file at the old path. A kill may leave the file with both paths.
        """
        with self._reported("set aside"):
            os.link(self.path, path)
        self.replace(())

    def size(self) -> int:
        """Return the size of the open file in bytes."""
        return os.fstat(self._file).st_size

    def is_at(self, path: Path) -> bool:
        """Return whether the open file has this path, perhaps as one of several."""
        with suppress(FileNotFoundError):
            return os.path.samestat(os.fstat(self._file), path.stat())
        return False

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock of the file. The open file is then the one at this path."""
        if self._is_locked:
            yield
            return
        with self._reported("lock"):
            fcntl.flock(self._file, fcntl.LOCK_EX)
            while not self.is_at(self.path):
                self._reopen()
                fcntl.flock(self._file, fcntl.LOCK_EX)
        self._is_locked = True
        try:
            yield
        finally:
            self._is_locked = False
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _reopen(self) -> None:
        self.close()
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        try:
            self._file = os.open(self.path, flags)
        except FileNotFoundError:
            self._file = os.open(self.path, flags | os.O_CREAT, MODE)
            self._sync_folder()
        self.opened += 1

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

    def _reported(self, verb: str) -> AbstractContextManager[None]:
        return reported(verb, self.path)


def _is_whole(line: bytes) -> bool:
    """Return whether this is a whole JSON object. No proper prefix of a JSON object is one."""
    try:
        msgspec.json.decode(line, type=dict)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True
