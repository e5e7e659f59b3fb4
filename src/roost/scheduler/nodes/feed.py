"""Feeds the scheduler's node table from agents' reports, cells' databases and operators' words."""

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import NamedTuple, Protocol

import structlog
from msgspec.structs import replace

from roost.ledger.retention import CommitRetention
from roost.model.instance import ASSIGNED, ON_ITS_HOST, STARTING
from roost.model.node_event import NodeEvent
from roost.model.operator_word import Subject
from roost.scheduler.nodes.journal import FeedJournal
from roost.scheduler.nodes.operator_words import OperatorWords
from roost.scheduler.nodes.table import NodeTable
from roost.state.api_database.operator_words import SaidChanges
from roost.state.cell_database import Cell
from roost.state.cell_database.disabled import read_flags
from roost.state.cell_database.nodes import read_mark, read_reports, read_signs
from roost.state.leases import ObservedLiveness
from roost.storage import Database, StorageError

_log = structlog.get_logger()


LOST_SECONDS = 300.0
"""Seconds that a claim counts while its instance is in no cell: the instance may be on its way there."""

DECODED_AT_ONCE = 100
"""Nodes whose NUMA topologies and PCI pools are decoded before the event loop may run other tasks."""

LOOK_SECONDS = 5.0
"""Seconds between two reads of the signs of life of all hosts of a cell without other changes."""

LOOK_AGAIN_SECONDS = 60.0
"""Seconds between two reads of a built instance that its node's reports do not list."""


class _Look(NamedTuple):
    """The mark of a cell at its last full read, and the time of that read in seconds."""

    mark: tuple[object, ...]
    at: float


class WordSource(Protocol):
    """The source of operators' words: see `roost.state.api_database.operator_words.WordStore.changes`."""

    async def changes(self, after: int | None = None) -> SaidChanges | None: ...


class NodeFeed:
    """Keeps a node table up to date from the databases of cells and the words of operators.

    From each cell it reads changed reports, signs of life of hosts, removed nodes, and the instances whose
    claims are outstanding (see `roost.scheduler.nodes.outstanding`). From ``source`` it reads the words of
    operators: host aggregates, and what is enabled and disabled. ``words`` has the words taken in so far, for
    the runs of a scheduler.

    A host is down if its session has stood still for ``down_seconds`` by the ``monotonic`` clock, or its cell
    could not be read for so long. ``cells`` may change: the nodes of a cell that is gone are removed. Changes
    of the table go into a journal in the database ``journal``; ``retention`` says for how many days.
    """

    def __init__(
        self,
        cells: Iterable[Cell],
        table: NodeTable,
        every_seconds: float = 1.0,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        journal: Database | None = None,
        source: WordSource | None = None,
        retention: CommitRetention = CommitRetention(),  # noqa: B008 - it is frozen
        down_seconds: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cells = cells
        self._table = table
        self._every_seconds = every_seconds
        self._monotonic = monotonic
        self._journal = None if journal is None else FeedJournal(journal, table, retention, monotonic, clock)
        self.words = OperatorWords(self._read_words)
        self._source = source
        self._version: int | None = None
        # The last word on each subject, and the subjects that cells have flagged as disabled. A flag counts
        # where no operator has said a word.
        self._said: dict[Subject, bool] = {}
        self._flags: defaultdict[str, frozenset[Subject]] = defaultdict(frozenset)
        self._liveness: defaultdict[str, ObservedLiveness] = defaultdict(
            partial(ObservedLiveness, down_seconds)
        )
        self._look_seconds = min(LOOK_SECONDS, down_seconds / 12)
        self._looked: dict[str, _Look] = {}
        self._up: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
        self._revisions: defaultdict[str, Mapping[str, int]] = defaultdict(dict)
        # By instance: when it was first not found, or first found built.
        self._since: dict[str, float] = {}

    async def run(self) -> None:
        """Keep the table up to date until cancelled."""
        while True:
            await self.refresh()
            await asyncio.sleep(self._every_seconds)

    async def refresh(self) -> None:
        """Bring the table up to date once."""
        try:
            await self.words.look()
        except StorageError as error:
            _log.warning("what operators say cannot be read", error=str(error))
        cells = list(self._cells)
        self._leave({cell.name for cell in cells})
        for cell in cells:
            try:
                await self._read_nodes(cell)
                await self._settle(cell)
            except StorageError as error:
                _log.warning("a cell cannot be read", cell=cell.name, error=str(error))
                self._looked.pop(cell.name, None)
                self._liveness[cell.name].away(self._monotonic())
                self._tell_up(cell)
        if self._journal is not None:
            await self._journal.write()
        self._since = {name: at for name, at in self._since.items() if self._table.outstanding.of(name)}

    def _leave(self, cells: AbstractSet[str]) -> None:
        """Remove the nodes of cells that are no more."""
        for gone in self._revisions.keys() - cells:
            self._table.remove(sorted(self._table.nodes_of_cell(gone)))
            self._set_flags(gone, frozenset())
            for kept in (self._revisions, self._up, self._liveness, self._looked, self._flags):
                kept.pop(gone, None)

    async def _read_words(self) -> list[NodeEvent]:
        """Take in the operators' words since the last call; returns the events of new ones.

        No cell is read, so that a slow cell delays no word. Raises `StorageError`, and has taken in nothing
        then.
        """
        if self._source is None:
            return []
        changes = await self._source.changes(self._version)
        if changes is None:
            return []
        said = {word.subject: word.enabled for word in changes.words}
        told = {**dict.fromkeys(self._said, True), **said} if changes.whole else dict(said)
        self._said = said if changes.whole else {**self._said, **said}
        told.update((each, self._said.get(each, False)) for each in self._flagged() & told.keys())
        events: list[NodeEvent] = [*self._table.set_words(told)]
        aggregates = changes.aggregates
        events += self._table.set_aggregates(aggregates.changed, aggregates.all)
        self._version = changes.version
        return events

    def _flagged(self) -> frozenset[Subject]:
        return frozenset[Subject]().union(*self._flags.values())

    def _set_flags(self, cell: str, flags: frozenset[Subject]) -> None:
        """Take in the subjects that a cell has flagged as disabled."""
        before, self._flags[cell] = self._flags[cell], flags
        self._table.set_words({each: self._said.get(each, each not in flags) for each in before ^ flags})

    async def close(self) -> None:
        """Write the events that are not in the journal yet. The feed must not be running."""
        if self._journal is not None:
            await self._journal.close()

    async def _read_nodes(self, cell: Cell) -> None:
        """Take in the changes of a cell's nodes."""
        began = self._monotonic()
        mark = await cell.read(read_mark())
        last = self._looked.get(cell.name)
        if last is not None and last.mark == mark and began - last.at < self._look_seconds:
            return
        signs = await cell.read(read_signs())
        liveness = self._liveness[cell.name]
        liveness.look(signs.sessions, signs.owing, began, self._monotonic())
        self._set_flags(cell.name, await cell.read(read_flags(cell.name)))
        before = self._revisions[cell.name]
        changed = tuple(node for node, number in signs.revisions.items() if before.get(node) != number)
        if changed:
            reports = await cell.read(read_reports(cell.name, changed))
            self._table.update(
                replace(report, last_seen=math.inf if report.host in liveness.up else -math.inf)
                for report in reports
            )
            # Otherwise the first request for hardware would decode all nodes while other decisions wait.
            while self._table.decode(DECODED_AT_ONCE):
                await asyncio.sleep(0)
        if self._table.count_of_cell(cell.name) != len(signs.revisions):
            self._table.remove(sorted(self._table.nodes_of_cell(cell.name) - signs.revisions.keys()))
        self._revisions[cell.name] = signs.revisions
        self._tell_up(cell)
        self._looked[cell.name] = _Look(mark, began)

    def _tell_up(self, cell: Cell) -> None:
        """Tell the table of the hosts of a cell that came up or went down."""
        before, up = self._up[cell.name], self._liveness[cell.name].up
        for host in sorted(before ^ up):
            self._table.set_up(host, host in up)
        self._up[cell.name] = up

    async def _settle(self, cell: Cell) -> None:
        """Update or release the outstanding claims on a cell's nodes by the states of their instances."""
        now, table = self._monotonic(), self._table
        due = {
            instance: taken
            for instance, taken in table.outstanding
            if table.cells[table.cell.item(taken.index)] == cell.name
            and (taken.building or self._since.get(instance, now) + LOOK_AGAIN_SECONDS <= now)
        }
        found = await cell.places(due) if due else {}
        for instance, taken in due.items():
            if table.outstanding.of(instance) != taken:
                continue
            place = found.get(instance)
            if place is None:
                since = self._since.setdefault(instance, now)
                if not taken.building or since + LOST_SECONDS <= now:
                    table.release(instance)
            elif place.state in ON_ITS_HOST:
                self._since.pop(instance, None)
                if place.node == table.nodes[taken.index] and place.state not in (ASSIGNED, STARTING):
                    table.built(instance)
                    self._since[instance] = now
            elif place.node == table.nodes[taken.index]:
                table.release(instance)
