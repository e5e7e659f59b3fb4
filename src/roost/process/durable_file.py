"""Replaces files as a whole and durably."""

import os
from pathlib import Path

OWNER_ALONE = 0o600
"""The mode of a file that nobody but its owner reads or writes."""


def why_no_directory(error: OSError) -> str:
    """The reason why a directory cannot be made, as a person says it."""
    if isinstance(error, FileExistsError):
        return "it is a file, not a directory"
    if isinstance(error, NotADirectoryError):
        return "a part of its path is a file, not a directory"
    return error.strerror or str(error)


def replace_file(
    path: Path, content: bytes, mode: int = OWNER_ALONE, owner: tuple[int, int] | None = None
) -> None:
    """Replace a file, or make it: no reader sees a part of it, and a crash leaves one of both.

    ``mode``: its permissions whatever the umask, and never more from the first moment on. ``owner``: its user
    and group, None for those of this process. Callers take care that one process at a time replaces it.

    Raises OSError, and leaves the file as it was, also if it cannot be given to ``owner``.
    """
    fresh = path.with_name(f".{path.name}.new")
    # One that a crash left may be open to others, or be a link of theirs.
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
