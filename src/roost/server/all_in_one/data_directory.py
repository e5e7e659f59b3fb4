"""The data directory of a whole system: its lock, and the configuration, whose defaults are files in it."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import structs

from roost.model.errors import OperatorError
from roost.process.durable_file import why_no_directory
from roost.process.option_source import Setting, Source

API_DB = "api.db"
LOCK = "lock"


def in_directory(source: Source, directory: Path) -> Source:
    """Return the source with defaults of a data directory.

    Databases that the source does not name are files in the directory. Tokens are checked only if it says so.
    """
    return structs.replace(
        source,
        defaults=(
            *_databases(directory),
            *_records(directory),
            Setting("api", "auth_strategy", "noauth2"),
            Setting("dashboard", "directory", str(directory.resolve() / "dashboard")),
        ),
    )


def only_in_directory(source: Source, directory: Path) -> Source:
    """Return the source with its own records database, and with all other databases in a data directory."""
    return structs.replace(
        source, settings=(*source.settings, *_databases(directory)), defaults=_records(directory)
    )


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock a data directory for this process, and make the directory if it is missing.

    The lock ends with the process, however it ends.

    Two systems on the same databases would each build every instance. Raises `OperatorError` if another
    process has the directory, or if it cannot be used.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = (directory / LOCK).open("w")
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


def _databases(directory: Path) -> tuple[Setting, ...]:
    url = f"sqlite:///{directory.resolve() / API_DB}"
    return tuple(Setting(group, "connection", url) for group in ("placement_database", "api_database"))


def _records(directory: Path) -> tuple[Setting, ...]:
    files = directory.resolve()
    return (
        Setting("records", "connection", f"sqlite:///{files / 'records.db'}"),
        Setting("records", "path", str(files / "records.jsonl")),
    )
