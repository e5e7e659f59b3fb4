"""A cell's database as machines reach it in a process that has the parts of the cell too.

Agents and conductors of the process wait for states of instances: a write that puts instances into them wakes
them.
"""

from typing import TypeVar

from roost.cells import Cell
from roost.cells.arriving import AddInstances
from roost.cells.ending import DeleteInstances
from roost.machine import Work
from roost.model.instance import DELETING, DESTROYED

T = TypeVar("T")


class CellWrites:
    """The database of one cell, whose listeners hear of what is written."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    async def read(self, work: Work[T], /) -> T:
        """As `roost.storage.Database.read`."""
        return await self._cell.database.read(work)

    async def write(self, work: Work[T], /) -> T:
        """As `roost.storage.Database.write`."""
        return await self._cell.write(work, *_entered(work))


def _entered(work: object) -> set[str]:
    """The states that a work puts instances into."""
    match work:
        case AddInstances(new):
            return {instance.state for instance in new}
        case DeleteInstances():
            return {DELETING, DESTROYED}
        case _:
            return set()
