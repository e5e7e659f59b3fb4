"""One row for each attempt, pending until its build has ended; settings, details and reasons of runs."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.mysql import LONGBLOB, LONGTEXT

from roost.storage import EXACT

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

NAME = sa.String(255)
BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")
COMPRESSED = sa.LargeBinary().with_variant(LONGBLOB(), "mysql", "mariadb")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

OLD = sa.table(
    "attempts",
    *map(
        sa.column,
        ("number", "run", "request_id", "instance", "at", "host", "cell", "weight", "result", "reason"),
    ),
)
NEW = sa.table(
    "attempts_with_ends",
    *map(
        sa.column,
        (
            "run",
            "request_id",
            "instance",
            "ordinal",
            "at",
            "host",
            "cell",
            "weight",
            "result",
            "reason",
            "node",
            "finished_at",
        ),
    ),
)


def upgrade() -> None:
    # SQLite has no ADD COLUMN IF NOT EXISTS.
    existing = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("runs")}
    for name, kind in (("settings", sa.String(64)), ("details", BIG_TEXT), ("reasons", COMPRESSED)):
        if name not in existing:
            op.add_column("runs", sa.Column(name, kind))
    op.create_index("runs_by_project", "runs", ["project_id"], if_not_exists=True)
    op.create_table(
        "settings",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("settings", BIG_TEXT, nullable=False),
        if_not_exists=True,
        **EXACT,
    )
    _rewrite_attempts()
    identity = ["run", "instance", "ordinal"]
    op.create_index("attempts_by_identity", "attempts", identity, unique=True, if_not_exists=True)
    for index, column in (
        ("attempts_on_host", "host"),
        ("attempts_by_result", "result"),
        ("attempts_by_begin", "at"),
    ):
        op.create_index(index, "attempts", [column], if_not_exists=True)


def _rewrite_attempts() -> None:
    """Replace the table, unless an upgrade that was cut off has done so."""
    connection = op.get_bind()
    tables = set(sa.inspect(connection).get_table_names())
    if "attempts" in tables and _has_ordinals(connection):
        return
    if "attempts" in tables:
        op.create_table(
            "attempts_with_ends",
            sa.Column("number", NUMBER, primary_key=True),
            sa.Column("run", NAME, nullable=False),
            sa.Column("request_id", NAME, nullable=False),
            sa.Column("instance", NAME, nullable=False),
            sa.Column("at", sa.Double, nullable=False),
            sa.Column("host", NAME, nullable=False),
            sa.Column("cell", NAME, nullable=False),
            sa.Column("weight", sa.Double, nullable=False),
            sa.Column("result", sa.String(16), nullable=False),
            sa.Column("ordinal", sa.Integer, nullable=False),
            sa.Column("reason", BIG_TEXT),
            sa.Column("node", NAME, nullable=False),
            sa.Column("finished_at", sa.Double),
            sa.Column("version", sa.BigInteger),
            if_not_exists=True,
            **EXACT,
        )
        # An upgrade that was cut off has copied some: MariaDB commits each statement that makes tables.
        connection.execute(sa.delete(NEW))
        connection.execute(NEW.insert().from_select([column.name for column in NEW.columns], _ended()))
        op.drop_table("attempts")
    op.rename_table("attempts_with_ends", "attempts")


def _has_ordinals(connection: sa.Connection) -> bool:
    return any(column["name"] == "ordinal" for column in sa.inspect(connection).get_columns("attempts"))


def _ended() -> sa.Select[tuple[object, ...]]:
    """The attempts, each with its end.

    Until now the failure of a build was a row of its own after that of the claim, and an attempt that was
    written twice had two rows.
    """
    same = ("run", "instance", "host", "at", "weight", "result")
    once = sa.select(sa.func.min(OLD.c.number)).group_by(*(OLD.c[name] for name in same))
    began = sa.select(OLD).where(OLD.c.number.in_(once)).subquery("began")
    failed = (
        sa.select(sa.func.min(OLD.c.number))
        .where(
            OLD.c.run == began.c.run,
            OLD.c.instance == began.c.instance,
            OLD.c.host == began.c.host,
            OLD.c.result == "failed",
        )
        .correlate(began)
        .scalar_subquery()
    )
    end = OLD.alias("ending")
    claims = OLD.alias("claims")
    claimed = sa.exists(
        sa.select(claims.c.number).where(
            claims.c.run == began.c.run,
            claims.c.instance == began.c.instance,
            claims.c.host == began.c.host,
            claims.c.result == "claimed",
        )
    )
    is_claim = began.c.result == "claimed"
    return (
        sa.select(
            began.c.run,
            began.c.request_id,
            began.c.instance,
            sa.func.row_number().over(partition_by=(began.c.run, began.c.instance), order_by=began.c.number),
            began.c.at,
            began.c.host,
            began.c.cell,
            began.c.weight,
            sa.case((~is_claim, began.c.result), (end.c.number.is_not(None), "failed"), else_="pending"),
            sa.case((is_claim, end.c.reason), else_=began.c.reason),
            sa.literal("", sa.String),
            sa.case((is_claim, end.c.at), else_=began.c.at),
        )
        .select_from(began.outerjoin(end, end.c.number == failed))
        .where(sa.or_(began.c.result != "failed", ~claimed))
    )
