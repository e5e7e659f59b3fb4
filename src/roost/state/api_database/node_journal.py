"""The node journals: every event of each scheduler's node table, in the API database.

Each process with a node table has a journal of its own, since two tables differ: two processes read the cells
at different moments, and each has outstanding claims of which the other learns only by reports. A run's
record names the journal and the number of the newest event of its table, and so the exact state of the table.

A journal is a sequence of batches. A *base* is a batch whose events give the state from nothing; the others
continue from the batch before. So all batches before a base can be removed. Of a report only the differences
from the one before are stored, compressed.
"""

import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.model.node import NodeReport
from roost.model.node_event import NodeEvent, NodeRemoved, NodeReported, ReportChanged
from roost.state.api_database.tables import node_journal
from roost.storage import Database

LEVEL = 3
"""The level of zlib: it saves four fifths of what the highest level saves, in a third of the time."""

BATCHES_AT_ONCE = 100
_TYPES = {each.name: each.type for each in msgspec.structs.fields(NodeReport)}
_FIELDS = [name for name in _TYPES if name not in ("node", "last_seen", "instances")]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[NodeEvent | ReportChanged]).decode


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


class JournalTooShort(JournalMissing):
    """A journal ends before the version: it may yet be written."""


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


def journal_too_short(journal: str, last: int, version: int) -> JournalTooShort:
    return JournalTooShort(
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


class EventEncoder:
    """Encodes the batches of one journal in their order."""

    def __init__(self) -> None:
        self._last: dict[str, NodeReport] = {}

    def encode(self, events: Iterable[NodeEvent]) -> bytes:
        """Encode the events after those encoded before."""
        return zlib.compress(_encode([self._smaller(event) for event in events]), LEVEL)

    def encode_base(self, events: Iterable[NodeEvent]) -> bytes:
        """Encode the events that give a state from nothing; the events encoded next continue from it."""
        self._last.clear()
        return self.encode(events)

    def _smaller(self, event: NodeEvent) -> NodeEvent | ReportChanged:
        if isinstance(event, NodeRemoved):
            self._last.pop(event.node, None)
        if not isinstance(event, NodeReported):
            return event
        new = event.report
        old = self._last.get(new.node)
        self._last[new.node] = new
        if old is None:
            return NodeReported(msgspec.structs.replace(new, last_seen=0.0))
        return _difference(old, new)


class EventDecoder:
    """Decodes the batches of one journal, in their order from a base on."""

    def __init__(self) -> None:
        self._last: dict[str, NodeReport] = {}

    def decode(self, body: bytes) -> list[NodeEvent]:
        """Decode a batch. Raises: `msgspec.MsgspecError` or `zlib.error` for any other bytes."""
        return [self._whole(event) for event in _decode(zlib.decompress(body))]

    def decode_base(self, body: bytes) -> list[NodeEvent]:
        """Decode a base, from which the batches after it go on."""
        self._last.clear()
        return self.decode(body)

    def _whole(self, event: NodeEvent | ReportChanged) -> NodeEvent:
        if isinstance(event, NodeRemoved):
            self._last.pop(event.node, None)
        elif isinstance(event, NodeReported):
            self._last[event.report.node] = event.report
        elif isinstance(event, ReportChanged):
            report = self._last[event.node] = _changed(self._last[event.node], event)
            return NodeReported(report)
        return event


def _difference(old: NodeReport, new: NodeReport) -> ReportChanged:
    fields = {name: value for name in _FIELDS if (value := getattr(new, name)) != getattr(old, name)}
    if new.instances == old.instances:
        return ReportChanged(new.node, fields)
    before = old.instances
    came = {name: each for name, each in new.instances.items() if before.get(name) != each}
    return ReportChanged(new.node, fields, came, tuple(name for name in before if name not in new.instances))


def _changed(old: NodeReport, event: ReportChanged) -> NodeReport:
    fields: dict[str, Any] = {
        name: msgspec.convert(value, _TYPES[name]) for name, value in event.fields.items()
    }
    if event.came or event.went:
        gone = set(event.went)
        instances = {name: each for name, each in old.instances.items() if name not in gone}
        fields["instances"] = {**instances, **event.came}
    return msgspec.structs.replace(old, **fields)
