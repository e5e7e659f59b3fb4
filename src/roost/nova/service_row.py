"""The row of this scheduler in Nova's table of services: its signs of life, by which Nova sees it as up.

The version of the row is that of the Nova that is served: the newest of its services that are no computes. A
higher one would keep a nova-scheduler from starting in this one's place.
"""

import asyncio
import datetime
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import structlog
from sqlalchemy.exc import IntegrityError

from roost.model.errors import OperatorError
from roost.nova.database.own_service import (
    SCHEDULER,
    SchedulerRow,
    create_scheduler,
    end_scheduler,
    read_control_version,
    read_scheduler,
    report_scheduler,
)
from roost.storage import Database, StorageError

_log = structlog.get_logger()

_LONGEST_INTERVAL = 1.5
"""The longest time between two reports of a service that lives, in report intervals."""


def _utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


class SchedulerHostTaken(OperatorError):
    """Another scheduler with this one's name is up. It would share the row and the queue."""

    def __init__(self, host: str, database: Database) -> None:
        super().__init__(
            f"{database}: the {SCHEDULER} of host {host} is up: stop it, or give this one another name with "
            f"[DEFAULT] host"
        )


class OwnServiceRow:
    """Writes the row of a scheduler.

    Args:
        database: that of ``[database] connection`` of nova.conf.
        host: the name of the scheduler.
        report_seconds: ``report_interval``, of this scheduler and of one with the same name.
        down_seconds: ``service_down_time``.
        sleep: waits for some seconds.
        clock: returns the time in UTC, without a zone as Nova's columns have it.
    """

    def __init__(
        self,
        database: Database,
        host: str,
        *,
        report_seconds: float,
        down_seconds: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], datetime.datetime] = _utc_now,
    ) -> None:
        self._database = database
        self._host = host
        self._report_seconds = report_seconds
        self._down = datetime.timedelta(seconds=down_seconds)
        self._sleep = sleep
        self._clock = clock
        self._row: int | None = None
        self._reports = 0
        self._failing = False
        self._writing: asyncio.Future[None] | None = None

    async def check(self) -> SchedulerRow | None:
        """Return the row of a scheduler of this name that has ended, None if there is none. It only reads.

        A row whose last report is recent is watched for longer than a report takes.

        Raises:
            SchedulerHostTaken: The scheduler of the row is up.
            StorageError: The database cannot be read.
        """
        first = await self._database.read(read_scheduler(self._host))
        if first is None or first.seen is None or abs(self._clock() - first.seen) > self._down:
            return first
        await self._sleep(_LONGEST_INTERVAL * self._report_seconds)
        later = await self._database.read(read_scheduler(self._host))
        if later is not None and later.reports != first.reports:
            raise SchedulerHostTaken(self._host, self._database)
        return later

    async def start(self, *, checked: bool = False) -> None:
        """Take over the row of a scheduler of this name that has ended, or create it, with a first report.

        Args:
            checked: the program has checked before that no other scheduler of this name is up. A row
                that is up is that of a worker process which this one replaces.

        Raises:
            SchedulerHostTaken: Another scheduler of this name is up, or the replaced worker has reported
                just now.
            StorageError: The database cannot be read or written.
        """
        row = await (self._database.read(read_scheduler(self._host)) if checked else self.check())
        version = await self._database.read(read_control_version())
        await self._to_its_end(self._take(row, version))

    async def _take(self, row: SchedulerRow | None, version: int) -> None:
        if row is None:
            try:
                self._row = await self._database.write(create_scheduler(self._host, version, self._clock()))
            except IntegrityError as error:
                raise SchedulerHostTaken(self._host, self._database) from error
            self._reports = 1
            return
        taken = await self._database.write(report_scheduler(row.id, row.reports, version, self._clock()))
        if not taken:
            raise SchedulerHostTaken(self._host, self._database)
        self._row, self._reports = row.id, row.reports + 1

    async def run(self) -> None:
        """Report every ``report_seconds`` until this is cancelled. Failures are logged, and tried again."""
        while self._row is not None:
            await self._sleep(self._report_seconds)
            try:
                await self.report()
            except StorageError as error:
                if not self._failing:
                    _log.warning("the service cannot be reported as up", error=str(error))
                self._failing = True
            else:
                if self._failing:
                    _log.info("the service is reported as up again")
                self._failing = False

    async def report(self) -> None:
        """Report once.

        A row that was deleted stays deleted until the next start, as with Nova's services. One that another
        process reports to is left to that one.

        Raises:
            StorageError: The database cannot be read or written.
        """
        if self._row is not None:
            version = await self._database.read(read_control_version())
            await self._to_its_end(self._report(self._row, version))

    async def _report(self, row: int, version: int) -> None:
        if await self._database.write(report_scheduler(row, self._reports, version, self._clock())):
            self._reports += 1
            return
        found = await self._database.read(read_scheduler(self._host))
        if found is None or found.id != row:
            _log.error(
                "the row of this service was deleted; the next start creates it again", host=self._host
            )
            self._row = None
        elif found.reports == self._reports + 1 and self._failing:
            self._reports = found.reports  # the report before took effect, and its confirmation was lost
        else:
            # The worker process that replaces this one, as after SIGHUP: the row is its own from now on.
            _log.warning("another process has taken over the row of this service", host=self._host)
            self._row = None

    async def stop(self) -> None:
        """Have the row say that the service is down. A failure is logged: then it is down after a while."""
        if self._writing is not None:
            await asyncio.gather(self._writing, return_exceptions=True)
        if self._row is None:
            return
        try:
            await self._database.write(end_scheduler(self._row, self._reports, self._clock()))
        except StorageError as error:
            _log.warning("the service stays up for Nova until its time is over", error=str(error))
        self._row = None

    async def _to_its_end(self, write: Coroutine[Any, Any, None]) -> None:
        """Carry out a write that goes on if its caller is cancelled: `stop` has to know the row."""
        self._writing = asyncio.ensure_future(write)
        await asyncio.shield(self._writing)
