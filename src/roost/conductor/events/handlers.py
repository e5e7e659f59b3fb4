"""The handler of events over HTTP."""

from typing import Protocol

from roost.conductor.events.marker import Marker, marker_of
from roost.conductor.events.store import EventsAfter, Wanted
from roost.conductor.events.types import EventPage, EventsQuery
from roost.conductor.requests import Requests
from roost.web.errors import BadRequest
from roost.web.request import Request, Response


class Service(Protocol):
    """What the handler needs of the conductor's service."""

    @property
    def requests(self) -> Requests: ...


async def list_events(service: Service, req: Request, resp: Response) -> EventPage:
    """List what happened in the cloud, in the order in which it was written: the earliest first.

    `next` is there always: a client that asks with it as `marker` misses nothing and sees nothing twice.
    """
    query: EventsQuery = req.query
    after = None if query.marker is None else marker_of(query.marker).api
    wanted = Wanted(query.since, query.kind, query.cell, query.host, query.instance)
    found = await service.requests.database.read(EventsAfter(after, query.limit, wanted))
    if found is None:
        raise BadRequest(
            f"marker {query.marker!r} is of events that the database does not have: it was taken back to an "
            "earlier time; ask without a marker"
        )
    return EventPage(found.events, str(Marker(found.position)), found.position < found.last)
