"""The cells of a cloud, as operators add, disable and remove them in a running cloud."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping

import msgspec
import sqlalchemy as sa
import structlog
from sqlalchemy.engine import Connection

from roost.conductor.cell_conductor import KIND
from roost.conductor.hosts.watch import DOWN, NO_CONDUCTOR, NO_HOST_UP, UP, ServiceWatch
from roost.conductor.words.words import Words
from roost.model.errors import OperatorError
from roost.model.idempotency import KeyedAnswer
from roost.model.instance import Requester
from roost.model.operator_word import SaidWord, Subject
from roost.state.api_database.cell_mappings import (
    CELL0,
    CellMapping,
    hold_cell,
    map_unknown_cell,
    mapped_cells,
    section_of,
)
from roost.state.api_database.drains import DrainWord, find_drain_word
from roost.state.api_database.event_types import CloudEvent, EventKind
from roost.state.api_database.events import with_events
from roost.state.api_database.host_mappings import CellInUse, CellUnavailable, NoSuchCell
from roost.state.api_database.kept_answers import Once
from roost.state.api_database.open_cells import OpenCells, ask_cell
from roost.state.api_database.operator_words import withdraw_words
from roost.state.api_database.tables import cell_mappings, host_mappings, instance_mappings
from roost.state.cell_database import Cell
from roost.state.cell_database.departures import DrainProgress, describe_drain
from roost.state.cell_database.disabled import Word, read_word_of_cell
from roost.state.cell_database.host_work import SESSION
from roost.state.cell_database.hosts import hosts_after
from roost.state.cell_database.tables import instances
from roost.storage import Database, StorageError, read_identity, transaction
from roost.web.errors import BadRequest, Conflict

_log = structlog.get_logger()


class CellCounts(msgspec.Struct, frozen=True):
    """The number of a cell's instances by state, and the word of an operator who has disabled it."""

    instances: Mapping[str, int]
    word: Word | None = None


@transaction
def count_cell(connection: Connection) -> CellCounts:
    """Count the instances of a cell, and read its word."""
    query = sa.select(instances.c.state, sa.func.count()).group_by(instances.c.state)
    counted = {row[0]: row[1] for row in connection.execute(query)}
    return CellCounts(counted, read_word_of_cell()(connection))


@transaction
def forget_cell(connection: Connection, name: str) -> str | None:
    """Remove the mapping of a cell, and operators' words on it. Returns why it stays, None if removed."""
    hold_cell(connection, name)
    for table, what in ((host_mappings, "hosts"), (instance_mappings, "instances")):
        query = sa.select(sa.func.count()).select_from(table).where(table.c.cell == name)
        if number := connection.execute(query).scalar_one():
            return f"cell {name} has {number} {what}"
    connection.execute(sa.delete(cell_mappings).where(cell_mappings.c.name == name))
    withdraw_words(connection, name)
    return None


class SeenCell(msgspec.Struct, frozen=True):
    """A cell as this process sees it.

    ``counts``: None if it cannot be asked. ``conductors``: the number of cell conductors that are up.
    ``hosts``: the number of hosts with an agent's session, ``hosts_up``: of those that are up. ``said``: the
    last word of an operator on it, None without one.
    """

    mapping: CellMapping
    counts: CellCounts | None
    conductors: int
    hosts: int = 0
    hosts_up: int = 0
    said: SaidWord | None = None

    @property
    def enabled(self) -> bool | None:
        """True if an operator lets it have new instances, None if that is not known."""
        if self.said is not None:
            return self.said.enabled
        # Without a word, only a flag of an earlier version in the cell's own database counts.
        return None if self.counts is None else self.counts.word is None

    @property
    def reason(self) -> str | None:
        """The reason why it is disabled, None if it is not or no reason was given."""
        if self.said is not None:
            return self.said.reason
        return None if self.counts is None or self.counts.word is None else self.counts.word.reason

    @property
    def state(self) -> str:
        """The state: `DOWN` if the database does not answer, `NO_CONDUCTOR` or `NO_HOST_UP` if nothing is
        built there, else `UP`."""
        if self.counts is None:
            return DOWN
        if self.mapping.name == CELL0:
            return UP
        if not self.conductors:
            return NO_CONDUCTOR
        return NO_HOST_UP if self.hosts and not self.hosts_up else UP


class CellRegistry:
    """The cells of an API database. Raises `StorageError` if that cannot be used.

    ``clock``: seconds since the epoch.
    """

    def __init__(
        self,
        api: Database,
        cells: Mapping[str, Cell],
        watch: ServiceWatch,
        words: Words,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._api = api
        self._cells = cells
        self._watch = watch
        self._words = words
        self._clock = clock

    async def list(self) -> list[SeenCell]:
        """Return all cells, in order of names."""
        mappings = await self._api.read(mapped_cells)
        counts = await asyncio.gather(*(ask_cell(self._cells.get(name), count_cell()) for name in mappings))
        up: dict[str | None, int] = {}
        for seen in self._watch.services(frozenset((KIND,))):
            up[seen.cell] = up.get(seen.cell, 0) + (seen.state == UP)
        said = await self._words.store.of_cells()
        hosts = Counter((seen.cell, seen.state == UP) for seen in self._watch.services(frozenset((SESSION,))))
        return [
            SeenCell(
                mapping,
                counted,
                up.get(name, 0),
                hosts[name, True] + hosts[name, False],
                hosts[name, True],
                said.get(name),
            )
            for (name, mapping), counted in zip(mappings.items(), counts, strict=True)
        ]

    async def find(self, name: str) -> SeenCell:
        """Return a cell. Raises `NoSuchCell`."""
        for seen in await self.list():
            if seen.mapping.name == name:
                return seen
        raise NoSuchCell(name)

    async def add(
        self,
        name: str,
        section: str | None,
        answer: Callable[[SeenCell], KeyedAnswer | None] | None = None,
        by: Requester | None = None,
    ) -> SeenCell:
        """Add a cell whose database a section of the configuration names, by default ``cell_NAME``.

        ``answer``: returns the answer that is stored with the cell. ``by``: the requester.

        Raises:
            BadRequest: this conductor's configuration has no such section, or its URL is wrong.
            CellUnavailable: the database cannot be used.
            Conflict: there is a cell of this name, or the database is another cell's.
        """
        cells = self._changeable()
        mapping = CellMapping(name, section or section_of(name))
        if name in await self._api.read(mapped_cells):
            raise Conflict(f"there is a cell {name!r} already")
        try:
            opened = cells.open(mapping)
        except OperatorError as error:
            raise BadRequest(str(error)) from error
        try:
            identity = (await opened.read(read_identity)).uuid
            added = SeenCell(mapping, await opened.read(count_cell()), 0)
        except StorageError as error:
            raise CellUnavailable(f"the database of cell {name!r} cannot be used: {error}") from error
        finally:
            await opened.database.close()
        for other in list(cells.values()):
            try:
                same = (await other.read(read_identity)).uuid == identity
            except StorageError as error:
                raise CellUnavailable(
                    f"cell {other.name} cannot be asked whether its database is the same one: {error}"
                ) from error
            if same:
                raise Conflict(f"the database of [{mapping.section}] is that of cell {other.name}")
        kept = answer(added) if answer is not None else None
        know = with_events(
            map_unknown_cell(mapping), lambda made: [self._told("cell_added", name, by)] if made else []
        )
        if not await self._api.write(Once(know, lambda made: kept if made else None)):
            raise Conflict(f"there is a cell {name!r} already")
        try:
            await cells.refresh()
            await self._watch.look()
        except StorageError as error:
            # The cell is added, even if this process cannot open it now: it tries again by itself.
            _log.warning("a cell that was added is opened later", cell=name, error=str(error))
        return added

    async def enable(
        self,
        name: str,
        enabled: bool,
        reason: str | None = None,
        by: Requester | None = None,
        moves: bool = False,
    ) -> SeenCell:
        """Enable or disable a cell for new instances. ``by``: the requester.

        ``moves``: the instances of a disabled cell are moved to other cells, else they stay.

        Raises:
            NoSuchCell: there is none.
            Conflict: it is cell0.
            CellUnavailable: its database is not configured here.
        """
        if name == CELL0:
            raise Conflict("cell0 has no hosts: it keeps what could not be placed")
        await self._cell(name)
        await self._words.say(Subject(name), enabled, reason, by, moves)
        return await self.find(name)

    async def progress(self, name: str) -> tuple[Subject, DrainWord, DrainProgress]:
        """Return how far a cell is emptied. Raises `NoSuchCell`, `CellUnavailable`."""
        cell, subject = await self._cell(name), Subject(name)
        word = await self._api.read(find_drain_word(subject))
        return subject, word, await cell.read(describe_drain(subject, word.since))

    async def remove(self, name: str, by: Requester | None = None) -> None:
        """Remove a cell without hosts and instances. Its database stays as it is. ``by``: the requester.

        Raises:
            NoSuchCell: there is none.
            CellInUse: it has hosts or instances.
        """
        cells = self._changeable()
        if name == CELL0:
            raise Conflict("cell0 cannot be removed: it keeps what could not be placed")
        cell = await self._cell(name)
        if hosts := await cell.read(hosts_after(1)):
            raise CellInUse(f"cell {name} has host {hosts[0]!r}: remove its hosts first")
        if number := sum((await cell.read(count_cell())).instances.values()):
            raise CellInUse(f"cell {name} has {number} instances")
        forget = with_events(
            forget_cell(name), lambda refused: [] if refused else [self._told("cell_removed", name, by)]
        )
        if refused := await self._api.write(forget):
            raise CellInUse(refused)
        await cells.refresh()

    def _told(self, kind: EventKind, name: str, by: Requester | None) -> CloudEvent:
        return CloudEvent(at=self._clock(), kind=kind, cell=name, by=by)

    async def _cell(self, name: str) -> Cell:
        if name not in await self._api.read(mapped_cells):
            raise NoSuchCell(name)
        cell = self._cells.get(name)
        if cell is None:
            raise CellUnavailable(
                f"this conductor's configuration does not name the database of cell {name!r}"
            )
        return cell

    def _changeable(self) -> OpenCells:
        if not isinstance(self._cells, OpenCells):
            raise Conflict("the cells of this process are fixed")
        return self._cells
