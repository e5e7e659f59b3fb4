"""The newest events of all logs, read backwards by time: a window of the past, not all of it.

Readers that follow the events use `roost.conductor.events.reader`, which misses none. People look at the last
ones first, and go back from there. So this reader orders by time alone, and an event that comes late is at
its place when the page is read again.
"""

import asyncio
from collections.abc import Mapping
from hashlib import sha256
from heapq import merge
from itertools import islice
from typing import NamedTuple

import msgspec

from roost.conductor.events.reader import event_of_change, with_deleters
from roost.conductor.hosts.watch import ServiceWatch
from roost.state.api_database.event_types import INSTANCE, CloudEvent, state_of_kind
from roost.state.api_database.events import event_of, log_end, newest_events
from roost.state.api_database.open_cells import ask_cell
from roost.state.cell_database import Cell
from roost.state.cell_database.state_changes import change_of, changes_end, newest_changes
from roost.state.newest_rows import NewestRows
from roost.storage import Database

LOOKS = 4
"""Reads of all logs for one page at most: a filter may let few events pass."""

LATEST = 1e12
"""The time (seconds since the epoch) from which all events are read."""


class NewestQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The question for events.

    ``until``: only those of this time or before, without the first ``skip`` of this very time; ``since``: of
    this time or later. ``kinds``: None: any.
    """

    limit: int
    until: float = LATEST
    skip: int = 0
    since: float | None = None
    kinds: tuple[str, ...] | None = None
    cell: str | None = None
    host: str | None = None
    instance: str | None = None


class NewestPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events, the newest first. ``cells_down``: the cells that cannot be asked; their events are missing.

    ``until``, ``skip``: of the query that goes on from here, None if there is nothing more. ``back_to``: the
    time back to which all logs were examined, None if to their beginning.
    """

    events: list[CloudEvent]
    until: float | None
    skip: int
    back_to: float | None
    cells_down: list[str]


class _Found(NamedTuple):
    """An event as a log has it. ``row``: undecoded, because most are of later pages. ``cell``: None: it is of
    the API database."""

    at: float
    log: int
    row: object
    cell: str | None


class NewestEvents:
    """Reads the newest events. Raises `StorageError` if the API database cannot be used."""

    def __init__(self, api: Database, cells: Mapping[str, Cell], watch: ServiceWatch) -> None:
        self._api = api
        self._cells = cells
        self._watch = watch

    async def page(self, query: NewestQuery) -> NewestPage:
        """Return a page of events, the newest first."""
        events: list[CloudEvent] = []
        silent: set[str] = set()
        page = NewestPage(events=[], until=query.until, skip=query.skip, back_to=None, cells_down=[])
        for _ in range(LOOKS):
            rest = msgspec.structs.replace(
                query, limit=query.limit - len(events), until=page.until, skip=page.skip
            )
            page = await self._look(rest)
            events += page.events
            silent.update(page.cells_down)
            if page.until is None or len(events) == query.limit:
                break
        told = await with_deleters(self._api, events)
        return msgspec.structs.replace(page, events=told, cells_down=sorted(silent))

    @property
    def logs(self) -> int:
        """The number of the logs."""
        return 1 + len(self._cells)

    async def mark(self) -> str:
        """Return a text that is another one when some log has a new event. Cells that are away have none."""
        silent = self._watch.silent()
        names = sorted(name for name in self._cells if name not in silent)
        position, *changes = await asyncio.gather(
            self._api.read(log_end()), *(ask_cell(self._cells.get(name), changes_end()) for name in names)
        )
        told = (f"{name}={end}" for name, end in zip(names, changes, strict=True))
        return sha256(";".join((f"{position}", *told)).encode()).hexdigest()[:16]

    async def _look(self, query: NewestQuery) -> NewestPage:
        """Read all logs once."""
        names = self._asked(query)
        most = query.skip + query.limit + 1
        parts = await asyncio.gather(
            self._of_api(query, most), *(self._of_cell(name, query, most) for name in names)
        )
        silent = [name for name, part in zip(names, parts[1:], strict=True) if part is None]
        logs = [(None, parts[0]), *zip(names, parts[1:], strict=True)]
        edges = [part.back_to for part in parts if part is not None and part.back_to is not None]
        edge = max(edges, default=None)
        found = merge(
            *(
                [_Found(row.at, number, row, cell) for row in part.rows]
                for number, (cell, part) in enumerate(logs)
                if part is not None
            ),
            key=lambda each: (-each.at, each.log),
        )
        ordered = [each for each in found if edge is None or each.at > edge]
        shown = ordered[query.skip : query.skip + query.limit]
        events = [event for each in shown if (event := _event(each)) is not None]
        if len(ordered) > query.skip + query.limit:
            until = shown[-1].at
            earlier = sum(1 for each in islice(ordered, query.skip + query.limit) if each.at == until)
            return NewestPage(events=events, until=until, skip=earlier, back_to=until, cells_down=silent)
        if edge is None:
            return NewestPage(events=events, until=None, skip=0, back_to=None, cells_down=silent)
        # All of the examined rows have one time: go on before it, though some of that time are left out.
        until = edge if edge < query.until else edge - 1e-6
        return NewestPage(events=events, until=until, skip=0, back_to=edge, cells_down=silent)

    def _asked(self, query: NewestQuery) -> list[str]:
        """Return the names of the cells that may have events that are asked for."""
        if query.kinds is not None and not any(each.startswith(INSTANCE) for each in query.kinds):
            return []
        return sorted(self._cells if query.cell is None else {query.cell} & set(self._cells))

    async def _of_api(self, query: NewestQuery, most: int) -> NewestRows | None:
        kinds = query.kinds
        if kinds is not None:
            kinds = tuple(each for each in kinds if not each.startswith(INSTANCE))
            if not kinds:
                return NewestRows([], None)
        work = newest_events(
            until=query.until,
            since=query.since,
            most=most,
            kinds=kinds,
            cell=query.cell,
            host=query.host,
            instance=query.instance,
        )
        return await self._api.read(work)

    async def _of_cell(self, name: str, query: NewestQuery, most: int) -> NewestRows | None:
        # A cell that hangs is not waited for at each page.
        if name in self._watch.silent():
            return None
        states = None
        if query.kinds is not None:
            states = tuple(state_of_kind(each) for each in query.kinds if each.startswith(INSTANCE))
        work = newest_changes(
            until=query.until,
            since=query.since,
            most=most,
            states=states,
            host=query.host,
            instance=query.instance,
        )
        return await ask_cell(self._cells.get(name), work)


def _event(found: _Found) -> CloudEvent | None:
    row = found.row
    if found.cell is None:
        return event_of(row.body)  # type: ignore[attr-defined]
    change = change_of(row)  # type: ignore[arg-type]
    return None if change is None else event_of_change(found.cell, change)
