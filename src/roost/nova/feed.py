"""Feeds the scheduler's node table from the databases of an existing Nova."""

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import structlog

from roost.ledger.retention import CommitRetention
from roost.model.node_event import NodeEvent
from roost.model.operator_word import Subject
from roost.nova.arrivals import Arrivals
from roost.nova.calls import Hints
from roost.nova.cell_feed import CellFeed
from roost.nova.database.aggregates import read_mark
from roost.nova.database.cells import NovaCell, NovaCells
from roost.nova.database.services import read_disabled
from roost.nova.host_aggregates import NovaAggregates
from roost.nova.host_mappings import HostMappings
from roost.nova.options import BridgeOptions
from roost.nova.read_rounds import PATIENCE_SECONDS, ReadRounds
from roost.nova.settlement import ClaimSettlement
from roost.scheduler.nodes.journal import FeedJournal
from roost.scheduler.nodes.operator_words import OperatorWords
from roost.scheduler.nodes.table import NodeTable
from roost.storage import Database, DatabaseUnavailable, StorageError

EVERY_SECONDS = 1.0
"""Seconds between two looks at the databases without a hint."""

HINT_SECONDS = 0.2
"""Least seconds between two looks, however many casts say that something has changed."""

RENEW_SECONDS = 2.0
"""Seconds in which requests that are about to be refused share one read of all that has changed: it reads a
short row of each service and node, and a full cloud refuses many requests."""

_API = "api"
_CLAIMS = "claims"
_MAPPINGS = "mappings"

_log = structlog.get_logger()


class NovaFeed(Hints):
    """Keeps a node table up to date from Nova's databases, which it only reads.

    From each cell it reads the compute nodes, the signs of life of their services, and the instances on
    them; from the API database the cells and the host aggregates. ``words`` are what operators say: services
    disabled or forced down, and host aggregates. The cell of a node is the cell's uuid.

    A host is down if its service has stood still for ``down_seconds`` by the ``monotonic`` clock, or its cell
    could not be read for so long. Cells are read at the same time, so that none waits for another one's time
    limit: a read that takes longer than ``patience_seconds`` goes on while the others are repeated, and
    decisions do not wait for it. ``image_properties``: those of the images of instances are read too, for
    `ImagePropertiesWeigher`. Changes of the table go into a journal in the database ``journal``;
    ``retention`` says for how many days.
    """

    def __init__(
        self,
        cells: NovaCells,
        table: NodeTable,
        options: BridgeOptions,
        *,
        down_seconds: float = 60.0,
        image_properties: bool = False,
        patience_seconds: float = PATIENCE_SECONDS,
        journal: Database | None = None,
        retention: CommitRetention = CommitRetention(),  # noqa: B008 - it is frozen
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cells = cells
        self._table = table
        self._options = options
        self._down_seconds = down_seconds
        self._image_properties = image_properties
        self._journal = None if journal is None else FeedJournal(journal, table, retention, monotonic, clock)
        self._monotonic = monotonic
        self.words = OperatorWords(self._read_words)
        self._aggregates = NovaAggregates(cells.api, table, monotonic)
        self._mappings = HostMappings(cells.api)
        self._mapped: float | None = None
        self._arrivals = Arrivals(monotonic)
        self._settlement = ClaimSettlement(cells.api, table, self._arrivals, monotonic)
        self._feeds: dict[str, CellFeed] = {}
        self._flags: dict[str, frozenset[Subject]] = {}
        self._cells_read: float | None = None
        self._failed: dict[str, str] = {}
        self._patience = patience_seconds
        self._rounds = ReadRounds(patience_seconds)
        self._hints = threading.Lock()
        self._changed_nodes: set[str] = set()
        self._changed_instances: set[str] = set()
        self._refreshing, self._renewing = asyncio.Lock(), asyncio.Lock()
        self._renewed = -math.inf
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hinted = asyncio.Event()

    # Hints, from any thread

    def node_changed(self, host: str) -> None:
        with self._hints:
            self._changed_nodes.add(host)
        self._wake()

    def instances_changed(self, host: str) -> None:
        with self._hints:
            self._changed_instances.add(host)
        self._wake()

    def aggregates_changed(self) -> None:
        self._aggregates.again = True
        self._wake()

    def _wake(self) -> None:
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._hinted.set)

    # Metrics

    @property
    def ages(self) -> Mapping[str, float | None]:
        """Seconds since each cell was read as a whole, by its uuid; None if it never was."""
        now = self._monotonic()
        return {
            uuid: None if feed.read_at is None else now - feed.read_at for uuid, feed in self._feeds.items()
        }

    @property
    def oldest_age(self) -> float:
        """Seconds since the cell was read whose last read is the oldest. A cell that never was read counts
        from when it was found."""
        read = (feed.made_at if feed.read_at is None else feed.read_at for feed in self._feeds.values())
        now = self._monotonic()
        return now - min(read, default=now)

    @property
    def rows_read(self) -> Mapping[str, int]:
        """The rows read from each cell so far, by its uuid."""
        return {uuid: feed.rows for uuid, feed in self._feeds.items()}

    @property
    def cells_down(self) -> Mapping[str, str]:
        """The error of each cell that could not be read last time, by its uuid."""
        return {uuid: error for uuid, error in self._failed.items() if uuid in self._feeds}

    @property
    def unmapped_hosts(self) -> frozenset[str]:
        """The hosts with nodes that are not mapped to their cell."""
        return self._mappings.unmapped

    @property
    def is_loaded(self) -> bool:
        """True once the cells were read, and all nodes of each cell that can be read."""
        return self._cells_read is not None and all(
            feed.read_at is not None or uuid in self._failed for uuid, feed in self._feeds.items()
        )

    async def loaded(self) -> None:
        """Wait until `is_loaded`, while the feed runs."""
        while not self.is_loaded:
            await asyncio.sleep(HINT_SECONDS)

    # The reads

    async def run(self) -> None:
        """Keep the table up to date until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            self._hinted.clear()
            await self.refresh()
            await asyncio.sleep(HINT_SECONDS)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hinted.wait(), EVERY_SECONDS - HINT_SECONDS)

    async def refresh(self) -> None:
        """Bring the table up to date once, except for databases that do not answer within seconds."""
        async with self._refreshing:
            await self._refresh()

    @property
    def changes(self) -> int:
        """A number that rises with each change of the cells' hosts that a decision may depend on."""
        return sum(feed.changes for feed in self._feeds.values())

    async def look(self) -> None:
        """Take in what operators have said, as before each decision."""
        await self.words.look()

    async def renew(self) -> None:
        """Read all that has changed at once, whatever is due: a request is about to be refused.

        So a host that has just come counts where no other one serves. Requests share a read for
        `RENEW_SECONDS`.
        """
        async with self._renewing:
            if self._monotonic() - self._renewed < RENEW_SECONDS:
                return
            for feed in self._feeds.values():
                feed.hurry()
            await self.refresh()
            self._renewed = self._monotonic()

    async def _refresh(self) -> None:
        await self._rounds.make({_API: self._read_cells})
        await self.words.look()
        with self._hints:
            nodes, self._changed_nodes = self._changed_nodes, set()
            instances, self._changed_instances = self._changed_instances, set()
        if nodes or instances:
            self._hear(nodes, instances)
        await self._rounds.make(
            {uuid: partial(self._refresh_cell, feed) for uuid, feed in self._feeds.items()}
        )
        await self._rounds.make({_CLAIMS: self._settle, _MAPPINGS: self._read_mappings})
        if self._journal is not None:
            await self._journal.write()

    def _hear(self, nodes: set[str], instances: set[str]) -> None:
        """Tell each cell of its hosts that have changed, and all of hosts that none has: they may be new."""
        here = {uuid: feed.hosts for uuid, feed in self._feeds.items()}
        known = set[str]().union(*here.values())
        for uuid, feed in self._feeds.items():
            mine = here[uuid]
            feed.hear(nodes & mine | nodes - known, instances & mine | instances - known)

    async def close(self) -> None:
        """End the reads, and write the events that are not in the journal yet. `run` must be cancelled."""
        await self._rounds.cancel()
        if self._journal is not None:
            await self._journal.close()

    async def _read_cells(self) -> None:
        """Read the cell mappings if they are due."""
        now = self._monotonic()
        due = self._cells_read is None or now - self._cells_read >= self._options.cells_seconds
        try:
            if due:
                await self._cells.refresh()
            elif _API in self._failed:
                await self._cells.api.read(read_mark())
        except StorageError as error:
            self._fail(_API, error)
            return
        self._failed.pop(_API, None)
        if not due:
            return
        self._cells_read = now
        cells = self._cells.cells
        for gone in self._feeds.keys() - cells.keys():
            await self._rounds.cancel(gone)
            self._feeds.pop(gone).leave()
            flags = self._flags.pop(gone, frozenset())
            self._table.set_words(dict.fromkeys(flags, True))
            self._failed.pop(gone, None)
        for uuid, cell in cells.items():
            before = self._feeds.get(uuid)
            if before is None or before.cell.database is not cell.database:
                await self._rounds.cancel(uuid)
                self._feeds[uuid] = self._fed(cell)

    def _fed(self, cell: NovaCell) -> CellFeed:
        return CellFeed(
            cell,
            self._table,
            self._aggregates,
            self._arrivals,
            down_seconds=self._down_seconds,
            nodes_seconds=self._options.nodes_seconds,
            image_properties=self._image_properties,
            monotonic=self._monotonic,
        )

    async def _refresh_cell(self, feed: CellFeed) -> None:
        uuid = feed.cell.uuid
        try:
            if uuid in self._failed:
                # The words of operators are read from cells that answer, as decisions wait for them.
                await feed.cell.database.read(read_disabled())
                self._failed.pop(uuid, None)
                await self.words.look()
            # No node is in the table before the words that may forbid it.
            if self._aggregates.known and uuid in self._flags:
                await feed.refresh()
        except StorageError as error:
            self._fail(uuid, error)
        finally:
            feed.count_rows()
        if uuid in self._failed:
            feed.away()

    async def _settle(self) -> None:
        readable = {uuid: feed for uuid, feed in self._feeds.items() if uuid not in self._failed}
        try:
            await self._settlement.settle(readable)
        except StorageError as error:
            _log.warning("outstanding claims cannot be settled", error=str(error))

    async def _read_mappings(self) -> None:
        """Look for hosts that are not mapped, as often as for cells."""
        now = self._monotonic()
        if not self.is_loaded or (
            self._mapped is not None and now - self._mapped < self._options.cells_seconds
        ):
            return
        try:
            await self._mappings.read(self._feeds.values())
            self._mapped = now
        except StorageError as error:
            self._fail(_API, error)

    def _fail(self, cell: str, error: StorageError) -> None:
        """Log the first of several failures of a cell, or of the API database."""
        if cell not in self._failed:
            what = "Nova's API database cannot be read" if cell == _API else "a cell of Nova cannot be read"
            _log.warning(what, cell=cell, error=str(error))
        self._failed[cell] = str(error)

    async def _read_words(self) -> Sequence[NodeEvent]:
        """Take in services that are disabled or forced down, and aggregates; returns the events.

        A database that did not answer last time is left out, and one that does not answer within seconds
        keeps its words: decisions wait for this.
        """
        events: list[NodeEvent] = []
        reads = {uuid: partial(self._read_flags, feed.cell, events) for uuid, feed in self._feeds.items()}
        reads[_API] = partial(self._read_aggregates, events)
        await asyncio.gather(
            *(self._read_word(name, read) for name, read in reads.items() if name not in self._failed)
        )
        return events

    async def _read_word(self, name: str, read: Callable[[], Awaitable[None]]) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await read()
        except StorageError as error:
            self._fail(name, error)
        except TimeoutError:
            self._fail(name, DatabaseUnavailable(f"no answer for {self._patience:g} s"))

    async def _read_aggregates(self, events: list[NodeEvent]) -> None:
        """Take in changed aggregates."""
        events += await self._aggregates.read()

    async def _read_flags(self, cell: NovaCell, events: list[NodeEvent]) -> None:
        """Take in the disabled services of a cell."""
        hosts = await cell.database.read(read_disabled())
        flags = frozenset(Subject(cell.uuid, host) for host in hosts)
        before, self._flags[cell.uuid] = self._flags.get(cell.uuid, frozenset()), flags
        events += self._table.set_words({each: each not in flags for each in before ^ flags})
