"""The tables of a cell at revision 0014, with which their history begins."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT
from roost.storage.identity import create_identity

revision = "0014"
down_revision = None
branch_labels = None
depends_on = None

BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")


def upgrade() -> None:
    create_identity(op.get_bind())
    op.create_table(
        "build_attempts",
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("attempt", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("host", sa.String(255)),
        sa.Column("node", sa.String(36)),
        sa.Column("began", sa.Double, nullable=False),
        sa.Column("ended", sa.Double, nullable=False),
        sa.Column("result", sa.String(20), nullable=False),
        sa.Column("code", sa.String(255)),
        sa.Column("reason", BIG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid", "attempt"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "cell_hosts",
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("reason", BIG_TEXT),
        sa.Column("added_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("host"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "disabled",
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("reason", BIG_TEXT),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("kind", "name"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "fences",
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("fences_by_time", "fences", ["at"], if_not_exists=True)
    op.create_table(
        "held_hosts",
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("reason", BIG_TEXT, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("accepted", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("host"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "host_providers",
        sa.Column("provider", sa.String(36), nullable=False),
        sa.Column("root", sa.String(36), nullable=False),
        sa.PrimaryKeyConstraint("provider"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("host_providers_by_root", "host_providers", ["root"], if_not_exists=True)
    op.create_table(
        "host_tokens",
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("issued_at", sa.Double, nullable=False),
        sa.Column("is_used", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("digest"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("host_tokens_by_host", "host_tokens", ["host"], if_not_exists=True)
    op.create_table(
        "instances",
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("request_id", sa.String(255), nullable=False),
        sa.Column("run", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("flavor", sa.String(255), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("host", sa.String(255)),
        sa.Column("node", sa.String(36)),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("alternates", BIG_TEXT, nullable=False),
        sa.Column("reason", BIG_TEXT),
        sa.Column("changed_at", sa.Double, nullable=False),
        sa.Column("spec", BIG_TEXT),
        sa.Column("selection", BIG_TEXT),
        sa.Column("epoch", sa.BigInteger, server_default="0", nullable=False),
        sa.Column("owner", sa.String(36)),
        sa.Column("owner_epoch", sa.BigInteger, server_default="0", nullable=False),
        sa.Column("began", sa.Double, server_default="0", nullable=False),
        sa.Column("history", BIG_TEXT),
        sa.PrimaryKeyConstraint("uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("instances_by_project", "instances", ["project_id", "uuid"], if_not_exists=True)
    op.create_index("instances_by_request", "instances", ["request_id"], if_not_exists=True)
    op.create_index("instances_by_state", "instances", ["state", "host"], if_not_exists=True)
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
        "nodes",
        sa.Column("node", sa.String(36), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("nodename", sa.String(255), nullable=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.Column("facts", BIG_TEXT, nullable=False),
        sa.Column("revision", sa.BigInteger, server_default="1", nullable=False),
        sa.PrimaryKeyConstraint("node"),
        sa.UniqueConstraint("host", "nodename", name="nodes_by_name"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "orders",
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("attempt", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("host", "instance_uuid", "attempt"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "past_instances",
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("request_id", sa.String(255), nullable=False),
        sa.Column("run", sa.String(36), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("flavor", sa.String(255), nullable=False),
        sa.Column("history", BIG_TEXT),
        sa.Column("ended_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("past_instances_by_end", "past_instances", ["ended_at"], if_not_exists=True)
    op.create_table(
        "reshapes",
        sa.Column("root", sa.String(36), nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("root"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_table(
        "unknown_guests",
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("instance_uuid", sa.String(36), nullable=False),
        sa.Column("attempt", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("since", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("host", "instance_uuid", "attempt"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("unknown_guests_by_instance", "unknown_guests", ["instance_uuid"], if_not_exists=True)
