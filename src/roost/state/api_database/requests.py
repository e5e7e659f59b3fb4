"""Reads of accepted requests, and of the mappings of instances and cells."""

from collections.abc import AsyncIterator, Collection, Mapping

from roost.model.instance import BuildRequest
from roost.state.api_database.build_requests import RequestPage, find_waiting_requests, read_waiting_page
from roost.state.api_database.cell_mappings import CellMapping, at_urls, mapped_cells, write_cell_mappings
from roost.state.api_database.mappings import InstanceMapping, find_mappings
from roost.state.api_database.tables import SCHEMA
from roost.storage import Database, Transaction


class Requests:
    """The conductors' tables. Raises `StorageError` if the database cannot be used."""

    def __init__(self, database: Database) -> None:
        SCHEMA.prepare(database)
        self.database = database

    async def waiting(self, request_id: str | None = None) -> AsyncIterator[BuildRequest]:
        """Yield the requests that are not finished, or the one with this id, in order of acceptance.

        Each page is read when it is needed: a request that is finished meanwhile may be missing.
        """
        page: RequestPage | None = RequestPage()
        while page is not None:
            requests, page = await self.database.read(read_waiting_page(page, request_id))
            for request in requests:
                yield request

    async def waiting_among(self, request_ids: Collection[str]) -> dict[str, BuildRequest]:
        """Return by id the requests that are not finished, of the named ones."""
        return await self.database.read(find_waiting_requests(tuple(request_ids)))

    async def mappings(self, instances: Collection[str]) -> dict[str, InstanceMapping]:
        """Return the mappings of instances by uuid; unknown instances are left out."""
        return await self.database.read(find_mappings(tuple(instances)))

    async def mapping(self, instance: str) -> InstanceMapping | None:
        """Return the mapping of an instance; None if it is unknown."""
        return (await self.mappings([instance])).get(instance)

    async def page(self, page: Transaction[list[InstanceMapping]]) -> list[InstanceMapping]:
        """Return a page of mappings."""
        return await self.database.read(page)

    async def cells_of(self, instances: Collection[str]) -> dict[str, str]:
        """Return the cells of instances that have one: uuid -> cell name."""
        found = await self.mappings(instances)
        return {uuid: mapping.cell for uuid, mapping in found.items() if mapping.cell is not None}

    async def cells(self) -> dict[str, CellMapping]:
        """Return the mappings of cells to databases by name, in order of names."""
        return await self.database.read(mapped_cells)

    async def map_cells(self, cells: Mapping[str, str]) -> None:
        """Store the databases of cells: name -> database URL."""
        await self.database.write(write_cell_mappings(at_urls(cells)))
