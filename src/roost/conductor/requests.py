"""Build requests and mappings: what has been accepted, and which cell has what."""

import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from roost.conductor.server_groups.store import add_members, remove_members
from roost.conductor.tables import SCHEMA, build_requests, cell_mappings, instance_mappings
from roost.model.instance import BuildRequest
from roost.model.text import clean_values
from roost.storage import Database, in_batches

_log = structlog.get_logger()
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(BuildRequest)

PAGE = 100
"""Waiting requests that are read in one transaction. Thousands wait after an outage, each with its spec."""


class Requests:
    """The conductor's tables. Raises `StorageError` if the database cannot be used."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        SCHEMA.prepare(database)
        self._database = database
        self._clock = clock

    async def accept(self, request: BuildRequest) -> None:
        """Keep a request; when this returns it will be carried out, whatever happens.

        One with the same id that is there already is left as it is. Raises UnicodeEncodeError for text that
        cannot be stored: see `clean_request`.
        """
        row = {
            "request_id": request.request_id,
            "request": _ENCODER.encode(request).decode(),
            "accepted_at": self._clock(),
        }
        there = sa.select(sa.func.count()).where(build_requests.c.request_id == request.request_id)

        def write(connection: Connection) -> None:
            if not connection.execute(there).scalar_one():
                connection.execute(sa.insert(build_requests), row)
                if request.spec.group is not None:
                    add_members(connection, request.spec.group.uuid, request.instances)

        await self._database.write(write)

    async def waiting(self, request_id: str | None = None) -> AsyncIterator[BuildRequest]:
        """The requests that are not finished, or the one with this id, in order of acceptance.

        Each page is read when it is needed: a request that is finished meanwhile may be missing.
        """
        page: _Page | None = _Page()
        while page is not None:
            requests, page = await self._database.read(partial(_read_page, after=page, only=request_id))
            for request in requests:
                yield request

    async def waiting_for(self, instance: str) -> BuildRequest | None:
        """The request that is not finished and has an instance; None if there is none."""
        named = build_requests.c.request.contains(instance, autoescape=True)

        def read(connection: Connection) -> BuildRequest | None:
            rows = connection.execute(
                sa.select(build_requests.c.request_id, build_requests.c.request).where(named)
            )
            found = (request for request in _decoded(rows) if instance in request.instances)
            return next(found, None)

        return await self._database.read(read)

    async def finish(self, request: BuildRequest, cells: Mapping[str, str]) -> None:
        """All instances of a request are in cells: ``cells`` maps instance uuid to cell name."""

        def write(connection: Connection) -> None:
            for some in in_batches(cells):
                known = set(
                    connection.execute(
                        sa.select(instance_mappings.c.instance_uuid).where(
                            instance_mappings.c.instance_uuid.in_(some)
                        )
                    ).scalars()
                )
                new = [{"instance_uuid": uuid, "cell": cells[uuid]} for uuid in some if uuid not in known]
                if new:
                    connection.execute(sa.insert(instance_mappings), new)
            connection.execute(
                sa.delete(build_requests).where(build_requests.c.request_id == request.request_id)
            )

        await self._database.write(write)

    async def cells_of(self, instances: Collection[str]) -> dict[str, str]:
        """The cell of each of the instances that is known: uuid -> cell name."""

        def read(connection: Connection) -> dict[str, str]:
            found: dict[str, str] = {}
            for some in in_batches(instances):
                rows = connection.execute(
                    sa.select(instance_mappings).where(instance_mappings.c.instance_uuid.in_(some))
                )
                found.update({row.instance_uuid: row.cell for row in rows})
            return found

        return await self._database.read(read)

    async def every_mapping(self) -> dict[str, str]:
        """The cell of every instance: uuid -> cell name."""
        return await self._database.read(
            lambda connection: {
                row.instance_uuid: row.cell for row in connection.execute(sa.select(instance_mappings))
            }
        )

    async def unmap(self, instances: Collection[str]) -> None:
        """Forget which cell instances are in, and of which server groups they are members."""

        def write(connection: Connection) -> None:
            for some in in_batches(instances):
                connection.execute(
                    sa.delete(instance_mappings).where(instance_mappings.c.instance_uuid.in_(some))
                )
            remove_members(connection, instances)

        await self._database.write(write)

    async def cells(self) -> dict[str, str]:
        """Where cells are: name -> database URL, in order of names."""
        query = sa.select(cell_mappings.c.name, cell_mappings.c.database_url).order_by(cell_mappings.c.name)
        return await self._database.read(
            lambda connection: {row.name: row.database_url for row in connection.execute(query)}
        )

    async def map_cells(self, cells: Mapping[str, str]) -> None:
        """Keep where cells are: name -> database URL."""

        await self._database.write(lambda connection: move_cells(connection, cells))


def clean_request(request: BuildRequest) -> BuildRequest:
    """The request with all texts of its spec cleaned; the same one if they are clean, as mostly."""
    try:
        if b"\\u0000" not in _ENCODER.encode(request):
            return request
    except UnicodeEncodeError:
        pass
    return msgspec.convert(clean_values(msgspec.to_builtins(request)), BuildRequest)


def waiting_requests(connection: Connection) -> Iterator[BuildRequest]:
    """The requests that are not finished, in order of acceptance, in the connection's transaction."""
    page: _Page | None = _Page()
    while page is not None:
        requests, page = _read_page(connection, page, None)
        yield from requests


class _Page(NamedTuple):
    """The place before a page of waiting requests: the last request of the page before."""

    accepted_at: float = 0.0
    request_id: str = ""


def _read_page(
    connection: Connection, after: _Page, only: str | None
) -> tuple[list[BuildRequest], _Page | None]:
    """Up to `PAGE` waiting requests, and the place before the next page; None after the last one."""
    place = (build_requests.c.accepted_at, build_requests.c.request_id)
    at, request_id = place
    query = (
        sa.select(request_id, build_requests.c.request, at)
        .where(at >= after.accepted_at, sa.or_(at > after.accepted_at, request_id > after.request_id))
        .order_by(*place)
        .limit(PAGE)
    )
    if only is not None:
        query = query.where(request_id == only)
    rows = connection.execute(query).all()
    following = _Page(rows[-1].accepted_at, rows[-1].request_id) if len(rows) == PAGE else None
    return list(_decoded(row[:2] for row in rows)), following


def _decoded(rows: Iterable[Any]) -> Iterator[BuildRequest]:
    """The requests in rows of id and text.

    One that cannot be read is left out, with a log line: it must not keep the others from being carried out.
    """
    for request_id, text in rows:
        try:
            yield _DECODER.decode(text)
        except (msgspec.MsgspecError, UnicodeEncodeError) as error:
            _log.error("a build request cannot be read", request_id=request_id, error=str(error))


def move_cells(connection: Connection, cells: Mapping[str, str]) -> None:
    """Write where cells are: name -> database URL."""
    for name, url in cells.items():
        row = {"name": name, "database_url": url}
        found = connection.execute(sa.update(cell_mappings).where(cell_mappings.c.name == name).values(row))
        if not found.rowcount:
            connection.execute(sa.insert(cell_mappings), row)


def mapped_cells(connection: Connection) -> dict[str, str]:
    """The cells that a database knows: name -> database URL."""
    return {row.name: row.database_url for row in connection.execute(sa.select(cell_mappings))}
