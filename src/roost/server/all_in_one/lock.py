"""A lock that admits one process at a time to a data directory."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roost.model.errors import OperatorError
from roost.process.durable_file import why_no_directory

FILE = "lock"


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock a data directory for this process, and make the directory if it is missing.

    The lock ends with the process, however it ends.

    Two systems on the same databases would each build every instance. Raises `OperatorError` if another
    process has the directory, or if it cannot be used.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = (directory / FILE).open("w")
    except OSError as error:
        raise OperatorError(
            f"data directory {directory} cannot be used: {why_no_directory(error)}"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OperatorError(f"data directory {directory} is in use by another roost") from error
        yield
