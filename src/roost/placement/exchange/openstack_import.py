"""The import from a database of OpenStack Placement into one of Roost.

An import is a series of commits, which the change feed, ``roost db verify`` and every replica see like any
other commits. After an interruption it is run again from the start: it compares what the target has with
the source and adds the rest. It stores no position, because the source may have changed since, which only a
comparison finds.
"""

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from roost.ledger import SCHEMA, Command, Held, Ledger
from roost.model.vocabulary import is_custom
from roost.placement.exchange import placement_tables as rows
from roost.placement.exchange.anomalies import report_broken_units, report_overuse
from roost.placement.exchange.consumer_rows import ConsumerReader
from roost.placement.exchange.copy_commands import CopiedProvider, CopyConsumers, CopyNames, CopyProviders
from roost.placement.exchange.errors import ExchangeError, NotEmpty
from roost.placement.exchange.ledger_consumers import consumers_after
from roost.placement.exchange.placement_tables import read_snapshot
from roost.placement.exchange.probe import probe
from roost.placement.exchange.provider_rows import Names, ProviderReader
from roost.placement.exchange.report import ExchangeReport, Progress
from roost.placement.options import PlacementOptions
from roost.storage import COMMAND_ANSWER_SECONDS, Database, as_url

T = TypeVar("T")


def import_placement(
    source: Database, target: str, incomplete: PlacementOptions, progress: Progress
) -> ExchangeReport:
    """Copy all names, providers and consumers of a database of OpenStack Placement into one of Roost.

    Args:
        source: the database of OpenStack Placement, opened read-only.
        target: the URL of the other one, which is empty or has a part of the source.
        incomplete: the options that name the project and user of consumers without a row.
        progress: called after each commit.

    Raises:
        ExchangeError: the source cannot be read as Placement's, or the target has other data.
        StorageError: a database cannot be opened, read or written.

    After an error the target keeps what was committed.
    """
    _refuse_placement(target)
    return read_snapshot(
        source, lambda connection: asyncio.run(_import(connection, target, incomplete, progress))
    )


async def _import(
    connection: Connection, url: str, incomplete: PlacementOptions, progress: Progress
) -> ExchangeReport:
    target = Database(url, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        ledger = await Ledger.open(target)
        try:
            return await _Import(connection, ledger, progress).run(incomplete)
        finally:
            await ledger.close()
    finally:
        await target.close()


class _Import:
    def __init__(self, connection: Connection, ledger: Ledger, progress: Progress) -> None:
        self._connection = connection
        self._ledger = ledger
        self._progress = progress
        self._report = ExchangeReport()
        self._done = self._total = 0

    async def run(self, incomplete: PlacementOptions) -> ExchangeReport:
        names = Names(self._connection, self._report)
        await self._check_target(names)
        count = sa.select(sa.func.count()).select_from(rows.consumers)
        self._total = len(names.providers) + self._connection.execute(count).scalar_one()
        await self._copy_names(names)
        for providers in ProviderReader(self._connection, names, self._report).read():
            await self._copy_providers(providers)
        for held in ConsumerReader(self._connection, names, incomplete, self._report).read():
            await self._copy_consumers(held)
        report_overuse(await self._ledger.current(), self._report)
        self._progress(self._total, self._total)
        return self._report

    async def _check_target(self, names: Names) -> None:
        """Raise `NotEmpty` if the target has data that the source has not."""
        fleet = await self._ledger.current()
        ours = set(names.providers.values())
        for uuid in fleet.uuids():
            if uuid not in ours:
                raise self._not_empty(f"resource provider {uuid} is not in the source")
        for kind, present, known in (
            ("resource class", fleet.resource_classes, names.classes),
            ("trait", fleet.traits, names.traits),
        ):
            for name in sorted(set(present).difference(known.values())):
                if is_custom(name):
                    raise self._not_empty(f"{kind} {name} is not in the source")
        after: str | None = None
        while some := await self._ledger.database.read(partial(consumers_after, after=after)):
            strange = set(some).difference(_consumers_among(self._connection, some))
            if strange:
                raise self._not_empty(f"consumer {min(strange)} is not in the source")
            after = some[-1]

    async def _copy_names(self, names: Names) -> None:
        classes = {name: number for number, name in names.classes.items()}
        new = await self._execute(CopyNames(classes, tuple(sorted(names.traits.values()))))
        self._count("resource classes", new[0], len(classes))
        self._count("traits", new[1], len(names.traits))

    async def _copy_providers(self, providers: list[CopiedProvider]) -> None:
        new = await self._execute(CopyProviders(tuple(providers)))
        self._count("resource providers", len(new), len(providers))
        for what, field in (
            ("inventories", "inventories"),
            ("provider traits", "traits"),
            ("provider aggregates", "aggregates"),
        ):
            self._count(what, _sum(new, field), _sum(providers, field))
        self._advance(len(providers))

    async def _copy_consumers(self, held: list[Held]) -> None:
        new = await self._execute(CopyConsumers(tuple(held)))
        self._count("consumers", len(new), len(held))
        self._count("allocations", _allocations(new), _allocations(held))
        fleet = await self._ledger.current()
        for each in held:
            report_broken_units(fleet, each, self._report)
        self._advance(len(held))

    async def _execute(self, command: Command[T]) -> T:
        try:
            return await self._ledger.execute(command)
        except NotEmpty as error:
            raise self._not_empty(str(error)) from error
        except DBAPIError as error:
            refusal = " ".join(str(error.orig).split())
            raise ExchangeError(f"database {self._ledger.database} refuses a row: {refusal}") from error

    def _not_empty(self, reason: str) -> NotEmpty:
        return NotEmpty(
            f"database {self._ledger.database} has data that is not from this source ({reason}): "
            "import into an empty database"
        )

    def _count(self, what: str, new: int, of: int) -> None:
        self._report.copied[what] += new
        self._report.there_already[what] += of - new

    def _advance(self, number: int) -> None:
        self._done = min(self._done + number, self._total)
        self._progress(self._done, self._total)


def _refuse_placement(url: str) -> None:
    """Raise `NotEmpty` if the target has Placement's tables and not Roost's, as when the URLs are swapped."""
    tables = probe(url, lambda connection: set(sa.inspect(connection).get_table_names())) or set()
    if "ledger_schema" not in tables and not tables.isdisjoint(SCHEMA.metadata.tables):
        raise NotEmpty(
            f"database {as_url(url)} is not empty and not a database of Roost: import into an empty database"
        )


def _consumers_among(connection: Connection, uuids: list[str]) -> set[str]:
    """Return the uuids of which the source has a consumer or an allocation."""
    found: set[str] = set()
    for column in (rows.consumers.c.uuid, rows.allocations.c.consumer_id):
        found.update(connection.execute(sa.select(column).where(column.in_(uuids)).distinct()).scalars())
    return found


def _sum(providers: Iterable[CopiedProvider], field: str) -> int:
    return sum(len(getattr(provider, field)) for provider in providers)


def _allocations(held: Iterable[Held]) -> int:
    return sum(len(resources) for each in held for resources in each.allocations.values())
