"""The tables of the service: its resources, and the taken units of pools."""

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.dialects.mysql import LONGTEXT

from roost.storage import EXACT, Schema, identity_table

metadata = sa.MetaData()

BIG_TEXT = sa.Text().with_variant(LONGTEXT(), "mysql", "mariadb")

resources = sa.Table(
    "neighbour_resources",
    metadata,
    sa.Column("kind", sa.String(32), primary_key=True),
    sa.Column("uuid", sa.String(36), primary_key=True),
    # The network of a port or subnet; the profile of an accelerator request.
    sa.Column("parent", sa.String(36)),
    # The instance that uses it.
    sa.Column("instance", sa.String(255)),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("body", BIG_TEXT, nullable=False),
    sa.Index("neighbour_resources_by_parent", "parent"),
    sa.Index("neighbour_resources_by_instance", "instance"),
    **EXACT,
)
"""Resources. ``body``: the resource in JSON, as its API shows it, without ``revision``."""

units = sa.Table(
    "neighbour_units",
    metadata,
    sa.Column("pool", sa.String(36), primary_key=True),
    sa.Column("unit", sa.String(255), primary_key=True),
    sa.Column("holder", sa.String(36), nullable=False),
    sa.Index("neighbour_units_by_holder", "holder"),
    **EXACT,
)
"""Taken units of pools: addresses of a subnet, devices of a provider."""

database_identity = identity_table(metadata)

SCHEMA = Schema("neighbours", Path(__file__).parent / "migrations", metadata)
