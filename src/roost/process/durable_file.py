"""Replaces files as a whole and durably."""

import os
from pathlib import Path

OWNER_ALONE = 0o600
"""The mode of a file that only its owner reads and writes."""


def why_no_directory(error: OSError) -> str:
    """Return the reason why a directory cannot be made, in plain words."""
    if isinstance(error, FileExistsError):
        return "it is a file, not a directory"
    if isinstance(error, NotADirectoryError):
        return "a part of its path is a file, not a directory"
    return error.strerror or str(error)


def replace_file(
    path: Path, content: bytes, mode: int = OWNER_ALONE, owner: tuple[int, int] | None = None
) -> None:
    """Replace or create a file atomically: readers and crashes see the old file or the new one.

    ``mode``: its permissions whatever the umask; the file never has more, not even while it is written.
    ``owner``: its user and group, None for those of this process. Callers ensure that only one process at a
    time replaces it.

    Raises OSError, and leaves the file as it was, also if it cannot be given to ``owner``.
    """
    fresh = path.with_name(f".{path.name}.new")
    # A temporary file that a crash left may be readable by others, or be a link that they made.
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, OWNER_ALONE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if owner is not None:
                _give(descriptor, owner)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    folder = os.open(path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _give(descriptor: int, owner: tuple[int, int]) -> None:
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) == owner:
        return
    try:
        os.fchown(descriptor, *owner)
    except OSError as error:
        user, group = owner
        text = f"owner {user} and group {group} of the file cannot be kept: {error.strerror or error}"
        raise OSError(error.errno, text) from error
