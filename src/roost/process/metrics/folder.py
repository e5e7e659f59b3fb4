"""The folder through which the processes of one service share their metrics.

Each process has a number of its own in it, the lowest that no living process has, and files of
prometheus_client's multiprocess mode under this number. A successor continues the files of its predecessor.

Why not the process id: the counts of dead processes must be kept, so a service whose workers are often
replaced would leave more and more files.

A process lives while it holds the lock on its file. The kernel releases the lock with the process, however
that ends.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

_LOOKING = threading.Lock()
"""Held while this process looks for living processes or chooses its number, and during a fork.

A worker that is forked meanwhile would inherit the locks that are being tried, and would keep the number of a
dead process taken.
"""

os.register_at_fork(
    before=_LOOKING.acquire, after_in_parent=_LOOKING.release, after_in_child=_LOOKING.release
)

_PREFIX = "roost-metrics-"
_OWNER = "owner.lock"
_CHOICE = "choice.lock"
"""Lock file of a process that chooses its number or looks for living processes.

Trying the locks makes dead processes seem alive, so a successor would meanwhile take too high a number.
"""


@contextlib.contextmanager
def metrics_folder() -> Iterator[Path]:
    """Make the folder of a service, and remove it at the end.

    Folders that killed services left behind are removed, too. None is used again.
    """
    _remove_abandoned()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    lock = _owned(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _owned(folder: Path) -> int:
    """Return an open file descriptor that holds the lock on a new folder.

    The file gets its name only once it is locked: one without a lock says that its owner is dead.
    """
    unnamed = folder / f"{_OWNER}.new"
    lock = _locked(unnamed)
    assert lock is not None, "nobody else knows the name of the file"
    unnamed.rename(folder / _OWNER)
    return lock


class ProcessNumber:
    """The number of this process in a folder, until it is released or the process ends."""

    def __init__(self, folder: Path) -> None:
        self.number = 0
        lock = None
        with _choosing(folder):
            while lock is None:
                self.number += 1
                lock = _locked(_lock_file(folder, self.number))
        self._lock = lock

    def release(self) -> None:
        """Give the number to another process."""
        os.close(self._lock)


@contextlib.contextmanager
def dead_processes(folder: Path) -> Iterator[list[int]]:
    """Yield the numbers that no living process has. No process gets one of them during the context."""
    numbers = [int(path.stem.removeprefix("process-")) for path in folder.glob("process-*.lock")]
    with _choosing(folder):
        locks = {number: _locked(_lock_file(folder, number)) for number in numbers}
        try:
            yield [number for number, lock in locks.items() if lock is not None]
        finally:
            for lock in locks.values():
                if lock is not None:
                    os.close(lock)


@contextlib.contextmanager
def _choosing(folder: Path) -> Iterator[None]:
    """Keep other processes, and forks of this one, from changing the numbers during the context."""
    with _LOOKING:
        descriptor = os.open(folder / _CHOICE, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _lock_file(folder: Path, number: int) -> Path:
    return folder / f"process-{number}.lock"


def _locked(path: Path) -> int | None:
    """Return an open file descriptor that holds the lock on a file; None if another process holds it."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_abandoned() -> None:
    """Remove the folders of this user whose owner no longer lives."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # Another process may remove the folder at the same time.
        with contextlib.suppress(OSError):
            about = folder.lstat()
            if about.st_uid != os.geteuid() or not stat.S_ISDIR(about.st_mode):
                continue
            if not (folder / _OWNER).exists():
                # Its owner does not have the lock yet, or was killed before. It has nothing in it.
                continue
            lock = _locked(folder / _OWNER)
            if lock is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)
