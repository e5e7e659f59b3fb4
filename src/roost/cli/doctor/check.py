"""Checks of a deployment, and their findings."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, Generic, Literal, NamedTuple, TypeVar

import msgspec

from roost.cli.listen_options import ListenOptions
from roost.model.errors import OperatorError
from roost.placement.options import PlacementOptions, read_options
from roost.process.option_source import Source
from roost.process.report import masked
from roost.storage import Database, DatabaseMisconfigured, DatabaseUrl, as_url

Level = Literal["ok", "warn", "fail", "skip"]

ANSWER_SECONDS: Final = 5.0
"""Seconds that a database, a service or Keystone has to answer a check."""


class DoctorFinding(msgspec.Struct, frozen=True):
    """A finding of a check.

    ``level``: ``ok``; ``warn``: the service works, but something should change; ``fail``: the service does
    not work; ``skip``: the check could not run. ``change``: the change to make; empty if none.
    """

    check: str
    level: Level
    says: str
    change: str = ""


class DoctorVerdict(NamedTuple):
    """A finding without the name of its check; see `DoctorFinding`."""

    level: Level
    says: str
    change: str = ""


class NotKnown(Exception):
    """The check needs an option or service that another check has found missing."""


@dataclass
class Deployment:
    """The configuration and addresses of a service, as `roost serve` has them.

    ``metrics``: the URL of the metrics address; None: not given. ``schedules``: the service is `roost
    scheduler` or a conductor, which may have no ledger. ``cell``: the cell of a cell's conductor.
    """

    source: Source
    listening: ListenOptions
    database_url: str | None = None
    workers: int = 1
    metrics: str | None = None
    schedules: bool = False
    cell: str | None = None
    _opened: list[Database] = field(default_factory=list)

    @cached_property
    def options(self) -> PlacementOptions:
        """The options. Raises: `NotKnown` if they cannot be read."""
        try:
            return read_options(self.source)
        except OperatorError:
            raise NotKnown("the configuration cannot be read") from None

    @property
    def url(self) -> DatabaseUrl | str:
        """The database URL. Raises: `NotKnown` without one."""
        url = self.database_url or self.options.database
        if url is None:
            raise NotKnown("no database is configured")
        return url

    @property
    def sqlite_file(self) -> Path | None:
        """The file of a SQLite database; None for a server. Raises: `NotKnown` without a valid URL."""
        try:
            url = as_url(self.url).parsed
        except DatabaseMisconfigured:
            raise NotKnown("the URL of the database is not valid") from None
        is_file = url.get_backend_name() == "sqlite" and url.database
        return Path(str(url.database)).absolute() if is_file else None

    @cached_property
    def database(self) -> Database:
        """The database, opened for reading. Raises: `NotKnown` if it cannot be opened."""
        if (file := self.sqlite_file) is not None and not file.exists():
            raise NotKnown("the file of the database is not there yet")
        try:
            return self.open_database()
        except OperatorError:
            raise NotKnown("the database cannot be opened") from None

    def open_database(self) -> Database:
        """Open the database for reading, until `close`. Raises `StorageError`."""
        database = Database(self.url, read_only=True, answer_seconds=ANSWER_SECONDS)
        self._opened.append(database)
        return database

    async def close(self) -> None:
        """Close the database if a check has opened it."""
        for database in self._opened:
            await database.close()


T = TypeVar("T")


class DoctorCheck(NamedTuple, Generic[T]):
    """A check with its name. ``run`` judges a deployment, or an agent; it changes nothing."""

    name: str
    run: Callable[[T], Iterable[DoctorVerdict]]


def run_checks(checks: Sequence[DoctorCheck[T]], checked: T) -> Iterator[DoctorFinding]:
    """Run all checks, in their order. An error of a check is reported as its finding."""
    for check in checks:
        try:
            for verdict in check.run(checked):
                yield DoctorFinding(check.name, verdict.level, masked(verdict.says), verdict.change)
        except NotKnown as error:
            yield DoctorFinding(check.name, "skip", f"not checked: {error}")
        except OperatorError as error:
            yield DoctorFinding(check.name, "fail", masked(str(error)), "see the message")
        except Exception as error:
            text = f"the check itself failed: {type(error).__name__}: {error}"
            yield DoctorFinding(check.name, "fail", masked(text), "tell the authors of Roost")
