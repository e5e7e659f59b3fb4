"""Build requests and mappings: what has been accepted, and which cell has what."""

import time
from collections.abc import Callable, Collection, Mapping

import msgspec
import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from roost.conductor.tables import SCHEMA, build_requests, cell_mappings, instance_mappings
from roost.model.instance import BuildRequest
from roost.model.text import clean_values
from roost.storage import Database, in_batches

_log = structlog.get_logger()
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(BuildRequest)


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

        await self._database.write(write)

    async def waiting(self) -> list[BuildRequest]:
        """The requests that are not finished, in order of acceptance."""
        return await self._database.read(waiting_requests)

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
        """Forget which cell instances are in."""

        def write(connection: Connection) -> None:
            for some in in_batches(instances):
                connection.execute(
                    sa.delete(instance_mappings).where(instance_mappings.c.instance_uuid.in_(some))
                )

        await self._database.write(write)

    async def map_cells(self, cells: Mapping[str, str]) -> None:
        """Keep where cells are: name -> database URL."""

        def write(connection: Connection) -> None:
            for name, url in cells.items():
                row = {"name": name, "database_url": url}
                found = connection.execute(
                    sa.update(cell_mappings).where(cell_mappings.c.name == name).values(row)
                )
                if not found.rowcount:
                    connection.execute(sa.insert(cell_mappings), row)

        await self._database.write(write)


def clean_request(request: BuildRequest) -> BuildRequest:
    """The request with all texts of its spec cleaned; the same one if they are clean, as mostly."""
    try:
        if b"\\u0000" not in _ENCODER.encode(request):
            return request
    except UnicodeEncodeError:
        pass
    return msgspec.convert(clean_values(msgspec.to_builtins(request)), BuildRequest)


def waiting_requests(connection: Connection) -> list[BuildRequest]:
    """The requests that are not finished, in order of acceptance.

    One that cannot be read is left out, with a log line: it must not keep the others from being carried out.
    """
    query = sa.select(build_requests.c.request_id, build_requests.c.request).order_by(
        build_requests.c.accepted_at, build_requests.c.request_id
    )
    found = []
    for request_id, text in connection.execute(query):
        try:
            found.append(_DECODER.decode(text))
        except (msgspec.MsgspecError, UnicodeEncodeError) as error:
            _log.error("a build request cannot be read", request_id=request_id, error=str(error))
    return found


def mapped_cells(connection: Connection) -> dict[str, str]:
    """The cells that a database knows: name -> database URL."""
    return {row.name: row.database_url for row in connection.execute(sa.select(cell_mappings))}
