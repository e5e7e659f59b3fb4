"""Leases of the cell's conductors and of the sessions of its hosts."""

from alembic import op

from roost.state.leases import create_leases

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_leases(op.get_bind())
