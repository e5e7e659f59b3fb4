"""The identity of the database, and its incarnation."""

from alembic import op

from roost.storage.identity import create_identity

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_identity(op.get_bind())
