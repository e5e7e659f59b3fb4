"""The row of this scheduler in Nova's table of services, as nova-scheduler keeps its own.

A deleted row has its id in ``deleted``, and counts no more: the next start creates a new one.

Source: ``nova.service.Service.start``, ``nova.servicegroup.drivers.db`` and ``nova.db.main.api``, Nova 34.0.
"""

import datetime
import uuid
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.nova.database.services import COMPUTE
from roost.nova.database.tables import services
from roost.storage import short_read, transaction

SCHEDULER: Final = "nova-scheduler"
"""The binary of schedulers."""

TOPIC: Final = "scheduler"
"""The topic of schedulers."""


class SchedulerRow(NamedTuple):
    """The row of a scheduler. ``seen`` is the time of its last report; None: none, or it has ended."""

    id: int
    reports: int
    seen: datetime.datetime | None
    version: int


@short_read
def read_scheduler(connection: Connection, host: str) -> SchedulerRow | None:
    """Return the row of the scheduler of a host."""
    found = connection.execute(
        sa.select(services.c.id, services.c.report_count, services.c.last_seen_up, services.c.version).where(
            *_of(host)
        )
    ).one_or_none()
    return None if found is None else SchedulerRow(found[0], found[1], found[2], found[3] or 0)


@short_read
def read_control_version(connection: Connection) -> int:
    """Return the newest version of the services of the database that are no computes, 0 if there are none.

    Computes are upgraded after all other services, or before the scheduler in a cell of their own.
    """
    newest = sa.select(sa.func.max(services.c.version)).where(
        services.c.deleted == 0, services.c.binary != COMPUTE
    )
    return connection.execute(newest).scalar() or 0


@transaction
def create_scheduler(connection: Connection, host: str, version: int, now: datetime.datetime) -> int:
    """Create the row of a scheduler, and return its id.

    Raises:
        sqlalchemy.exc.IntegrityError: The host has a row of a scheduler.
    """
    created = connection.execute(
        sa.insert(services).values(
            uuid=str(uuid.uuid4()),
            host=host,
            binary=SCHEDULER,
            topic=TOPIC,
            version=version,
            report_count=1,
            last_seen_up=now,
            created_at=now,
            disabled=False,
            forced_down=False,
            deleted=0,
        )
    )
    assert created.inserted_primary_key is not None
    made: int = created.inserted_primary_key[0]
    return made


@transaction
def report_scheduler(
    connection: Connection, row: int, reports: int, version: int, now: datetime.datetime
) -> bool:
    """Add a report to a row, and return whether it existed and had ``reports`` of them.

    ``version``: of the services, 0 to leave it as it is.
    """
    values: dict[str, Any] = {"report_count": reports + 1, "last_seen_up": now, "updated_at": now}
    if version:
        values["version"] = version
    return _update(connection, row, reports, values)


@transaction
def end_scheduler(connection: Connection, row: int, reports: int, now: datetime.datetime) -> bool:
    """Have a row say that its service is down, and return whether it existed and had ``reports`` reports.

    Nova takes the time of creation where there was no report.
    """
    return _update(connection, row, reports, {"last_seen_up": None, "updated_at": now})


def _of(host: str) -> tuple[sa.ColumnElement[bool], ...]:
    return services.c.host == host, services.c.binary == SCHEDULER, services.c.deleted == 0


def _update(connection: Connection, row: int, reports: int, values: dict[str, Any]) -> bool:
    updated = connection.execute(
        sa.update(services)
        .where(services.c.id == row, services.c.deleted == 0, services.c.report_count == reports)
        .values(values)
    )
    return updated.rowcount == 1
