"""Server groups, and the instances that were requested for each."""

import sqlalchemy as sa
from alembic import op

from roost.storage import EXACT

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # MariaDB commits each step, so an interrupted migration continues here.
    op.create_table(
        "server_groups",
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("policy", sa.String(length=255), nullable=False),
        sa.Column("max_server_per_host", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("server_groups_by_project", "server_groups", ["project_id", "uuid"], if_not_exists=True)
    op.create_table(
        "server_group_members",
        sa.Column("instance_uuid", sa.String(length=36), nullable=False),
        sa.Column("group_uuid", sa.String(length=255), nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index(
        "server_group_members_by_group", "server_group_members", ["group_uuid"], if_not_exists=True
    )
