"""Reads the instances that may move from the cells' databases, and what they hold from the ledger's."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import structlog

from roost.ledger import Held, Ledger
from roost.ledger.delta import check_head_of_many
from roost.scheduler.explain.following_copy import ReadResidents
from roost.scheduler.nodes.table import NodeTable
from roost.state.cell_database import Cell
from roost.state.cell_database.residents import Resident, read_residents
from roost.storage import StorageError

MOST_RESIDENTS: Final = 1_000
"""Instances that are read of one cell."""

_log = structlog.get_logger()


class FoundResidents(NamedTuple):
    """``fixed``: the number of instances that may not move. ``complete``: False if there are more, or a cell
    could not be read."""

    instances: ReadResidents
    fixed: int
    complete: bool


class ResidentReader:
    """Reads the instances of hosts of a scheduler. ``cells``: may change."""

    def __init__(self, ledger: Ledger, table: NodeTable, cells: Iterable[Cell]) -> None:
        self._ledger = ledger
        self._table = table
        self._cells = cells

    async def on(self, nodes: Sequence[int]) -> FoundResidents:
        """Return the instances of some nodes that may move. Raises: `StorageError` if the ledger's database
        cannot be read."""
        table = self._table
        hosts: dict[str, set[str]] = {}
        for index in nodes:
            hosts.setdefault(table.cells[table.cell.item(index)], set()).add(table.hosts[index])
        movable: list[Resident] = []
        fixed, complete = 0, True
        for cell in self._cells:
            there = hosts.pop(cell.name, None)
            if there is None:
                continue
            try:
                read = await cell.read(read_residents(sorted(there), MOST_RESIDENTS))
            except StorageError as error:
                _log.warning("the instances of a cell cannot be looked at", cell=cell.name, error=str(error))
                complete = False
                continue
            movable += read.movable
            fixed += read.fixed
            complete = complete and read.complete
        wanted = {table.nodes[index] for index in nodes}
        movable = [each for each in movable if each.node in wanted]
        version, held = await self._held([each.holder for each in movable])
        read_all = ReadResidents(tuple(movable), held, version)
        return FoundResidents(read_all, fixed, complete and not hosts)

    async def _held(self, consumers: Sequence[str]) -> tuple[int, dict[str, Held]]:
        head = await self._ledger.database.read(lambda connection: check_head_of_many(connection, consumers))
        return head.position.seq, head.holdings.held
