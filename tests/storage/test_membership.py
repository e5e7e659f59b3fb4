"""Conditions on lists: the same rows on each database, by a statement whose text stays the same."""

import pytest
import sqlalchemy as sa

from roost.storage import Database, one_of, one_of_constants
from support.things import put, using

NAMES = sa.Table(
    "names",
    sa.MetaData(),
    sa.Column("name", sa.String(3)),
    sa.Column("number", sa.Integer),
    prefixes=["TEMPORARY"],
)
NAMED = sa.select(NAMES.c.name).where(one_of(NAMES.c.name, "some")).order_by(NAMES.c.name)
NUMBERED = sa.select(NAMES.c.name).where(one_of(NAMES.c.number, "some")).order_by(NAMES.c.name)
CONSTANT = sa.select(NAMES.c.name).where(one_of_constants(NAMES.c.name, {"abc", "a"})).order_by(NAMES.c.name)


def test_a_column_is_one_of_the_values_of_a_parameter(place):
    def work(connection: sa.Connection) -> list[object]:
        connection.execute(sa.schema.CreateTable(NAMES))
        rows = [{"name": name, "number": number} for number, name in enumerate(("a", "abc", "B", "%"))]
        connection.execute(sa.insert(NAMES), rows)

        def found(query: sa.Select[tuple[str]], *some: object) -> list[str]:
            return list(connection.execute(query, {"some": some}).scalars())

        return [
            found(NAMED, "abc", "a", "no such"),
            # Longer than the column: it is not cut to something that is there.
            found(NAMED, "abcd"),
            found(NAMED, "%"),
            found(NAMED),
            found(NUMBERED, 1, 3),
            list(connection.execute(CONSTANT).scalars()),
        ]

    async def use(database: Database) -> None:
        assert await database.write(work) == [["a", "abc"], [], ["%"], [], ["%", "abc"], ["a", "abc"]]

    using(place, use)


def test_the_text_on_postgresql_does_not_hang_on_the_number_of_values(servers, tmp_path):
    texts: set[str] = set()

    def heard(_: object, __: object, statement: str, *___: object) -> None:
        if "ANY" in statement:
            texts.add(statement)

    async def use(database: Database) -> None:
        sa.event.listen(sa.Engine, "before_cursor_execute", heard)
        try:
            await database.write(put(1))
            await database.write(work)
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", heard)

    def work(connection: sa.Connection) -> None:
        connection.execute(sa.schema.CreateTable(NAMES))
        for many in range(4):
            connection.execute(NAMED, {"some": ["a"] * many})

    with servers.place("postgresql", tmp_path) as place:
        using(place, use)
    assert len(texts) == 1


@pytest.mark.parametrize("word", ["", "a b", "a'b", "1"])
def test_constants_are_words(word):
    with pytest.raises(ValueError, match="not a word"):
        one_of_constants(NAMES.c.name, [word])
