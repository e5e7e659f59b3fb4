"""Cells are added and removed while a conductor runs."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from roost.conductor.hosts.cells import CellRegistry
from roost.conductor.hosts.watch import ServiceWatch
from roost.conductor.words.words import Words
from roost.placement.service import PlacementService
from roost.process.option_source import Setting, Source
from roost.state.api_database.cell_mappings import CELL0, CellMapping, write_cell_mappings
from roost.state.api_database.host_mappings import CellInUse, NoSuchCell
from roost.state.api_database.open_cells import OpenCells
from roost.state.api_database.request_reads import Requests
from roost.state.cell_database.disabled import add_host_row
from roost.storage import Database
from roost.web.errors import BadRequest, Conflict
from support.ledgers import opened as opened_ledger


@asynccontextmanager
async def registry(directory):
    sections = {"cell0": "c0", "cell_a": "a", "other": "b", "cell_again": "a"}
    settings = [
        Setting(section, "connection", f"sqlite:///{directory}/{file}.db")
        for section, file in sections.items()
    ]
    api = Database(f"sqlite:///{directory}/api.db")
    Requests(api)
    await api.write(write_cell_mappings((CellMapping(CELL0, "cell0"),)))
    cells = OpenCells(api, Source((), tuple(settings)))
    await cells.refresh()
    async with opened_ledger(directory / "ledger.db") as [ledger]:
        words = Words(api, cells, PlacementService(ledger))
        try:
            yield cells, CellRegistry(api, cells, ServiceWatch(api, cells), words)
        finally:
            await cells.close()
        await api.close()


def test_cells_are_added_and_removed(tmp_path) -> None:
    async def run() -> None:
        async with registry(tmp_path) as (cells, known):
            added = await known.add("a", None)
            assert (added.mapping, added.counts is not None) == (CellMapping("a", "cell_a"), True)
            assert (await known.add("b", "other")).mapping.section == "other"
            assert [each.mapping.name for each in await known.list()] == ["a", "b", CELL0]
            assert sorted(cells) == ["a", "b", CELL0]
            await known.remove("b")
            assert sorted(cells) == ["a", CELL0]
            with pytest.raises(NoSuchCell):
                await known.remove("b")

    asyncio.run(run())


def test_what_is_refused_changes_nothing(tmp_path) -> None:
    async def run() -> None:
        async with registry(tmp_path) as (cells, known):
            await known.add("a", None)
            await cells["a"].write(add_host_row("h", 1.0))
            for refused, error, words in (
                (known.add("a", None), Conflict, "already"),
                (known.add("again", None), Conflict, "that of cell a"),
                (known.add("missing", None), BadRequest, r"set connection in \[cell_missing\]"),
                (known.remove("a"), CellInUse, "host 'h'"),
                (known.remove(CELL0), Conflict, "cell0"),
            ):
                with pytest.raises(error, match=words):
                    await refused
            assert sorted(cells) == ["a", CELL0]

    asyncio.run(run())
