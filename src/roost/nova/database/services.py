"""The compute services of a cell: their signs of life, and those that an operator has disabled."""

import datetime
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.nova.database.tables import services
from roost.storage import short_read, transaction

COMPUTE = "nova-compute"
"""The binary of compute services."""


class ServiceRow(NamedTuple):
    """A compute service.

    ``reports`` is the number of its reports so far. ``seen`` is the time of the last, or when the row was
    created, by the clock of the conductor that wrote it.
    """

    host: str
    reports: int
    seen: datetime.datetime | None
    version: int


@transaction
def read_services(connection: Connection) -> list[ServiceRow]:
    """Return all compute services of a cell, without those that are forced down."""
    return [
        ServiceRow(host, count, seen, version or 0)
        for host, count, seen, version in connection.execute(_SERVICES)
    ]


@short_read
def read_disabled(connection: Connection) -> frozenset[str]:
    """Return the hosts whose compute service is disabled or forced down: they get no new instances."""
    return frozenset(connection.execute(_DISABLED).scalars())


_COMPUTES = services.c.deleted == 0, services.c.binary == COMPUTE, services.c.host.is_not(None)
_SERVICES = sa.select(
    services.c.host,
    services.c.report_count,
    sa.func.coalesce(services.c.last_seen_up, services.c.created_at, type_=sa.DateTime),
    services.c.version,
).where(*_COMPUTES, sa.func.coalesce(services.c.forced_down, sa.false()) == sa.false())
_DISABLED = sa.select(services.c.host).where(
    *_COMPUTES, sa.or_(services.c.disabled == sa.true(), services.c.forced_down == sa.true())
)
