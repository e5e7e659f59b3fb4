"""The bridge finds the databases of Nova's cells."""

import asyncio

import pytest
import sqlalchemy as sa

from roost.nova.database import tables
from roost.nova.database.cells import CELL0, NovaCells
from roost.nova.database.urls import filled, usable_url
from roost.storage import Database, DatabaseMisconfigured, DatabaseUrl
from support.nova_clouds import NovaCloud, cell_uuid

TEMPLATE = "mysql+pymysql://nova:s%40cret@db.example:3307/nova_cell0?charset=utf8#f"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mysql+pymysql://a:b@c/d", "mysql+pymysql://a:b@c/d"),
        (
            "{scheme}://{username}:{password}@{hostname}:{port}/cell1?{query}#{fragment}",
            "mysql+pymysql://nova:s%40cret@db.example:3307/cell1?charset=utf8#f",
        ),
        ("mysql://{username}@other/{path}", "mysql://nova@other/nova_cell0"),
    ],
)
def test_template_is_filled_as_nova_fills_it(url: str, expected: str) -> None:
    assert filled(url, TEMPLATE) == expected


def test_template_of_several_servers_has_numbered_places() -> None:
    template = "mysql://u:p@one:1,v:q@two:2/x"
    url = "mysql://{username1}:{password1}@{hostname1}:{port1},{username2}:{password2}@{hostname2}:{port2}/y"
    assert filled(url, template) == "mysql://u:p@one:1,v:q@two:2/y"


@pytest.mark.parametrize(
    ("url", "template"),
    [
        ("mysql://{username}@h/d", ""),
        ("mysql://secret@{nonsense}/d", TEMPLATE),
        ("mysql://secret@{/d", TEMPLATE),
        ("mysql://secret@{}/d", TEMPLATE),
        ("mysql://secret@{hostname.x}/d", TEMPLATE),
    ],
)
def test_place_that_cannot_be_filled_is_an_error_without_secrets(url: str, template: str) -> None:
    with pytest.raises(DatabaseMisconfigured) as raised:
        filled(url, template)
    assert "secret" not in str(raised.value) and "s%40cret" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mysql+pymysql://a@b/c?charset=utf8&plugin=dbcounter", "mysql+pymysql://a@b/c?charset=utf8"),
        ("mysql+pymysql://a@b/c?plugin=dbcounter", "mysql+pymysql://a@b/c"),
        ("mysql://a@b/c?charset=utf8", "mysql+pymysql://a@b/c?charset=utf8"),
        ("postgresql+psycopg2://a@b/c", "postgresql+psycopg://a@b/c"),
        ("postgresql://a@b/c", "postgresql+psycopg://a@b/c"),
        ("sqlite:////a/b.db", "sqlite:////a/b.db"),
    ],
)
def test_url_is_for_the_driver_that_roost_has(url: str, expected: str) -> None:
    assert usable_url(url) == expected
    DatabaseUrl(expected)


def test_cells_come_and_go(cloud: NovaCloud) -> None:
    cloud.map_cell("cell3", database_connection="mysql://{hostname}/nova")
    mapped = tables.cell_mappings
    named_as = sa.update(mapped).where(mapped.c.name == "cell1")

    async def run() -> None:
        api = Database(cloud.urls["api"], read_only=True)
        cells = NovaCells(api, None)
        await cells.refresh()
        assert set(cells.cells) == {cell_uuid("cell1"), cell_uuid("cell2")}
        assert cells.cell0 is not None and cells.cell0.uuid == CELL0
        assert "[database] connection" in cells.unusable[cell_uuid("cell3")]
        before = cells.cells[cell_uuid("cell1")]
        cloud.write("api", named_as.values(name="renamed"))
        cloud.disable_cell("cell2")
        await cells.refresh()
        after = cells.cells[cell_uuid("cell1")]
        assert set(cells.cells) == {cell_uuid("cell1")}
        assert (after.name, after.database) == ("renamed", before.database)
        cloud.write("api", named_as.values(database_connection=cloud.urls["cell2"]))
        cloud.write("api", sa.update(mapped).values(database_connection=cloud.urls["cell2"]))
        await cells.refresh()
        assert str(cells.cells[cell_uuid("cell1")].database) == cloud.urls["cell2"]
        cloud.write("api", sa.update(mapped).values(database_connection="sqlite:////no/such/file"))
        await cells.refresh()
        assert not cells.cells and "no file" in cells.unusable[cell_uuid("cell1")]
        await cells.close()
        await api.close()

    asyncio.run(run())
