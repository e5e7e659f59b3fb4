"""The consumers that were drawn to unshelve instances.

Processes of before do not read the table. No instance is shelved while one of them runs
(`roost.model.service_version.SHELVES`).
"""

import sqlalchemy as sa
from alembic import op

from roost.storage import EXACT

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None
works_from = "0012"


def upgrade() -> None:
    op.create_table(
        "instance_consumers",
        sa.Column("consumer", sa.String(length=36), nullable=False),
        sa.Column("instance_uuid", sa.String(length=36), nullable=False),
        sa.PrimaryKeyConstraint("consumer"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index(
        "instance_consumers_by_instance", "instance_consumers", ["instance_uuid"], if_not_exists=True
    )
