"""The cells that a process has open follow the mappings of the API database."""

import asyncio
from pathlib import Path

import pytest

from roost.auth import Source
from roost.conductor.cell_mappings import CellMapping, KnowCell, MapCells, section_of
from roost.conductor.open_cells import OpenCells
from roost.conductor.tables import SCHEMA
from roost.storage import Database, DatabaseUnavailable


def test_cells_come_move_and_go(tmp_path: Path) -> None:
    config = tmp_path / "roost.conf"
    config.write_text(f"[cell_a]\nconnection = sqlite:///{tmp_path / 'a.db'}\n")

    async def run() -> None:
        api = Database(f"sqlite:///{tmp_path / 'api.db'}")
        SCHEMA.prepare(api)
        cells = OpenCells(api, Source((str(config),)))
        names = cells.keys()
        await cells.refresh()
        assert not names
        assert await api.write(KnowCell(CellMapping("a", section_of("a"))))
        assert not await api.write(KnowCell(CellMapping("a", "other")))
        await api.write(MapCells((CellMapping("nowhere", section_of("nowhere")),)))
        await cells.refresh()
        assert set(names) == {"a"}, "the configuration does not say where the other one is"
        before = cells["a"]
        assert await before.every() == []
        await cells.refresh()
        assert cells["a"] is before
        await api.write(MapCells((CellMapping("a", database_url=f"sqlite:///{tmp_path / 'b.db'}"),)))
        await cells.refresh()
        assert str(cells["a"].database).endswith("b.db")
        with pytest.raises(DatabaseUnavailable, match="is closed"):
            await before.every()
        await cells.close()
        await api.close()

    asyncio.run(run())
