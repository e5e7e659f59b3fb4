"""The conductors' tables in the API database at revision 0014, with which their history begins."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGBLOB, LONGTEXT

from roost.storage import EXACT
from roost.storage.identity import create_identity

revision = "0014"
down_revision = None
branch_labels = None
depends_on = None

BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
BIG_BYTES = sa.LargeBinary().with_variant(LONGBLOB(), "mysql", "mariadb")


def upgrade() -> None:
    create_identity(op.get_bind())
    op.create_table(
        "audit_findings",
        sa.Column("number", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("finding", BIG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("number"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "audit_repairs",
        sa.Column("number", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("by", sa.String(255), nullable=False),
        sa.Column("finding", BIG_TEXT, nullable=False),
        sa.Column("result", BIG_TEXT),
        sa.PrimaryKeyConstraint("number"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "audit_state",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("begun", sa.BigInteger, nullable=False),
        sa.Column("ended", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.Double, nullable=False),
        sa.Column("asked", sa.Boolean, nullable=False),
        sa.Column("permitted", sa.BigInteger, nullable=False),
        sa.Column("report", BIG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "build_requests",
        sa.Column("request_id", sa.String(255), nullable=False),
        sa.Column("request", BIG_TEXT, nullable=False),
        sa.Column("accepted_at", sa.Double, nullable=False),
        sa.Column("owner", sa.String(36)),
        sa.Column("owner_epoch", sa.BigInteger, server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("request_id"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index(
        "build_requests_by_acceptance", "build_requests", ["accepted_at", "request_id"], if_not_exists=True
    )
    op.create_index(
        "build_requests_by_owner",
        "build_requests",
        ["owner", "accepted_at", "request_id", "owner_epoch"],
        if_not_exists=True,
    )
    op.create_table(
        "cell_mappings",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("database_url", sa.Text()),
        sa.Column("section", sa.String(255)),
        sa.PrimaryKeyConstraint("name"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "deleted_host_aggregates",
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "host_aggregate_members",
        sa.Column("aggregate_uuid", sa.String(36), nullable=False),
        sa.Column("node", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("aggregate_uuid", "node"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("host_aggregate_members_by_node", "host_aggregate_members", ["node"], if_not_exists=True)
    op.create_table(
        "host_aggregates",
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("metadata", BIG_TEXT, nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("uuid"),
        sa.UniqueConstraint("name"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "host_aggregates_version",
        sa.Column("id", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "instance_deletions",
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("owner", sa.String(36)),
        sa.Column("by_user", sa.String(255)),
        sa.Column("by_project", sa.String(255)),
        sa.Column("by_request", sa.String(255)),
        sa.PrimaryKeyConstraint("instance_uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index(
        "instance_deletions_by_owner", "instance_deletions", ["owner", "instance_uuid"], if_not_exists=True
    )
    op.create_table(
        "late_claims",
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("looks", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("holder", sa.String(36), nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("counter", sa.BigInteger, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("service_version", sa.Integer, nullable=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("name"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("leases_by_holder", "leases", ["holder"], if_not_exists=True)
    op.create_table(
        "node_journal",
        sa.Column("journal", sa.String(36), nullable=False),
        sa.Column("batch", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("last", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("base", sa.Boolean, nullable=False),
        sa.Column("body", BIG_BYTES, nullable=False),
        sa.PrimaryKeyConstraint("journal", "batch"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("node_journal_by_time", "node_journal", ["at"], if_not_exists=True)
    op.create_table(
        "past_mappings",
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("cell", sa.String(255)),
        sa.Column("request_id", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("accepted_at", sa.Double),
        sa.Column("deleted_at", sa.Double, nullable=False),
        sa.Column("by_user", sa.String(255)),
        sa.Column("by_project", sa.String(255)),
        sa.Column("by_request", sa.String(255)),
        sa.Column("ended_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("past_mappings_by_end", "past_mappings", ["ended_at"], if_not_exists=True)
    op.create_table(
        "server_group_members",
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("group_uuid", sa.String(255), nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index(
        "server_group_members_by_group", "server_group_members", ["group_uuid"], if_not_exists=True
    )
    op.create_table(
        "server_groups",
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("policy", sa.String(255), nullable=False),
        sa.Column("max_server_per_host", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("server_groups_by_project", "server_groups", ["project_id", "uuid"], if_not_exists=True)
    op.create_table(
        "host_mappings",
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("cell", sa.String(255), nullable=False),
        sa.ForeignKeyConstraint(
            ["cell"],
            ["cell_mappings.name"],
        ),
        sa.PrimaryKeyConstraint("host"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "instance_mappings",
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("cell", sa.String(255)),
        sa.Column("epoch", sa.BigInteger, server_default="0", nullable=False),
        sa.Column("request_id", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("deleted", sa.Boolean, nullable=False),
        sa.Column("accepted_at", sa.Double),
        sa.ForeignKeyConstraint(
            ["cell"],
            ["cell_mappings.name"],
        ),
        sa.PrimaryKeyConstraint("instance_uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index(
        "instance_mappings_by_project",
        "instance_mappings",
        ["project_id", "instance_uuid"],
        if_not_exists=True,
    )
    op.create_index(
        "instance_mappings_by_request",
        "instance_mappings",
        ["request_id", "instance_uuid"],
        if_not_exists=True,
    )
    if op.get_bind().scalar(sa.text("SELECT count(*) FROM host_aggregates_version")) == 0:
        op.execute("INSERT INTO host_aggregates_version VALUES (1, 0)")
