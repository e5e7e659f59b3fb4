"""One process at a time in a data directory."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from roost.model.errors import OperatorError
from roost.process.durable_file import why_no_directory

FILE = "lock"


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep a data directory, made if need be, to this process; its end, whatever it is, frees it.

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
