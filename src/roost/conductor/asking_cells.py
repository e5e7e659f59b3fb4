"""Asks cells for what lists and pages show, which one slow cell must not hold up."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.engine import Connection

from roost.cells import Cell
from roost.logs.outages import OutageLines
from roost.model.text import error_text
from roost.storage import StorageError

CELL_SECONDS = 3.0
"""Seconds that a cell has to answer; then it counts as down."""

T = TypeVar("T")

_away = OutageLines(__name__, "a cell cannot be asked", "a cell can be asked again", level="warning")


async def ask_cell(cell: Cell | None, work: Callable[[Connection], T]) -> T | None:
    """The answer of a cell; None if it cannot be asked, or is not open in this process."""
    if cell is None:
        return None
    try:
        async with asyncio.timeout(CELL_SECONDS):
            found = await cell.read(work)
    except (StorageError, TimeoutError) as error:
        _away.failed(cell.name, cell=cell.name, error=error_text(error))
        return None
    _away.succeeded(cell.name, cell=cell.name)
    return found
