"""Reads of requests that are not finished, and of the mappings of instances and cells."""

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from roost.model.instance import BuildRequest
from roost.state.api_database.cell_mappings import CellMapping, at_urls, mapped_cells, write_cell_mappings
from roost.state.api_database.mappings import InstanceMapping, find_mappings
from roost.state.api_database.tables import SCHEMA, build_requests
from roost.storage import Database, Transaction, in_batches, one_of, short_read, transaction

_log = structlog.get_logger()
_DECODER = msgspec.json.Decoder(BuildRequest)
PAGE = 100
"""Waiting requests that one transaction reads at most: after an outage thousands wait, each with its spec."""

_UNFINISHED = sa.select(build_requests.c.request_id).where(one_of(build_requests.c.request_id, "some"))


class RequestPage(NamedTuple):
    """The marker of a page of waiting requests: the last request of the page before."""

    accepted_at: float = 0.0
    request_id: str = ""


FIRST_PAGE = RequestPage()


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


@short_read
def find_waiting_requests(connection: Connection, request_ids: tuple[str, ...]) -> dict[str, BuildRequest]:
    """Return by id the requests that are not finished and can be read, of the named ones."""
    found = {}
    for some in in_batches(request_ids):
        query = sa.select(build_requests.c.request_id, build_requests.c.request).where(
            build_requests.c.request_id.in_(some)
        )
        found.update({each.request_id: each for each in decoded(connection.execute(query))})
    return found


@short_read
def find_unfinished(connection: Connection, request_ids: tuple[str, ...]) -> frozenset[str]:
    """Return which of the named requests are not finished."""
    return frozenset(
        each
        for some in in_batches(request_ids)
        for each in connection.execute(_UNFINISHED, {"some": some}).scalars()
    )


@transaction
def read_waiting_page(
    connection: Connection, after: RequestPage = FIRST_PAGE, only: str | None = None
) -> tuple[list[BuildRequest], RequestPage | None]:
    """Return up to `PAGE` waiting requests, and the marker of the next page; None after the last one.

    ``only``: the id of the only one that is read.
    """
    at, request_id = place = (build_requests.c.accepted_at, build_requests.c.request_id)
    query = (
        sa.select(request_id, build_requests.c.request, at)
        .where(at >= after.accepted_at, sa.or_(at > after.accepted_at, request_id > after.request_id))
        .order_by(*place)
        .limit(PAGE)
    )
    if only is not None:
        query = query.where(request_id == only)
    rows = connection.execute(query).all()
    following = RequestPage(rows[-1].accepted_at, rows[-1].request_id) if len(rows) == PAGE else None
    return list(decoded(row[:2] for row in rows)), following


def waiting_requests(connection: Connection) -> Iterator[BuildRequest]:
    """Yield the requests that are not finished, in order of acceptance, in the connection's transaction."""
    page: RequestPage | None = FIRST_PAGE
    while page is not None:
        requests, page = read_waiting_page(page)(connection)
        yield from requests


def decoded(rows: Iterable[Any]) -> Iterator[BuildRequest]:
    """Yield the requests in rows of id and text.

    One that cannot be read is left out, with a log line: it must not keep the others from being carried out.
    """
    for request_id, text in rows:
        try:
            yield _DECODER.decode(text)
        except (msgspec.MsgspecError, UnicodeEncodeError) as error:
            _log.error("a build request cannot be read", request_id=request_id, error=str(error))
