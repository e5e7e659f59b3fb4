"""Waiting requests: hints are lists, and the image and the requested host have types of their own."""

import json

import sqlalchemy as sa
from alembic import op

from roost.model.stored_spec import current_spec

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_requests = sa.table("build_requests", sa.column("request_id", sa.String), sa.column("request", sa.Text))


def upgrade() -> None:
    connection = op.get_bind()
    for request_id, text in connection.execute(sa.select(_requests)).all():
        try:
            request = json.loads(text)
            request["spec"] = current_spec(request["spec"])
        except (ValueError, KeyError, TypeError):
            continue  # Nobody could read it before either; it is logged whenever it is met.
        connection.execute(
            sa.update(_requests)
            .where(_requests.c.request_id == request_id)
            .values(request=json.dumps(request, ensure_ascii=False, separators=(",", ":")))
        )
