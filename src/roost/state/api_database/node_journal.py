"""The node journals: every event of each scheduler's node table, in the API database.

Each process with a node table has a journal of its own, since two tables differ: two processes read the cells
at different moments, and each has outstanding claims of which the other learns only by reports. A run's
record names the journal and the number of the newest event of its table, and so the exact state of the table.

A journal is a sequence of batches. A *base* is a batch whose events give the state from nothing; the others
continue from the batch before. So all batches before a base can be removed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.node_event import NodeEvent
from roost.state.api_database.tables import node_journal
from roost.storage import Database

BATCHES_AT_ONCE = 100


class JournalBatch:
    """Events of a table up to the event ``last``, and their encoded form once the writer has made it."""

    __slots__ = ("at", "base", "body", "events", "last", "number")

    def __init__(self, number: int, events: Sequence[NodeEvent], last: int, at: float, base: bool) -> None:
        self.number = number
        self.events = events
        self.last = last
        self.at = at
        self.base = base
        self.body: bytes | None = None


class Stored(NamedTuple):
    """A batch as it is stored."""

    batch: int
    last: int
    base: bool
    body: bytes


class JournalMissing(Exception):
    """A journal does not reach, or no longer reaches, the version that is asked for."""


class NodeJournals:
    """The journals that processes have written. Raises `StorageError` if the database cannot be used."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def newest(self) -> tuple[str, int] | None:
        """Return the journal written last and the number of its last event; None without journals."""
        query = sa.select(node_journal.c.journal, node_journal.c.last)
        query = query.order_by(node_journal.c.at.desc(), node_journal.c.batch.desc()).limit(1)
        row = await self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else (row.journal, row.last)

    async def base(self, journal: str, version: int) -> Stored:
        """Return the newest base of a journal that is not after ``version``.

        Raises:
            JournalMissing: there is none, or the journal ends before ``version``.
        """
        ends = sa.select(sa.func.min(node_journal.c.last), sa.func.max(node_journal.c.last))
        of_it = node_journal.c.journal == journal
        bases = _STORED.where(of_it, node_journal.c.base, node_journal.c.last <= version)

        def read(connection: Connection) -> tuple[int | None, int | None, Stored | None]:
            first, last = connection.execute(ends.where(of_it)).one()
            row = connection.execute(bases.order_by(node_journal.c.batch.desc()).limit(1)).one_or_none()
            return first, last, None if row is None else Stored(*row)

        first, last, found = await self._database.read(read)
        if first is None or last is None:
            raise JournalMissing(f"node journal {journal} is not kept")
        if last < version:
            raise journal_too_short(journal, last, version)
        if found is None:
            raise JournalMissing(f"node journal {journal} is kept from {first} on, and not at {version}")
        return found

    async def after(self, journal: str, batch: int) -> list[Stored]:
        """Return the batches of a journal after one, in order, without bases, at most `BATCHES_AT_ONCE`."""
        query = _STORED.where(
            node_journal.c.journal == journal, node_journal.c.batch > batch, ~node_journal.c.base
        )
        query = query.order_by(node_journal.c.batch).limit(BATCHES_AT_ONCE)
        return await self._database.read(
            lambda connection: [Stored(*row) for row in connection.execute(query)]
        )

    async def trim(self, older_than: float) -> int:
        """Remove batches that are not needed for states at ``older_than`` (seconds since the epoch) or later.

        Returns their number.
        """
        columns = node_journal.c
        newest = sa.select(columns.journal, sa.func.max(columns.at)).group_by(columns.journal)
        bases = sa.select(columns.journal, sa.func.max(columns.batch)).where(
            columns.base, columns.at <= older_than
        )

        def write(connection: Connection) -> int:
            ended = [journal for journal, at in connection.execute(newest).all() if at < older_than]
            removed = sum(
                connection.execute(sa.delete(node_journal).where(columns.journal == journal)).rowcount
                for journal in ended
            )
            for journal, batch in connection.execute(bases.group_by(columns.journal)).all():
                before = sa.delete(node_journal).where(columns.journal == journal, columns.batch < batch)
                removed += connection.execute(before).rowcount
            return removed

        return await self._database.write(write)


_STORED = sa.select(node_journal.c.batch, node_journal.c.last, node_journal.c.base, node_journal.c.body)


def journal_too_short(journal: str, last: int, version: int) -> JournalMissing:
    return JournalMissing(
        f"node journal {journal} ends at {last}, before {version}: its process was killed, or could not "
        "write to the API database, or has not written yet"
    )


def insert_batches(connection: Connection, journal: str, batches: Sequence[JournalBatch]) -> None:
    """Insert batches, except those that were inserted by an earlier write whose answer was lost."""
    of_it = node_journal.c.journal == journal
    there = connection.execute(sa.select(sa.func.max(node_journal.c.batch)).where(of_it)).scalar() or 0
    rows = [
        {
            "journal": journal,
            "batch": each.number,
            "last": each.last,
            "at": each.at,
            "base": each.base,
            "body": each.body,
        }
        for each in batches
        if each.number > there
    ]
    if rows:
        connection.execute(sa.insert(node_journal), rows)
