"""Ledgers for tests: opened together on one file, filled, and read back."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import make_url

from roost.fleet import Fleet
from roost.ledger import SCHEMA, Command, Ledger
from roost.ledger.commit_states import DEFAULT_LIMITS, CommitLimits
from roost.ledger.findings import Finding
from roost.ledger.holdings import held_by_all
from roost.ledger.load import load
from roost.ledger.tables import commits
from roost.ledger.verify import verify
from roost.model.inventory import Inventory
from roost.placement.commands.allocations import ConsumerWrite, WriteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.providers import CreateProvider
from roost.storage import ANSWER_SECONDS, Database
from roost.storage.engine import reading_engine
from support.databases import Place
from support.fleets import snapshot
from support.upgrading import upgrade_empty
from support.waiting import LIMIT_SECONDS, patience


@asynccontextmanager
async def opened(
    place: Path | Place, count: int = 1, limits: CommitLimits = DEFAULT_LIMITS
) -> AsyncIterator[list[Ledger]]:
    """So many ledgers, each with a database of its own, on one SQLite file or other place.

    Writers of a file wait for each other for longer than users would: one sync takes seconds on a disk to
    which other tests have just written the files of their servers.
    """
    place = _place(place)
    seconds = patience(LIMIT_SECONDS) if place.at(0).startswith("sqlite") else ANSWER_SECONDS
    databases = [Database(place.at(number), answer_seconds=seconds) for number in range(count)]
    upgrade_empty(SCHEMA, databases[0])
    ledgers = [await Ledger.open(database, limits=limits) for database in databases]
    try:
        yield ledgers
    finally:
        for ledger in ledgers:
            await ledger.close()
        for database in databases:
            await database.close()


def upgrade(url: str) -> None:
    """What ``roost db upgrade`` does to the ledger's tables, without a process of its own."""
    database = Database(url)
    upgrade_empty(SCHEMA, database)
    asyncio.run(database.close())


async def run(ledger: Ledger, *commands: Command[Any]) -> None:
    """Commands one after the other."""
    for command in commands:
        await ledger.execute(command)


def host(uuid: str, parent: str | None = None, **totals: int) -> list[Command[Any]]:
    """The commands that make a provider with inventories."""
    inventories = {name: Inventory(total) for name, total in totals.items()}
    return [CreateProvider(uuid, f"name of {uuid}", parent), SetInventories(uuid, inventories)]


def claim(consumer: str, provider: str, **resources: int) -> WriteAllocations:
    """A new consumer's claim on one provider."""
    write = ConsumerWrite(
        consumer=consumer,
        allocations={provider: resources} if resources else {},
        project_id="project",
        user_id="user",
        consumer_type="INSTANCE",
        generation=None,
    )
    return WriteAllocations((write,))


def commits_of(database: Database) -> list[int]:
    """The sequence numbers of the commits that are kept."""
    query = sa.select(commits.c.seq).order_by(commits.c.seq)
    return database.read_now(lambda connection: list(connection.execute(query).scalars()))


def holdings_of(database: Database) -> dict[str, dict[str, dict[str, int]]]:
    """What each consumer holds."""
    held = database.read_now(held_by_all)
    return {uuid: one.allocations for uuid, one in held.items()}


def whole(fleet: Fleet) -> dict[str, Any]:
    """All that a fleet tells, with version and times."""
    rows: Iterable[int] = fleet.rows().tolist()
    times = {fleet.uuid(row): fleet.changed_at.item(row) for row in rows}
    return {**snapshot(fleet), "version": fleet.version, "changed at": times}


def findings_in(place: Path | Place) -> list[Finding]:
    """What verifying a SQLite file or other place finds, in one snapshot: who was killed may still commit."""
    engine = reading_engine(make_url(_place(place).url), read_only=True, seconds=ANSWER_SECONDS)
    try:
        with engine.begin() as connection:
            return verify(connection)
    finally:
        engine.dispose()


def before_each_append(ledger: Ledger, act: Callable[[], Awaitable[object]], times: int) -> None:
    """Have ``act`` awaited before each of the next writes of a ledger: another writer that is first."""
    write, left = ledger.database.write, [times]

    async def late(work: Callable[[sa.Connection], Any]) -> Any:
        if left[0]:
            left[0] -= 1
            await act()
        return await write(work)

    ledger.database.write = late  # type: ignore[method-assign]


def counted_head_checks(ledger: Ledger) -> list[None]:
    """A list that grows with each head check of a ledger from now on."""
    check, seen = ledger.database.autocommit_read, list[None]()

    async def counted(work: Callable[[sa.Connection], Any]) -> Any:
        seen.append(None)
        return await check(work)

    ledger.database.autocommit_read = counted  # type: ignore[method-assign]
    return seen


def _place(place: Path | Place) -> Place:
    return Place("sqlite", (f"sqlite:///{place}",)) if isinstance(place, Path) else place


def loaded(database: Database) -> dict[str, Any]:
    """All that a fleet tells that is loaded from the tables now."""
    return whole(database.read_now(load))
