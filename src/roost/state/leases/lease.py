"""A lease, with its holder and the epoch of the holder's ownership, and the table of leases."""

from collections.abc import Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.storage import EXACT

VACANT = ""
"""The holder of a vacant lease."""

TABLE = "leases"
Stamp = tuple[object, ...]
"""A value that changes as long as work makes progress."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table of leases.

    ``name`` says what is leased: a process, such as ``conductor/host/pid``, or the session of a host.
    ``kind`` is the part of the name before the first slash. ``holder`` is a nonce that the holder drew at
    its start. ``epoch`` counts the holders from 1, ``counter`` is the number of this one's last renewal.
    ``host`` is the name of the machine that the holder runs on, ``since`` when it became the holder, in
    seconds since the epoch, for people to read.
    """

    name: str
    kind: str
    holder: str
    epoch: int
    counter: int
    host: str
    service_version: int
    since: float

    @property
    def stamp(self) -> tuple[str, int, int]:
        """The value that changes with each sign of life of the holder."""
        return self.holder, self.epoch, self.counter

    @property
    def vacant(self) -> bool:
        """True if the lease has no holder: the last one was seen to stand still."""
        return self.holder == VACANT


def leases_table(metadata: sa.MetaData) -> sa.Table:
    """Declare the table among those of a database."""
    return sa.Table(
        TABLE,
        metadata,
        sa.Column("name", sa.String(255), primary_key=True),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("holder", sa.String(36), nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("counter", sa.BigInteger, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("service_version", sa.Integer, nullable=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.Index("leases_by_holder", "holder"),
        **EXACT,
    )


leases = leases_table(sa.MetaData())
"""The table, for statements on any database that has it."""


def lease_of(row: Sequence[Any]) -> Lease:
    """Return the lease of a row with all columns of the table, in their order."""
    # The leases of all hosts are read every few seconds: by names of columns this takes five times as long.
    name, kind, holder, epoch, counter, host, service_version, since = row
    return Lease(
        name=name,
        kind=kind,
        holder=holder,
        epoch=epoch,
        counter=counter,
        host=host,
        service_version=service_version,
        since=since,
    )


def create_leases(connection: Connection) -> None:
    """Create the table in a migration, unless it exists."""
    leases.create(connection, checkfirst=True)


def holders() -> sa.Select[tuple[str]]:
    """Return the query of the nonces of all holders of leases, for use within a statement."""
    return sa.select(leases.c.holder).where(leases.c.holder != "")
