"""When instances were accepted, who asked for their deletion, and both of instances that are gone.

A mapping of a request that waits gets the time of its acceptance. Of others nobody knows it any more.
"""

import sqlalchemy as sa
from alembic import op

from roost.storage import EXACT

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None
works_from = "0012"

UUID = sa.String(length=36)
NAME = sa.String(length=255)
BY = ("by_user", "by_project", "by_request")


def upgrade() -> None:
    connection = op.get_bind()
    _add("instance_mappings", sa.Column("accepted_at", sa.Double()))
    for name in BY:
        _add("instance_deletions", sa.Column(name, NAME))
    op.create_table(
        "past_mappings",
        sa.Column("instance_uuid", UUID, nullable=False),
        sa.Column("cell", NAME),
        sa.Column("request_id", NAME, nullable=False),
        sa.Column("project_id", NAME, nullable=False),
        sa.Column("user_id", NAME, nullable=False),
        sa.Column("accepted_at", sa.Double()),
        sa.Column("deleted_at", sa.Double(), nullable=False),
        *(sa.Column(name, NAME) for name in BY),
        sa.Column("ended_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("instance_uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("past_mappings_by_end", "past_mappings", ["ended_at"], if_not_exists=True)
    connection.execute(
        sa.text(
            "UPDATE instance_mappings SET accepted_at = (SELECT accepted_at FROM build_requests"
            " WHERE build_requests.request_id = instance_mappings.request_id)"
            " WHERE accepted_at IS NULL AND request_id IN (SELECT request_id FROM build_requests)"
        )
    )


def _add(table: str, column: sa.Column[object]) -> None:
    # SQLite has no ADD COLUMN IF NOT EXISTS, and MariaDB commits each statement that changes a table.
    if column.name not in {each["name"] for each in sa.inspect(op.get_bind()).get_columns(table)}:
        op.add_column(table, column)
