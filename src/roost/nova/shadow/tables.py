"""The table of comparisons, in the bridge's own database."""

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT, Schema

metadata = sa.MetaData()

NAME = sa.String(255)
BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")

comparisons = sa.Table(
    "nova_comparisons",
    metadata,
    sa.Column("run", sa.String(36), primary_key=True),
    sa.Column("instance", NAME, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("request_id", NAME),
    sa.Column("project", NAME),
    sa.Column("flavor", NAME),
    sa.Column("outcome", sa.String(16), nullable=False),
    sa.Column("late", sa.Boolean, nullable=False),
    sa.Column("cause", NAME, nullable=False),
    sa.Column("reason", BIG_TEXT, nullable=False),
    sa.Column("roost_host", NAME),
    sa.Column("nova_host", NAME),
    sa.Column("roost_weight", sa.Double),
    sa.Column("nova_weight", sa.Double),
    sa.Column("seconds", sa.Double, nullable=False),
    sa.Index("nova_comparisons_by_time", "at"),
    **EXACT,
)
"""Comparisons, one row for each instance of a call: see `roost.nova.shadow.comparison.Comparison`."""

SCHEMA = Schema("nova_shadow", Path(__file__).parent / "migrations", metadata)
