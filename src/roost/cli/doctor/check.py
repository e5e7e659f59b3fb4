"""Checks of a deployment, and what they find."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, Generic, Literal, NamedTuple, TypeVar

import msgspec

from roost.cli.listen_options import Listening
from roost.model.errors import OperatorError
from roost.placement.options import PlacementOptions, read_options
from roost.process.report import masked
from roost.storage import Database, DatabaseMisconfigured, DatabaseUrl, as_url
from roost.web.auth import Source

Level = Literal["ok", "warn", "fail", "skip"]

ANSWER_SECONDS: Final = 5.0
"""Seconds that a database, a service or Keystone has to answer a check."""


class Finding(msgspec.Struct, frozen=True):
    """What a check has found.

    ``level``: ``ok``; ``warn``: the service works, but something should change; ``fail``: the service does
    not work; ``skip``: the check could not be made. ``change``: what to change, empty if nothing.
    """

    check: str
    level: Level
    says: str
    change: str = ""


class Verdict(NamedTuple):
    """What a check says of one thing; see `Finding`."""

    level: Level
    says: str
    change: str = ""


class NotKnown(Exception):
    """The check needs something that another check has found missing."""


@dataclass
class Deployment:
    """The configuration and addresses of a service, as `roost serve` has them.

    ``metrics``: the URL of the metrics address; None: not given. ``schedules``: it is `roost scheduler` or a
    conductor, which may have no ledger. ``cell``: that of a cell's conductor.
    """

    source: Source
    listening: Listening
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


class Check(NamedTuple, Generic[T]):
    """A check by name. ``run`` says what is true of a deployment, or of an agent; it changes nothing."""

    name: str
    run: Callable[[T], Iterable[Verdict]]


def run_checks(checks: Sequence[Check[T]], checked: T) -> Iterator[Finding]:
    """Make all checks, in their order. An error in one is what it has found."""
    for check in checks:
        try:
            for verdict in check.run(checked):
                yield Finding(check.name, verdict.level, masked(verdict.says), verdict.change)
        except NotKnown as error:
            yield Finding(check.name, "skip", f"not checked: {error}")
        except OperatorError as error:
            yield Finding(check.name, "fail", masked(str(error)), "see the message")
        except Exception as error:
            text = f"the check itself failed: {type(error).__name__}: {error}"
            yield Finding(check.name, "fail", masked(text), "tell the authors of Roost")
