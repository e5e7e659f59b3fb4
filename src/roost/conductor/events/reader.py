"""Reads events by page: from the log of the API database, and from the logs of the cells that answer."""

import asyncio
import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy.engine import Connection

from roost.conductor.events.merge import LogPart, merged
from roost.conductor.hosts.watch import ServiceWatch
from roost.model.instance import ASSIGNED, MOVING
from roost.state.api_database.cell_mappings import mapped_cells
from roost.state.api_database.event_types import (
    INSTANCE,
    CloudEvent,
    EventPage,
    EventsQuery,
    kind_of_state,
    state_of_kind,
)
from roost.state.api_database.events import EventFilter, ReadEvents, events_after, time_of
from roost.state.api_database.open_cells import ask_cell
from roost.state.api_database.past import requesters_of_deletions
from roost.state.cell_database import Cell
from roost.state.cell_database.state_changes import ReadChanges, StateChange, changes_after
from roost.storage import Database
from roost.web.errors import BadRequest


class Marker(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The position of a reader.

    ``api``: in the log of the API database. ``cells``: in the log of each cell; None in markers of earlier
    versions, which listed no events of cells. The log of a cell that is not named was not read yet: it is
    read from the time ``since`` on (seconds since the epoch), or from its beginning.
    """

    api: int
    cells: dict[str, int] | None = None
    since: float | None = None

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")


def marker_of(text: str) -> Marker:
    """Parse a marker. Raises `BadRequest`."""
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found = msgspec.json.decode(decoded, type=Marker)
    except (ValueError, binascii.Error, msgspec.DecodeError, msgspec.ValidationError):
        raise _refused(text) from None
    if not all(0 <= position < 1 << 63 for position in (found.api, *(found.cells or {}).values())):
        raise _refused(text)
    return found


def _refused(text: str) -> BadRequest:
    return BadRequest(f"marker {text!r} is not `next` of a page of events")


LEAST_OF_A_LOG = 4
"""Events that a page reads of one log at least: a page of a thousand cells reads some thousands."""


class _Read(NamedTuple):
    """A read of the API database.

    ``found``: None if the marker is newer than the database. ``began``: see `Marker.since`.
    """

    found: ReadEvents | None
    cells: frozenset[str]
    began: float | None


class EventReader:
    """Reads events by page. A page names cells that do not answer; their events come when they are back.

    Raises `StorageError` if the API database cannot be used.
    """

    def __init__(self, api: Database, cells: Mapping[str, Cell], watch: ServiceWatch) -> None:
        self._api = api
        self._cells = cells
        self._watch = watch

    async def page(self, query: EventsQuery) -> EventPage:
        """Return the events after a marker, or from the first one.

        Raises `BadRequest`: the marker is of no page, or newer than the database.
        """
        marker = None if query.marker is None else marker_of(query.marker)
        most = _share(query.limit, 1 + len(self._cells))
        read = await self._api.read(lambda connection: _read(connection, query, marker, most))
        if read.found is None:
            raise BadRequest(
                f"marker {query.marker!r} is of events that the database does not have: it was taken back to "
                "an earlier time; ask without a marker"
            )
        before = (
            {}
            if marker is None
            else {name: position for name, position in (marker.cells or {}).items() if name in read.cells}
        )
        names = sorted(read.cells if query.cell is None else read.cells & {query.cell})
        if query.kind is not None and not query.kind.startswith(INSTANCE):
            names = []
        asked = await asyncio.gather(
            *(self._ask(name, query, before.get(name), read.began, most) for name in names)
        )
        answers = {name: found for name, found in zip(names, asked, strict=True) if found is not None}
        log = read.found
        parts = [LogPart(log.numbered, log.position, log.last, log.until)]
        parts += [_part(name, found) for name, found in answers.items()]
        page = merged(parts, query.limit)
        after = Marker(
            api=page.positions[0],
            cells={**before, **dict(zip(answers, page.positions[1:], strict=True))},
            since=read.began,
        )
        events = await with_deleters(self._api, page.events)
        return EventPage(events, str(after), page.more, [name for name in names if name not in answers])

    async def _ask(
        self, name: str, query: EventsQuery, after: int | None, began: float | None, most: int
    ) -> ReadChanges | None:
        # A cell that hangs is not waited for at each page.
        if name in self._watch.silent():
            return None
        since = query.since
        if after is None and began is not None:
            since = began if since is None else max(since, began)
        state = None if query.kind is None else state_of_kind(query.kind)
        changes = changes_after(
            after=after, most=most, since=since, state=state, host=query.host, instance=query.instance
        )
        return await ask_cell(self._cells.get(name), changes)


async def with_deleters(api: Database, events: Sequence[CloudEvent]) -> list[CloudEvent]:
    """Return the events with the requesters of deletions, which only the API database knows."""
    deleted = [
        each.instance
        for each in events
        if each.kind == "instance_deleting" and each.by is None and each.instance is not None
    ]
    if not deleted:
        return list(events)
    who = await api.read(requesters_of_deletions(tuple(deleted)))
    return [
        msgspec.structs.replace(each, by=who[each.instance])
        if each.kind == "instance_deleting" and each.instance in who
        else each
        for each in events
    ]


def _share(limit: int, logs: int) -> int:
    """Return the number of events to read of each log: together somewhat more than fit on a page."""
    return min(limit, max(LEAST_OF_A_LOG, 2 * limit // logs))


def _read(connection: Connection, query: EventsQuery, marker: Marker | None, most: int) -> _Read:
    wanted = EventFilter(query.since, query.kind, query.cell, query.host, query.instance)
    found = events_after(None if marker is None else marker.api, most, wanted)(connection)
    if marker is None:
        began = query.since
    elif marker.cells is None:
        # An earlier version made it, which listed no events of instances.
        began = time_of(connection, marker.api)
    else:
        began = marker.since
    return _Read(found, frozenset(mapped_cells(connection)), began)


def _part(cell: str, read: ReadChanges) -> LogPart:
    events = [(each.position, event_of_change(cell, each)) for each in read.changes]
    return LogPart(events, read.end, read.last, read.until)


def event_of_change(cell: str, change: StateChange) -> CloudEvent:
    """Return the change of a state in a cell as an event."""
    told = change.transition
    begins = told.state in (ASSIGNED, MOVING)
    reason = f"attempt {told.attempt}" if begins and told.attempt > 1 else told.reason
    return CloudEvent(
        at=told.at,
        kind=kind_of_state(told.state),
        cell=cell,
        host=told.host if begins else change.host,
        node=told.node if begins else change.node,
        instance=change.instance,
        detail=f"{told.code}: {reason}" if told.code and reason else reason,
        by=told.by,
    )
