"""The cells that a process has open follow the mappings of the API database."""

import asyncio
from pathlib import Path

import pytest
import structlog

from roost.process.option_source import Source
from roost.state.api_database.cell_mappings import (
    CellMapping,
    map_unknown_cell,
    section_of,
    write_cell_mappings,
)
from roost.state.api_database.open_cells import OpenCells
from roost.state.api_database.tables import SCHEMA
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
        assert await api.write(map_unknown_cell(CellMapping("a", section_of("a"))))
        assert not await api.write(map_unknown_cell(CellMapping("a", "other")))
        await api.write(write_cell_mappings((CellMapping("nowhere", section_of("nowhere")),)))
        await cells.refresh()
        assert set(names) == {"a"}, "the configuration does not say where the other one is"
        before = cells["a"]
        assert await before.every() == []
        await cells.refresh()
        assert cells["a"] is before
        await api.write(
            write_cell_mappings((CellMapping("a", database_url=f"sqlite:///{tmp_path / 'b.db'}"),))
        )
        await cells.refresh()
        assert str(cells["a"].database).endswith("b.db")
        with pytest.raises(DatabaseUnavailable, match="is closed"):
            await before.every()
        await cells.close()
        await api.close()

    asyncio.run(run())


def test_section_that_is_added_later_is_seen(tmp_path: Path) -> None:
    config = tmp_path / "roost.conf"
    config.write_text("")

    async def run() -> None:
        api = Database(f"sqlite:///{tmp_path / 'api.db'}")
        SCHEMA.prepare(api)
        cells = OpenCells(api, Source((str(config),)))
        await api.write(map_unknown_cell(CellMapping("a", section_of("a"))))
        with structlog.testing.capture_logs() as logs:
            await cells.refresh()
            await cells.refresh()
        assert not cells
        assert [each["cell"] for each in logs] == ["a"], "it is told once"
        config.write_text(f"[cell_a]\nconnection = sqlite:///{tmp_path / 'a.db'}\n")
        await cells.refresh()
        assert [*cells] == ["a"]
        await cells.close()
        await api.close()

    asyncio.run(run())


def test_look_that_takes_long_undoes_no_later_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        api = Database(f"sqlite:///{tmp_path / 'api.db'}")
        SCHEMA.prepare(api)
        cells = OpenCells(api, None)
        read, has_read, go = api.read, asyncio.Event(), asyncio.Event()

        async def slow(work, **how):
            found = await read(work, **how)
            if not has_read.is_set():
                has_read.set()
                await go.wait()
            return found

        monkeypatch.setattr(api, "read", slow)
        await api.write(
            write_cell_mappings((CellMapping("a", database_url=f"sqlite:///{tmp_path / 'a.db'}"),))
        )
        first = asyncio.create_task(cells.refresh())
        await has_read.wait()
        await api.write(
            write_cell_mappings((CellMapping("b", database_url=f"sqlite:///{tmp_path / 'b.db'}"),))
        )
        second = asyncio.create_task(cells.refresh())
        # It may wait for the first one.
        await asyncio.wait({second}, timeout=0.3)
        go.set()
        await asyncio.gather(first, second)
        assert sorted(cells) == ["a", "b"]
        await cells.close()
        await api.close()

    asyncio.run(run())
