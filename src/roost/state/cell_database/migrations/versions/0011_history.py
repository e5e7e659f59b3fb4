"""Histories of instances, which are kept when an instance is removed.

The history of an instance that is there begins with what its row and its attempts say: when each attempt
began and how it ended, and the present state.
"""

import json
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.model.secrets import redacted_text
from roost.storage import EXACT

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None
works_from = "0010"

UUID = sa.String(length=36)
NAME = sa.String(length=255)
BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")

AT_ONCE = 500
"""Instances that are read and written together."""

INSTANCES = sa.table(
    "instances",
    *(sa.column(name) for name in ("uuid", "state", "host", "node", "attempt", "reason")),
    *(sa.column(name) for name in ("changed_at", "began", "history")),
)
ATTEMPTS = sa.table(
    "build_attempts",
    *(sa.column(name) for name in ("instance_uuid", "attempt", "host", "node", "began", "ended")),
    *(sa.column(name) for name in ("result", "code", "reason")),
)


def upgrade() -> None:
    connection = op.get_bind()
    existing = {column["name"] for column in sa.inspect(connection).get_columns("instances")}
    if "history" not in existing:
        op.add_column("instances", sa.Column("history", BIG_TEXT))
    op.create_table(
        "past_instances",
        sa.Column("uuid", UUID, nullable=False),
        sa.Column("request_id", NAME, nullable=False),
        sa.Column("run", UUID, nullable=False),
        sa.Column("project_id", NAME, nullable=False),
        sa.Column("user_id", NAME, nullable=False),
        sa.Column("flavor", NAME, nullable=False),
        sa.Column("history", BIG_TEXT),
        sa.Column("ended_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("uuid"),
        if_not_exists=True,
        **EXACT,
    )
    op.create_index("past_instances_by_end", "past_instances", ["ended_at"], if_not_exists=True)
    _carry_over(connection)


def _carry_over(connection: sa.Connection) -> None:
    """Begin the histories of the instances that have none. An upgrade that was cut off has begun some."""
    write = (
        sa.update(INSTANCES)
        .where(INSTANCES.c.uuid == sa.bindparam("key"))
        .values(history=sa.bindparam("text"))
    )
    after = ""
    while True:
        found = connection.execute(
            sa.select(INSTANCES)
            .where(INSTANCES.c.uuid > after, INSTANCES.c.history.is_(None))
            .order_by(INSTANCES.c.uuid)
            .limit(AT_ONCE)
        ).all()
        if not found:
            return
        after = found[-1].uuid
        ended = connection.execute(
            sa.select(ATTEMPTS)
            .where(ATTEMPTS.c.instance_uuid.in_([row.uuid for row in found]))
            .order_by(ATTEMPTS.c.instance_uuid, ATTEMPTS.c.attempt)
        )
        attempts = {uuid: list(rows) for uuid, rows in groupby(ended, lambda row: row.instance_uuid)}
        connection.execute(
            write, [{"key": row.uuid, "text": _history(row, attempts.get(row.uuid, []))} for row in found]
        )


def _history(row: Any, attempts: list[Any]) -> str:
    lines: list[dict[str, object]] = []
    for each in attempts:
        if each.host is not None:
            lines.append(_assigned(each, each.attempt, each.began))
            lines.append(
                {"state": "failed", "at": each.ended, "reason": _reason(each.reason), "code": each.code}
            )
    if row.host is not None and all(each.attempt != row.attempt for each in attempts):
        lines.append(_assigned(row, row.attempt, row.began))
    if not lines or lines[-1]["state"] != row.state:
        lines.append({"state": row.state, "at": row.changed_at, "reason": _reason(row.reason)})
    return "".join(f"{json.dumps(each)}\n" for each in lines)


def _reason(text: str | None) -> str | None:
    return None if text is None else redacted_text(text)[:1000]


def _assigned(row: Any, attempt: int, at: float) -> dict[str, object]:
    return {
        "state": "assigned",
        "at": at,
        "attempt": attempt,
        "host": row.host,
        "node": row.node,
        "ordinal": attempt,
    }
