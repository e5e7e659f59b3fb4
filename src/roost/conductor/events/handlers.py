"""The handler of events over HTTP."""

from typing import Protocol

from roost.conductor.events.reader import EventReader
from roost.state.api_database.event_types import EventPage, EventsQuery
from roost.web.request import Request, Response


class Service(Protocol):
    """What the handler needs of the conductor's service."""

    @property
    def events(self) -> EventReader: ...


async def list_events(service: Service, req: Request, resp: Response) -> EventPage:
    """List what happened in the cloud: the earliest first, as far as it is known.

    `next` is there always: a client that asks with it as `marker` misses nothing and sees nothing twice.
    What comes late, as a cell's database was away, is listed when it comes.
    """
    query: EventsQuery = req.query
    return await service.events.page(query)
