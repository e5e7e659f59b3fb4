"""The tables that an export makes are those that OpenStack Placement's own migrations leave."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from exchange.asking import Upstream
from exchange.exchanging import exported, imported, prepared
from support.databases import Servers


def schema_of(url: str) -> dict[str, Any]:
    """Everything that the database says about its tables, in an order that does not matter."""
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


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "mariadb"])
def test_tables_are_those_of_upstream(kind: str, servers: Servers, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("source", "roost", "back")]
    for folder in folders:
        folder.mkdir()
    with (
        servers.place(kind, folders[0]) as source,
        servers.place(kind, folders[1]) as roost,
        servers.place(kind, folders[2]) as back,
    ):
        with Upstream(source.url):
            pass
        imported(source.url, prepared(roost.url))
        exported(roost.url, back.url)
        theirs = schema_of(source.url)
        assert len(theirs) == 13
        assert schema_of(back.url) == theirs
