"""Owners of requests, mappings from the acceptance of a request, deletions as work, and leases."""

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from roost.state.leases import create_leases
from roost.storage import EXACT, in_batches

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

UUID = sa.String(length=36)
NAME = sa.String(length=255)

FACTS = ("request_id", "project_id", "user_id")

ANYWHERE = -1
"""The epoch of a mapping whose instance may be in any cell: an earlier version wrote the mapping last."""

_requests = sa.table("build_requests", sa.column("request", sa.Text))
_mappings = sa.table(
    "instance_mappings",
    *(
        sa.column(name)
        for name in ("instance_uuid", "epoch", "request_id", "project_id", "user_id", "deleted")
    ),
)


def upgrade() -> None:
    # MariaDB commits each step, so an interrupted migration continues here.
    connection = op.get_bind()
    create_leases(connection)
    _add("build_requests", sa.Column("owner", UUID))
    _add("build_requests", sa.Column("owner_epoch", sa.BigInteger(), nullable=False, server_default="0"))
    _add("instance_mappings", sa.Column("epoch", sa.BigInteger(), nullable=False, server_default="0"))
    for name in FACTS:
        _add("instance_mappings", sa.Column(name, NAME, nullable=False, server_default=""))
    _add(
        "instance_mappings",
        sa.Column("deleted", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    with op.batch_alter_table("instance_mappings") as table:
        table.alter_column("cell", existing_type=NAME, nullable=True)
        for name in FACTS:
            table.alter_column(name, existing_type=NAME, existing_nullable=False, server_default=None)
        table.alter_column(
            "deleted", existing_type=sa.Boolean(), existing_nullable=False, server_default=None
        )
    columns = {
        "instance_mappings_by_project": ["project_id", "instance_uuid"],
        "instance_mappings_by_request": ["request_id", "instance_uuid"],
    }
    for index, names in columns.items():
        op.create_index(index, "instance_mappings", names, if_not_exists=True)
    op.create_table(
        "instance_deletions",
        sa.Column("instance_uuid", UUID, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("owner", UUID),
        sa.PrimaryKeyConstraint("instance_uuid"),
        if_not_exists=True,
        **EXACT,
    )
    for request in _waiting(connection):
        _map(connection, request)


def _add(table: str, column: sa.Column[Any]) -> None:
    existing = {each["name"] for each in sa.inspect(op.get_bind()).get_columns(table)}
    if column.name not in existing:
        op.add_column(table, column)


def _waiting(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    for text in connection.execute(sa.select(_requests.c.request)).scalars().all():
        try:
            yield json.loads(text)
        except ValueError:
            continue  # Nobody could read it before either; it is logged whenever it is met.


def _map(connection: sa.Connection, request: dict[str, Any]) -> None:
    """Map the instances of a waiting request. Some may be in cells already."""
    try:
        facts = {
            "request_id": request["request_id"],
            "project_id": request["spec"]["project_id"],
            "user_id": request["spec"]["user_id"],
        }
        uuids = list(request["instances"])
    except (KeyError, TypeError):
        return
    for some in in_batches(uuids):
        named = sa.select(_mappings.c.instance_uuid).where(_mappings.c.instance_uuid.in_(some))
        known = set(connection.execute(named).scalars())
        rows = [
            {"instance_uuid": uuid, "epoch": ANYWHERE, "deleted": False, **facts}
            for uuid in some
            if uuid not in known
        ]
        if rows:
            connection.execute(sa.insert(_mappings), rows)
