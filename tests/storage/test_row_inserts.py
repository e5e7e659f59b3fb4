"""Inserts of many rows: each value in the column of its name, several rows in one statement."""

import asyncio

import pytest
import sqlalchemy as sa

from roost.storage import Database, insert_rows
from roost.storage.row_inserts import insert_text

TABLE = sa.Table(
    "order",  # a word that has to be quoted
    sa.MetaData(),
    sa.Column("key", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(20)),
    sa.Column("weight", sa.Double),
    sa.Column("blob", sa.LargeBinary),
)
COLUMNS = ("key", "blob", "weight", "name")


@pytest.mark.parametrize("count", [0, 1, 225, 226, 700])
def test_every_value_goes_into_the_column_of_its_name(tmp_path, count):
    rows = [(key, bytes([key % 256]), key / 3, None if key % 7 else f"n{key}") for key in range(count)]
    statements = []

    def work(connection):
        TABLE.create(connection)
        sa.event.listen(
            connection,
            "before_cursor_execute",
            lambda _connection, _cursor, text, *_others: statements.append(text),
        )
        insert_rows(connection, TABLE, COLUMNS, rows)
        query = sa.select(*(TABLE.c[name] for name in COLUMNS)).order_by(TABLE.c.key)
        return [tuple(row) for row in connection.execute(query)]

    database = Database(f"sqlite:///{tmp_path / 'rows.sqlite'}")
    try:
        assert database.write_now(work) == rows
    finally:
        asyncio.run(database.close())
    assert len([text for text in statements if text.startswith("INSERT")]) == -(-count // 225)


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("sqlite://", 'INSERT INTO "order" ("key", name) VALUES (?, ?), (?, ?)'),
        ("postgresql+psycopg://", 'INSERT INTO "order" (key, name) VALUES (%s, %s), (%s, %s)'),
        ("mariadb+pymysql://", "INSERT INTO `order` (`key`, name) VALUES (%s, %s), (%s, %s)"),
    ],
)
def test_each_database_gets_its_own_marks_and_quotes(url, text):
    assert insert_text(TABLE, ("key", "name"), 2, sa.create_engine(url).dialect) == text
