"""The identity of a database: a uuid, made with its tables, and an incarnation, which a restore raises.

A database and all its backups have the same uuid. After a restore the database continues from an older state,
so the numbers of later commits name other changes than before. Clients that store such a number store the
identity beside it, and notice the restore by the incarnation.
"""

import uuid
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.storage.errors import DatabaseDamaged
from roost.storage.schema import EXACT

TABLE = "database_identity"

_THE_ROW = 1
"""The key of the table's only row."""


class DatabaseIdentity(NamedTuple):
    """The identity. ``uuid``: drawn with the tables. ``incarnation``: 1, until a restore raises it."""

    uuid: str
    incarnation: int

    def __str__(self) -> str:
        return f"{self.uuid}.{self.incarnation}"


def identity_table(metadata: sa.MetaData) -> sa.Table:
    """Declare the table among those of a room. Rooms that share a database share the table."""
    return sa.Table(
        TABLE,
        metadata,
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("incarnation", sa.BigInteger, nullable=False),
        **EXACT,
    )


_identity = identity_table(sa.MetaData())


def create_identity(connection: Connection) -> None:
    """Make the table and draw the uuid, unless another room's migration has done so."""
    _identity.create(connection, checkfirst=True)
    if connection.scalar(sa.select(sa.func.count()).select_from(_identity)) == 0:
        row = {"id": _THE_ROW, "uuid": str(uuid.uuid4()), "incarnation": 1}
        connection.execute(sa.insert(_identity), row)


def has_identity(connection: Connection) -> bool:
    """Return whether the tables are new enough to have an identity."""
    return sa.inspect(connection).has_table(TABLE)


def read_identity(connection: Connection) -> DatabaseIdentity:
    """Read the identity of a database.

    Raises:
        DatabaseDamaged: the row is missing.
    """
    row = connection.execute(sa.select(_identity.c.uuid, _identity.c.incarnation)).one_or_none()
    if row is None:
        raise DatabaseDamaged(f"table {TABLE} is empty: restore a backup of the database")
    return DatabaseIdentity(*row)


def raised_incarnation(earlier: int, now: float) -> int:
    """Return the incarnation of a database that is restored at ``now`` (seconds since the epoch).

    It is greater than ``earlier``. It is the time in seconds where that is greater, so that two independent
    restores of one backup get different incarnations.
    """
    return max(earlier + 1, int(now))


def set_incarnation(connection: Connection, incarnation: int) -> None:
    """Write the incarnation that a restore gives."""
    connection.execute(sa.update(_identity).values(incarnation=incarnation))
