"""The builds on a host, and the events of it."""

import msgspec

from roost.conductor.events.reader import EventReader
from roost.dashboard.service import DashboardService
from roost.model.record import FAILED
from roost.records import RecordsError, UnknownRun
from roost.records.records import SearchableRecords
from roost.records.search import Search
from roost.state.api_database.event_types import CloudEvent, EventsQuery
from roost.storage import StorageError

BUILDS = 20
"""Attempts that a page shows, the newest."""

EVENTS = 40
"""Events that a page shows, the newest."""

DAYS = 3
"""Days of which events are shown."""

_READ = 1_000
_READS = 3


class HostAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt to place an instance on a host. ``reason``: why it ended without the instance."""

    run: str
    instance: str
    project_id: str
    at: float
    finished_at: float | None
    result: str
    reason: str | None


class HostHistory(msgspec.Struct, frozen=True):
    """The newest attempts and events of a host, the newest first.

    ``disabled_by``: the user who disabled the host last, None if that is not known. ``attempts_unknown`` and
    ``events_unknown``: why there are none. ``more_events``: there were more than are read.
    """

    attempts: tuple[HostAttempt, ...]
    events: tuple[CloudEvent, ...]
    disabled_by: str | None
    attempts_unknown: str | None = None
    events_unknown: str | None = None
    more_events: bool = False
    failed: int = 0


async def read_history(service: DashboardService, host: str | None, unknown: dict[str, str]) -> HostHistory:
    """Return the history of a host. ``host``: its name; None: no agent reports it."""
    if host is None:
        return HostHistory((), (), None)
    attempts, attempts_unknown = await _attempts(service, host)
    events: tuple[CloudEvent, ...] = ()
    events_unknown, more = None, False
    if service.cloud is None:
        events_unknown = "without an API database there are no events"
    else:
        try:
            found, more = await _events(service.cloud.events, host, service.clock() - DAYS * 86_400)
            events = tuple(reversed(found))
        except StorageError as error:
            events_unknown = str(error)
    by = next((each.by for each in events if each.kind == "host_disabled"), None)
    return HostHistory(
        attempts,
        events[:EVENTS],
        None if by is None else by.user_id,
        attempts_unknown,
        events_unknown,
        more or len(events) > EVENTS,
        sum(each.result == FAILED for each in attempts),
    )


async def _attempts(service: DashboardService, host: str) -> tuple[tuple[HostAttempt, ...], str | None]:
    backend = service.records.backend
    if not isinstance(backend, SearchableRecords):
        return (), "the records cannot be searched"
    try:
        runs = await backend.find(Search(host=host), BUILDS)
    except (RecordsError, UnknownRun) as error:
        return (), str(error)
    found = [
        HostAttempt(
            run=each.run,
            instance=each.instance,
            project_id=run.run.project_id,
            at=each.at,
            finished_at=each.finished_at,
            result=each.result,
            reason=each.reason,
        )
        for run in runs
        for each in run.attempts
        if each.host == host
    ]
    return tuple(sorted(found, key=lambda each: -each.at)[:BUILDS]), None


async def _events(reader: EventReader, host: str, since: float) -> tuple[list[CloudEvent], bool]:
    """Return the newest events since a time, in order, and whether there are more than were read."""
    found: list[CloudEvent] = []
    marker = None
    for _ in range(_READS):
        page = await reader.page(EventsQuery(limit=_READ, host=host, since=since, marker=marker))
        found += page.events
        if not page.more:
            return found, False
        marker = page.next
    return found, True
