"""`CellInstances`: the facts of instances, read in the databases of all cells at once."""

import asyncio

from roost.nova.database.cells import NovaCell, NovaCells
from roost.nova.database.instances import read_places
from roost.nova.database.migrations import read_unfinished
from roost.nova.instance_facts import InstanceFacts, UnfinishedMigration
from roost.storage import StorageError


class CellInstances:
    """Reads instances in the cells of Nova; see `roost.nova.instance_facts.InstanceSource`.

    All cells are read, not only the one of the instance's mapping: Nova's conductor writes the row of a new
    instance before the mapping.
    """

    def __init__(self, cells: NovaCells) -> None:
        self._cells = cells

    async def facts(self, instance: str) -> InstanceFacts | None:
        cells = [*self._cells.cells.values()]
        read = (self._facts_in(cell, instance) for cell in cells)
        found = await asyncio.gather(*read, return_exceptions=True)
        failed: StorageError | None = None
        for each in found:
            if isinstance(each, InstanceFacts):
                return each
            if isinstance(each, StorageError):
                failed = each
            elif isinstance(each, BaseException):
                raise each
        if failed is not None:
            raise failed
        return None

    async def _facts_in(self, cell: NovaCell, instance: str) -> InstanceFacts | None:
        place = (await cell.database.read(read_places([instance]))).get(instance)
        if place is None:
            return None
        rows = await cell.database.read(read_unfinished([instance]))
        migrations = tuple(
            UnfinishedMigration(each.uuid, each.kind, each.source_host or "", each.source_nodename or "")
            for each in rows
        )
        return InstanceFacts(cell.uuid, place.host, place.nodename, migrations)
