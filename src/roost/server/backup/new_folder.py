"""A folder that appears as a whole: filled under another name, then renamed."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roost.process.durable_file import why_no_directory
from roost.server.backup.errors import BackupError, TargetNotEmpty
from roost.server.backup.manifest import sync


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``path``, which is renamed to ``path`` at the end, durably.

    After an error the folder is removed. The remains of a killed process are removed by the next one.

    Raises:
        TargetNotEmpty: ``path`` exists already.
        BackupError: the folder cannot be made, or another process is filling it.
    """
    path = path.absolute()
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise TargetNotEmpty(f"{path} exists already: name a new folder")
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.mkdir(mode=0o700, exist_ok=True)  # databases may contain passwords
        lock = os.open(unfinished, os.O_RDONLY)
    except OSError as error:
        raise BackupError(f"cannot make folder {unfinished}: {why_no_directory(error)}") from error
    try:
        _take(lock, unfinished)
        try:
            _empty(unfinished)
            yield unfinished
            sync(unfinished)
            unfinished.rename(path)
            sync(path.parent)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    except OSError as error:
        raise BackupError(f"cannot write {path}: {error}") from error
    finally:
        os.close(lock)


def _take(lock: int, folder: Path) -> None:
    """Lock a folder. The lock ends with the process."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        ours = folder.stat().st_ino == os.fstat(lock).st_ino
    except OSError:
        ours = False  # another process has locked or renamed it
    if not ours:
        raise BackupError(f"another process is filling {folder}")


def _empty(folder: Path) -> None:
    for each in folder.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
        else:
            each.unlink()
