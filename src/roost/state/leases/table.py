"""The table of leases, which the API database and each cell's database have."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.storage import EXACT

TABLE = "leases"


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


def create_leases(connection: Connection) -> None:
    """Create the table in a migration, unless it exists."""
    leases.create(connection, checkfirst=True)


def holders() -> sa.Select[tuple[str]]:
    """Return the query of the nonces of all holders of leases, for use within a statement."""
    return sa.select(leases.c.holder).where(leases.c.holder != "")
