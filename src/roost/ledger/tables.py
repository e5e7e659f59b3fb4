"""The tables of the ledger: the commits, and the state that they add up to.

The state tables can be queried with SQL. Integer keys are the numbers in the changes (a provider's id is its
row in every fleet). The commands enforce all rules; checks, and foreign keys where few rows are written, are
a second line of defence. Times are seconds since the epoch.
"""

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT, Schema, identity_table

metadata = sa.MetaData()

UUID = sa.String(36)
NAME = sa.String(255)
# SQLite's INTEGER key has 64 bits too, and is the table's own order: BIGINT would be an index beside it.
SEQUENCE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")

commits = sa.Table(
    "commits",
    metadata,
    sa.Column("seq", SEQUENCE, primary_key=True, autoincrement=False),
    # The token of the append, unique to each: a random text, and a counter of the process.
    sa.Column("writer", UUID, nullable=False),
    sa.Column("committed_at", sa.Double, nullable=False),
    sa.Column("changes", BIG_TEXT, nullable=False),
    **EXACT,
)

resource_classes = sa.Table(
    "resource_classes",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", NAME, nullable=False, unique=True),
    **EXACT,
)

traits = sa.Table(
    "traits",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", NAME, nullable=False, unique=True),
    **EXACT,
)

resource_providers = sa.Table(
    "resource_providers",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("uuid", UUID, nullable=False, unique=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("parent_id", sa.Integer, sa.ForeignKey("resource_providers.id"), index=True),
    sa.Column("generation", sa.BigInteger, nullable=False),
    sa.Column("changed_at", sa.Double, nullable=False),
    **EXACT,
)

inventories = sa.Table(
    "inventories",
    metadata,
    sa.Column("provider_id", sa.Integer, sa.ForeignKey("resource_providers.id"), primary_key=True),
    sa.Column("resource_class_id", sa.Integer, sa.ForeignKey("resource_classes.id"), primary_key=True),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("reserved", sa.Integer, nullable=False),
    sa.Column("min_unit", sa.Integer, nullable=False),
    sa.Column("max_unit", sa.Integer, nullable=False),
    sa.Column("step_size", sa.Integer, nullable=False),
    sa.Column("allocation_ratio", sa.Double, nullable=False),
    sa.CheckConstraint("total > 0 AND reserved >= 0 AND step_size > 0", name="sensible_inventory"),
    **EXACT,
)

provider_traits = sa.Table(
    "provider_traits",
    metadata,
    sa.Column("provider_id", sa.Integer, sa.ForeignKey("resource_providers.id"), primary_key=True),
    sa.Column("trait_id", sa.Integer, sa.ForeignKey("traits.id"), primary_key=True),
    **EXACT,
)

provider_aggregates = sa.Table(
    "provider_aggregates",
    metadata,
    sa.Column("provider_id", sa.Integer, sa.ForeignKey("resource_providers.id"), primary_key=True),
    sa.Column("aggregate_uuid", UUID, primary_key=True),
    **EXACT,
)

# Consumers outside of groups cost nothing in the index. MariaDB has no partial indexes.
_MEMBERS = sa.text("server_group IS NOT NULL")
_MEMBERS_ONLY: dict[str, Any] = {"postgresql_where": _MEMBERS, "sqlite_where": _MEMBERS}

consumers = sa.Table(
    "consumers",
    metadata,
    # Ids rise from commit to commit, so that the rows of new consumers and their allocations are adjacent.
    # Ordered by uuid, each would be on a separate page: forty more pages to write for forty claims.
    sa.Column("id", SEQUENCE, primary_key=True, autoincrement=False),
    sa.Column("uuid", UUID, nullable=False, unique=True),
    sa.Column("project_id", NAME, nullable=False),
    sa.Column("user_id", NAME, nullable=False),
    sa.Column("consumer_type", NAME, nullable=False),
    sa.Column("generation", sa.BigInteger, nullable=False),
    sa.Column("changed_at", sa.Double, nullable=False),
    sa.Column("server_group", NAME),
    # JSON of `roost.model.assignment.Assignment`.
    sa.Column("assignment", BIG_TEXT),
    sa.Index("consumers_by_owner", "project_id", "user_id"),
    sa.Index("consumers_by_group", "server_group", **_MEMBERS_ONLY),
    **EXACT,
)

allocations = sa.Table(
    "allocations",
    metadata,
    # No foreign keys: their checks, nine for each claim, took a quarter of its time on PostgreSQL. The writer
    # has validated the rows on its fleet at the head, and `roost db verify` finds dangling references.
    sa.Column("consumer_id", SEQUENCE, primary_key=True),
    sa.Column("provider_id", sa.Integer, primary_key=True),
    sa.Column("resource_class_id", sa.Integer, primary_key=True),
    sa.Column("used", sa.Integer, nullable=False),
    sa.CheckConstraint("used > 0", name="something_used"),
    sa.Index("allocations_by_provider", "provider_id", "resource_class_id"),
    **EXACT,
)

operator_word = sa.Table(
    # At most one row: the mark of the operator's word that was announced last.
    "operator_word",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("mark", sa.BigInteger, nullable=False),
    **EXACT,
)

waiting_writers = sa.Table(
    "waiting_writers",
    metadata,
    # Unique to each turn request: the token of the append after whose conflict the writer requests its turn.
    sa.Column("writer", UUID, primary_key=True),
    sa.Column("asked_at", sa.Double, nullable=False),
    **EXACT,
)

database_identity = identity_table(metadata)

SCHEMA = Schema("ledger", Path(__file__).parent / "migrations", metadata)
