"""Describes the tables of a database, to compare those of an export with those of upstream's migrations."""

from typing import Any

import sqlalchemy as sa


def schema_of(url: str) -> dict[str, Any]:
    """Return a description of all tables, in a fixed order."""
    inspector = sa.inspect(sa.create_engine(url, poolclass=sa.NullPool))
    found: dict[str, Any] = {}
    for table in inspector.get_table_names():
        found[table] = {
            "columns": {
                column["name"]: (str(column["type"]), column["nullable"], str(column.get("default")))
                for column in inspector.get_columns(table)
            },
            "key": sorted(inspector.get_pk_constraint(table)["constrained_columns"]),
            "unique": sorted(
                (str(each["name"]), each["column_names"]) for each in inspector.get_unique_constraints(table)
            ),
            "indexes": sorted(
                (str(each["name"]), each["column_names"], bool(each["unique"]))
                for each in inspector.get_indexes(table)
            ),
            "references": sorted(
                (each["constrained_columns"], each["referred_table"], each["referred_columns"])
                for each in inspector.get_foreign_keys(table)
            ),
        }
    return found
