"""Node tables of the past, made again from the journals of the nodes."""

import uuid
from collections.abc import Callable, Sequence
from typing import Protocol

import structlog

from roost.ledger.retention import DAY, CommitRetention
from roost.model.node_event import NodeEvent
from roost.process.lane import Lane
from roost.scheduler.nodes.table import NodeTable
from roost.state.api_database.node_journal import (
    EventDecoder,
    EventEncoder,
    JournalBatch,
    NodeJournals,
    Stored,
    insert_batches,
    journal_too_short,
)
from roost.storage import Database, StorageError

_log = structlog.get_logger()


class Batches(Protocol):
    """The batches of journals, as `NodeJournals` reads them."""

    async def base(self, journal: str, version: int) -> Stored:
        """Return the newest base of a journal that is not after ``version``."""

    async def after(self, journal: str, batch: int) -> list[Stored]:
        """Return the next batches of a journal after one, in order, without bases."""


class PastTable:
    """The node table of a journal, moved from one of its versions to another."""

    def __init__(self, journals: Batches, journal: str) -> None:
        self._journals = journals
        self._journal = journal
        self._table: NodeTable | None = None
        self._version = 0
        self._batch = 0
        self._ahead: list[NodeEvent] = []
        self._decoder = EventDecoder()

    async def at(self, version: int) -> NodeTable:
        """Return the table at a version. The next call moves it on; a caller must undo its own changes first.

        Raises:
            JournalMissing: the journal lacks events of this version.
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
            raise journal_too_short(self._journal, self._version, version)
        self._batch = batches[-1].batch
        events = [event for each in batches for event in self._decoder.decode(each.body)]
        self._ahead = events[::-1]


LEAST_BEFORE_BASE = 1024 * 1024
"""Least number of bytes of events between two bases, however small the first base is."""


TIMES_BASE = 8
"""Bytes of events after which a new base is written, as a multiple of the bytes of the base before. So bases
add an eighth to the journal, and a state is made again in at most so many times the time to read a base."""


MOST_WAITING = 64 * 1024 * 1024
"""Bytes of batches that wait for a database that cannot be written. Beyond, they are dropped and a new
journal begins: the runs of the dropped batches cannot be decided again."""


class JournalWriter:
    """Writes the journal of one node table. Raises `StorageError` if the database cannot be used."""

    def __init__(self, database: Database, table: NodeTable) -> None:
        self._database = database
        self._table = table
        # Reports of ten thousand nodes are encoded in a thread: neither the event loop nor a transaction may
        # take so long.
        self._lane = Lane("node-journal")
        self._journal = ""
        self._encoder = EventEncoder()
        self._waiting: list[JournalBatch] = []
        self._number = 0
        self._size_of_base = self._size_of_events = 0
        self._begin()

    async def close(self) -> None:
        """End the writer's thread."""
        await self._lane.close(None)

    async def write(self, at: float) -> None:
        """Write the events since the last call. Events that cannot be written wait for the next call.

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
            await self._database.write(lambda connection: insert_batches(connection, self._journal, waiting))
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
        self._waiting.append(JournalBatch(self._number, events, last, at, base))
        if base:
            self._size_of_events = 0

    def _encode(self, batches: Sequence[JournalBatch]) -> None:
        """Encode batches that are not encoded yet, in the lane's thread. A cancelled call goes on to its end
        there before the next one begins."""
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


class FeedJournal:
    """The journal of the node table that a feed keeps up to date.

    Events that cannot be written wait for the next call. ``retention`` says for how many days batches are
    kept, ``clock`` is in seconds since the epoch.
    """

    def __init__(
        self,
        database: Database,
        table: NodeTable,
        retention: CommitRetention,
        monotonic: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self._writer = JournalWriter(database, table)
        self._journals = NodeJournals(database)
        self._retention = retention
        self._monotonic = monotonic
        self._clock = clock
        self._trimmed = monotonic()

    async def write(self) -> None:
        """Write new events, and remove old batches when that is due. A failure is logged."""
        now, kept = self._clock(), self._retention
        try:
            await self._writer.write(now)
            if kept.interval and self._monotonic() - self._trimmed >= kept.interval:
                self._trimmed = self._monotonic()
                await self._journals.trim(now - kept.days * DAY)
        except StorageError as error:
            _log.warning("the node journal cannot be written", error=str(error))

    async def close(self) -> None:
        """Write the events that are not in the journal yet, and end the writer."""
        await self.write()
        await self._writer.close()
