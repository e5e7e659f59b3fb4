"""The handler of events over HTTP."""

from typing import Protocol

from roost.conductor.events.reader import EventReader
from roost.state.api_database.event_types import EventPage, EventsQuery
from roost.web.request import Request, Response


class EventService(Protocol):
    """The part of the conductor's service that the handler needs."""

    @property
    def events(self) -> EventReader: ...


async def list_events(service: EventService, req: Request, resp: Response) -> EventPage:
    """List the events of the cloud, the earliest first.

    `next` is never null: a client that asks with it as `marker` misses no event and sees none twice.
    Events that come late, because a cell's database was away, are listed when they come.
    """
    query: EventsQuery = req.query
    return await service.events.page(query)
