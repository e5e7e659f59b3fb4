"""Indexes of requests and deletions by owner, and the instances for which a claim may come too late."""

import sqlalchemy as sa
from alembic import op

from roost.storage import EXACT

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # MariaDB commits each step, so an interrupted migration continues here.
    of_requests = ["owner", "accepted_at", "request_id", "owner_epoch"]
    op.create_index("build_requests_by_owner", "build_requests", of_requests, if_not_exists=True)
    of_deletions = ["owner", "instance_uuid"]
    op.create_index("instance_deletions_by_owner", "instance_deletions", of_deletions, if_not_exists=True)
    op.create_table(
        "late_claims",
        sa.Column("instance_uuid", sa.String(length=36), nullable=False),
        sa.Column("looks", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid"),
        if_not_exists=True,
        **EXACT,
    )
