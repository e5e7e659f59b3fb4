"""Texts compare exactly in every database, and none is cut."""

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DataError

from roost.storage import EXACT, Database
from support.things import using


def test_text_compares_exactly(place):
    names = ["a", "A", "a ", "á", "a\N{COMBINING ACUTE ACCENT}", "ﬁ", "fi", "\N{PILE OF POO}"]
    metadata = sa.MetaData()
    table = sa.Table("names", metadata, sa.Column("name", sa.String(255), primary_key=True), **EXACT)

    async def use(database: Database) -> None:
        database.write_now(metadata.create_all)
        database.write_now(
            lambda connection: connection.execute(sa.insert(table), [{"name": name} for name in names])
        )
        for name in names:
            found = sa.select(table.c.name).where(table.c.name == name)
            found_in = sa.select(table.c.name).where(table.c.name.in_([name, "b"]))
            for query in (found, found_in):
                assert database.read_now(lambda c, q=query: c.execute(q).scalars().all()) == [name]

    using(place, use)


def test_what_does_not_fit_is_refused_not_cut(place):
    metadata = sa.MetaData()
    table = sa.Table("names", metadata, sa.Column("name", sa.String(5), primary_key=True), **EXACT)

    async def use(database: Database) -> None:
        database.write_now(metadata.create_all)
        with pytest.raises(DataError):
            database.write_now(lambda connection: connection.execute(sa.insert(table), {"name": "longer"}))

    if place.kind != "sqlite":  # which knows no lengths
        using(place, use)
