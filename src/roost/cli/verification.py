"""The verification of a database, for commands."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

import sqlalchemy as sa

from roost.conductor.verify import Unread, verify_instances
from roost.ledger import SCHEMA as LEDGER
from roost.ledger.findings import Finding
from roost.ledger.history import Progress, no_progress
from roost.ledger.tables import allocations, commits
from roost.ledger.verify import verify as verify_ledger
from roost.model.errors import OperatorError
from roost.process.option_source import Source
from roost.records.tables import SCHEMA as RECORDS
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.api_database.tables import api_database_url
from roost.state.cell_database.tables import SCHEMA as CELL
from roost.storage import COMMAND_ANSWER_SECONDS, Database, DatabaseUrl

KINDS = {CELL: "a cell's database", RECORDS: "a records database", CONDUCTOR: "a conductor's database"}
"""Schema -> name of a database without a ledger in error messages."""


class Verified(NamedTuple):
    """The numbers of commits and allocations that were compared with the tables."""

    commits: int
    allocations: int

    def __str__(self) -> str:
        return f"{self.commits:,} commits and {self.allocations:,} allocations"


def verdict(findings: Sequence[Finding], verified: Verified) -> str:
    """Return the result of a verification in one sentence."""
    if findings:
        return f"verified {verified}: {len(findings)} difference(s) found"
    return f"verified: {verified} agree with the tables"


async def verify_database(
    url: DatabaseUrl | str, progress: Progress = no_progress, source: Source | None = None
) -> tuple[list[Finding], list[Unread], Verified]:
    """Return the differences in a database, the cells that could not be read, and the compared numbers.

    ``source``: the configuration, with the API database, if that is another one, and the cells' sections.

    Raises:
        StorageError: the database cannot be read, or its tables are not at the newest revision.
        OperatorError: it is a database of another kind.
    """
    database = Database(url, read_only=True, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        check_ledger(database)
        findings, verified = await database.read(partial(_verify, progress=progress))
        async with _api_database(database, source) as api:
            more, unread = await verify_instances(database, api=api, source=source)
        return findings + more, unread, verified
    finally:
        await database.close()


def _verify(connection: sa.Connection, progress: Progress) -> tuple[list[Finding], Verified]:
    findings = verify_ledger(connection, progress)
    counted = [
        connection.scalar(sa.select(sa.func.count()).select_from(table)) for table in (commits, allocations)
    ]
    return findings, Verified(*(each or 0 for each in counted))


@asynccontextmanager
async def _api_database(ledger: Database, source: Source | None) -> AsyncIterator[Database | None]:
    """Open the API database of a configuration; None if it is the ledger's, or there is none."""
    url = None if source is None else api_database_url(source)
    if url is None or CONDUCTOR.revision(ledger) is not None:
        yield None
        return
    database = Database(url, read_only=True, answer_seconds=COMMAND_ANSWER_SECONDS)
    try:
        yield database
    finally:
        await database.close()


def check_ledger(database: Database) -> None:
    """Check that the ledger's tables are at the newest revision.

    Raises:
        StorageError: the tables are not at the newest revision.
        OperatorError: it is a database of another kind, to which an upgrade would not add a ledger.
    """
    if LEDGER.revision(database) is None:
        for schema, kind in KINDS.items():
            if schema.revision(database) is not None:
                raise OperatorError(
                    f"database {database} is {kind} and has no ledger: name the database of the Placement API"
                )
    LEDGER.check(database)
