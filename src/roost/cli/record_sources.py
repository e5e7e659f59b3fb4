"""Sources of records for commands: a data directory, a configured database, a server, or an archive."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import httpx
import msgspec

from roost.cli.connection import ServiceConnection
from roost.model.errors import OperatorError
from roost.model.text import fault_of
from roost.process.option_source import Source as OptionSource
from roost.records import Retention, RunWithAttempts, Search, SearchableRecords
from roost.records.archive import find_in_archive
from roost.records.backend import RecordOptions, open_sql_records
from roost.records.jsonl import JsonLinesRecords
from roost.storage import DatabaseMisconfigured, as_url

ANSWER_SECONDS = 60.0
"""Seconds that a server has for a response."""

LARGEST_PAGE = 1000

FOREVER = Retention(0, 0)


class RecordSource(Protocol):
    """A source of records."""

    async def find(self, search: Search, limit: int = 100) -> list[RunWithAttempts]:
        """Return the last ``limit`` of the runs that are searched for."""
        ...


class Archive:
    """Records in an archive."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def find(self, search: Search, limit: int = 100) -> list[RunWithAttempts]:
        """Return the last ``limit`` of the runs that are searched for."""
        return find_in_archive(self._path, search, limit)


class RunPage(msgspec.Struct):
    """A page of `/v1/scheduler/records`."""

    records: list[RunWithAttempts]
    next: str | None


class Server:
    """Records behind the API of a scheduler."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client = client
        self._url = url.rstrip("/") + "/v1/scheduler/records"

    async def find(self, search: Search, limit: int = 100) -> list[RunWithAttempts]:
        """Return the last ``limit`` of the runs that are searched for.

        Raises:
            OperatorError: the server cannot be reached or refuses.
        """
        if search.run is not None:
            answer = await self._get(f"{self._url}/{search.run}", {})
            return [] if answer is None else [msgspec.json.decode(answer, type=RunWithAttempts)]
        criteria = {
            name: str(value).lower() if value is True else str(value)
            for name, value in msgspec.structs.asdict(search).items()
            if value not in (None, False)
        }
        found: list[RunWithAttempts] = []
        while len(found) < limit:
            query = {**criteria, "limit": str(min(limit - len(found), LARGEST_PAGE))}
            page = msgspec.json.decode(await self._get(self._url, query) or b"", type=RunPage)
            found += page.records
            if page.next is None:
                break
            criteria["marker"] = page.next
        return found

    async def _get(self, url: str, query: dict[str, str]) -> bytes | None:
        """Return the body of a response; None for a run that does not exist."""
        try:
            answer = await self._client.get(url, params=query)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise OperatorError(f"{self._url}: {type(error).__name__}: {fault_of(error)}") from error
        if answer.status_code == httpx.codes.NOT_FOUND and not query:
            return None
        if answer.status_code != httpx.codes.OK:
            raise OperatorError(f"{self._url} answers {answer.status_code}: {answer.text[:500]}")
        return answer.content


@asynccontextmanager
async def opened(
    data_dir: Path | None, config_file: Path | None, archive: Path | None, scheduler: ServiceConnection
) -> AsyncIterator[RecordSource]:
    """Open the source that an option names, or else the environment or a profile.

    If none is named, open the records that the configuration names.

    Raises:
        OperatorError: several are named, or the source cannot be opened.
    """
    sources = {
        "--data-dir": data_dir,
        scheduler.origin: scheduler if scheduler.by_option else None,
        "--archive": archive,
    }
    named = [name for name, value in sources.items() if value is not None]
    if len(named) > 1:
        raise OperatorError(f"{' and '.join(named)} name different records: give one of them")
    if archive is not None:
        yield Archive(archive)
        return
    if scheduler.by_option or not (data_dir or config_file or scheduler.by_default):
        headers, way = scheduler.headers(), scheduler.async_way()
        async with httpx.AsyncClient(headers=headers, timeout=ANSWER_SECONDS, **way) as client:
            yield Server(client, scheduler.url)
        return
    backend = await open_backend(data_dir, config_file)
    try:
        yield backend
    finally:
        await backend.close()


async def open_backend(data_dir: Path | None, config_file: Path | None) -> SearchableRecords:
    """Open the records of a data directory, or else those that the configuration names.

    Raises:
        OperatorError: the records do not exist or cannot be opened.
    """
    if data_dir is not None:
        if (data_dir / "records.db").exists():
            return await open_sql_records(f"sqlite:///{data_dir.resolve() / 'records.db'}", FOREVER)
        if (data_dir / "records.jsonl").exists():
            return JsonLinesRecords(data_dir / "records.jsonl", FOREVER)
        raise OperatorError(f"data directory {data_dir} contains neither records.db nor records.jsonl")
    source = OptionSource(() if config_file is None else (str(config_file),))
    options = source.read(RecordOptions)
    path = Path(options.path)
    if options.backend == "jsonl":
        _check_there(path)
        return JsonLinesRecords(path, FOREVER)
    file = _sqlite_file(options.connection)
    if file is not None:
        _check_there(file)
    return await open_sql_records(options.connection, FOREVER)


def _check_there(path: Path) -> None:
    """Raise `OperatorError` if a file is missing. Opening would create it, and show no records."""
    if not path.exists():
        raise OperatorError(
            f"records file {path} does not exist: name the records by --data-dir, --config-file or --url"
        )


def _sqlite_file(connection: str) -> Path | None:
    try:
        url = as_url(connection).parsed
    except DatabaseMisconfigured:
        return None
    return Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None
