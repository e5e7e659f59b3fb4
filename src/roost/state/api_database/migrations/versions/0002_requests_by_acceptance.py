"""An index of build requests by acceptance: they are read by page, in this order."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "build_requests_by_acceptance", "build_requests", ["accepted_at", "request_id"], if_not_exists=True
    )
