"""Moves of all cells, listed, and one with its steps.

A cell that is down, or does not answer in time, hides its own moves only.
"""

import asyncio
from collections.abc import Mapping

from roost.conductor.moves.types import (
    DescribedMove,
    MovePage,
    MovesQuery,
    described_move,
    marker_of_move,
    shown_move,
)
from roost.state.api_database.open_cells import ask_cell
from roost.state.cell_database import Cell
from roost.state.cell_database.moves import MoveFilter, find_moves, list_moves, read_steps


class MoveViews:
    """Reads moves."""

    def __init__(self, cells: Mapping[str, Cell]) -> None:
        self._cells = cells

    async def page(self, query: MovesQuery, project_id: str | None) -> MovePage:
        """Return a page of moves, of the instances of a project or of all. Raises `BadRequest`."""
        wanted = MoveFilter(
            instance=query.instance,
            under_way=query.under_way,
            host=query.host,
            project_id=project_id,
            after=query.after,
        )
        names = list(self._cells) if query.cell is None else [query.cell]
        work = list_moves(wanted, query.limit + 1)
        answers = await asyncio.gather(*(ask_cell(self._cells.get(name), work) for name in names))
        cells = list(zip(names, answers, strict=True))
        found = [(name, move) for name, answer in cells for move in answer or ()]
        found.sort(key=lambda each: (-each[1].began, each[1].uuid))
        page = found[: query.limit]
        following = marker_of_move(page[-1][1]) if len(found) > query.limit else None
        down = sorted(name for name, answer in cells if answer is None)
        return MovePage([shown_move(*each) for each in page], following, down)

    async def find(self, cell: str, uuid: str) -> DescribedMove | None:
        """Return a move of a cell with its steps; None: the cell has no such move, or cannot be asked now."""
        found = await ask_cell(self._cells.get(cell), find_moves((uuid,)))
        if not found:
            return None
        steps = await ask_cell(self._cells.get(cell), read_steps(uuid))
        return None if steps is None else described_move(cell, found[uuid], steps)
