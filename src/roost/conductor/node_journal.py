"""The node journals: every event of each scheduler's node table, in the API database.

Each process with a node table has a journal of its own. What it knows, and in which order it learned it, is
its own: two processes read the cells at different moments, and each has claims outstanding that the other
learns of by reports. A run's record names the journal and the number of the newest event of its table, and
so the exact state of the table.

A journal is a sequence of batches. A *base* is a batch whose events give the state from nothing; the others
go on from the batch before. So whatever is older than a base can be removed.
"""

import uuid
from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.conductor.node_events_codec import EventDecoder, EventEncoder
from roost.conductor.tables import node_journal
from roost.lane import Lane
from roost.model.node_event import NodeEvent
from roost.scheduler.nodes import NodeTable
from roost.storage import Database

LEAST_BEFORE_BASE = 1024 * 1024
"""Bytes of events after which a base is written, if the base before it was small."""

TIMES_BASE = 8
"""A base is written after so many times its predecessor's bytes of events. So bases add an eighth to the
journal, and to make a state again takes at most so many times as long as to read a base."""

MOST_WAITING = 64 * 1024 * 1024
"""Bytes of batches that wait for a database that cannot be written. Beyond, they are dropped and a new
journal begins: the runs between cannot be decided again."""

BATCHES_AT_ONCE = 100


class Batch:
    """Events of a table up to the event ``last``, and their encoded form once the writer has made it."""

    __slots__ = ("at", "base", "body", "events", "last", "number")

    def __init__(self, number: int, events: Sequence[NodeEvent], last: int, at: float, base: bool) -> None:
        self.number = number
        self.events = events
        self.last = last
        self.at = at
        self.base = base
        self.body: bytes | None = None


class JournalWriter:
    """Writes the journal of one node table. Raises `StorageError` if the database cannot be used."""

    def __init__(self, database: Database, table: NodeTable) -> None:
        self._database = database
        self._table = table
        # The event loop must not encode the reports of ten thousand nodes, nor a transaction last so long.
        self._lane = Lane("node-journal")
        self._journal = ""
        self._encoder = EventEncoder()
        self._waiting: list[Batch] = []
        self._number = 0
        self._size_of_base = self._size_of_events = 0
        self._begin()

    async def close(self) -> None:
        """End the writer's thread."""
        await self._lane.close(None)

    async def write(self, at: float) -> None:
        """Write the events since the last call. What cannot be written waits for the next call.

        ``at``: seconds since the epoch.
        """
        if sum(len(batch.body or b"") for batch in self._waiting) > MOST_WAITING:
            self._begin()
        table = self._table
        version = table.version or 0
        events = table.take_events()
        if events and self._number:
            self._add(events, version, at, base=False)
        if self._size_of_events > max(LEAST_BEFORE_BASE, TIMES_BASE * self._size_of_base) or not self._number:
            self._add(table.state(), version, at, base=True)
        waiting = [*self._waiting]
        if waiting:
            await self._lane.run(lambda: self._encode(waiting))
            await self._database.write(lambda connection: _insert(connection, self._journal, waiting))
            self._waiting = [batch for batch in self._waiting if batch not in waiting]

    def _begin(self) -> None:
        self._journal = str(uuid.uuid4())
        self._table.record(self._journal)
        self._encoder = EventEncoder()
        self._waiting = []
        self._number = 0
        self._size_of_base = self._size_of_events = 0

    def _add(self, events: Sequence[NodeEvent], last: int, at: float, *, base: bool) -> None:
        self._number += 1
        self._waiting.append(Batch(self._number, events, last, at, base))
        if base:
            self._size_of_events = 0

    def _encode(self, batches: Sequence[Batch]) -> None:
        """Encode batches that are not encoded yet, in the lane's thread. A call that was cancelled has gone
        on there before the next one begins."""
        for batch in batches:
            if batch.body is not None:
                continue
            if batch.base:
                batch.body = self._encoder.encode_base(batch.events)
                self._size_of_base = len(batch.body)
            else:
                batch.body = self._encoder.encode(batch.events)
                self._size_of_events += len(batch.body)
            batch.events = ()


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
        """The journal that was written last and the number of its last event; None without journals."""
        query = sa.select(node_journal.c.journal, node_journal.c.last)
        query = query.order_by(node_journal.c.at.desc(), node_journal.c.batch.desc()).limit(1)
        row = await self._database.read(lambda connection: connection.execute(query).one_or_none())
        return None if row is None else (row.journal, row.last)

    async def base(self, journal: str, version: int) -> Stored:
        """The newest base of a journal that is not after ``version``.

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
            raise _too_short(journal, last, version)
        if found is None:
            raise JournalMissing(f"node journal {journal} is kept from {first} on, and not at {version}")
        return found

    async def after(self, journal: str, batch: int) -> list[Stored]:
        """The batches of a journal after one, in order, at most `BATCHES_AT_ONCE`; bases left out."""
        query = _STORED.where(
            node_journal.c.journal == journal, node_journal.c.batch > batch, ~node_journal.c.base
        )
        query = query.order_by(node_journal.c.batch).limit(BATCHES_AT_ONCE)
        return await self._database.read(
            lambda connection: [Stored(*row) for row in connection.execute(query)]
        )

    async def trim(self, older_than: float) -> int:
        """Remove batches that nothing made at ``older_than`` (seconds since the epoch) or later needs.
        Returns their number."""
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


class PastTable:
    """The node table of a journal, moved from one of its versions to another."""

    def __init__(self, journals: NodeJournals, journal: str) -> None:
        self._journals = journals
        self._journal = journal
        self._table: NodeTable | None = None
        self._version = 0
        self._batch = 0
        self._ahead: list[NodeEvent] = []
        self._decoder = EventDecoder()

    async def at(self, version: int) -> NodeTable:
        """The table at a version; the next call changes it, and whoever changes it must undo that first.

        Raises:
            JournalMissing: the journal does not tell it.
        """
        if self._table is None or version < self._version:
            base = await self._journals.base(self._journal, version)
            self._table, self._version, self._batch = NodeTable(), base.last, base.batch
            self._ahead = []
            for event in self._decoder.decode_base(base.body):
                self._table.apply(event)
        table = self._table
        while self._version < version:
            if not self._ahead:
                await self._read_on(version)
            table.apply(self._ahead.pop())
            self._version += 1
        return table

    async def _read_on(self, version: int) -> None:
        batches = await self._journals.after(self._journal, self._batch)
        if not batches:
            raise _too_short(self._journal, self._version, version)
        self._batch = batches[-1].batch
        events = [event for each in batches for event in self._decoder.decode(each.body)]
        self._ahead = events[::-1]


_STORED = sa.select(node_journal.c.batch, node_journal.c.last, node_journal.c.base, node_journal.c.body)


def _too_short(journal: str, last: int, version: int) -> JournalMissing:
    return JournalMissing(
        f"node journal {journal} ends at {last}, before {version}: its process was killed, or could not "
        "write to the API database, or has not written yet"
    )


def _insert(connection: Connection, journal: str, batches: Sequence[Batch]) -> None:
    """Insert batches, but for those that a write whose answer was lost has inserted."""
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
