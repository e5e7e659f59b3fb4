"""What a process does before it decides."""

import asyncio
from pathlib import Path

from roost.fleet.feasibility import feasibilities
from roost.model.inventory import Inventory
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.providers import CreateProvider
from roost.server.parts.placement import prepare_feasibility
from support.ledgers import opened, run
from support.placement_api import uuid_of
from support.steps import lines_of


def test_trees_are_numbered_before_the_first_decision(tmp_path: Path) -> None:
    """It is not counted, and took half a second of the writer for thousands of devices."""

    async def first_numbering(*, prepared: bool, folder: Path) -> int:
        async with opened(folder / "ledger.db") as [ledger]:
            await run(ledger, CreateProvider(uuid_of("root"), "root"))
            for number in range(60):
                child = uuid_of(f"child{number}")
                await run(
                    ledger,
                    CreateProvider(child, f"child{number}", uuid_of("root")),
                    SetInventories(child, {"VGPU": Inventory(1)}),
                )
            if prepared:
                prepare_feasibility(ledger)
            return lines_of(lambda: feasibilities(ledger.known()).prepare())

    async def work() -> None:
        (tmp_path / "other").mkdir()
        there = await first_numbering(prepared=True, folder=tmp_path)
        assert 5 * there < await first_numbering(prepared=False, folder=tmp_path / "other")

    asyncio.run(work())
