"""What the agents of all cells report, brought to the scheduler's node table."""

import asyncio
from collections.abc import Iterable

import structlog

from roost.cells import Cell
from roost.scheduler.nodes import NodeTable
from roost.storage import StorageError

_log = structlog.get_logger()


class NodeFeed:
    """Reads every cell for nodes that were seen since the last time.

    A cell that cannot be read is only logged: its nodes stop being seen and the scheduler takes them for
    down after a while.
    """

    def __init__(self, cells: Iterable[Cell], table: NodeTable, every_seconds: float = 1.0) -> None:
        self._cells = list(cells)
        self._table = table
        self._every_seconds = every_seconds
        self._seen: dict[str, float] = {}

    async def run(self) -> None:
        """Keep the table up to date until cancelled."""
        while True:
            await self.refresh()
            await asyncio.sleep(self._every_seconds)

    async def refresh(self) -> None:
        """Bring the table up to date once."""
        for cell in self._cells:
            try:
                reports = await cell.nodes(self._seen.get(cell.name, 0.0))
            except StorageError as error:
                _log.warning("a cell cannot be read", cell=cell.name, error=str(error))
                continue
            if reports:
                self._table.update(reports)
                # A second less: a heartbeat may become visible after a later one.
                self._seen[cell.name] = max(report.last_seen for report in reports) - 1.0
