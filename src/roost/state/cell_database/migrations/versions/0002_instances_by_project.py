"""An index of instances by project: the list of a project's instances is read by page, in order of uuid."""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("instances_by_project", "instances", ["project_id", "uuid"], if_not_exists=True)
