"""The operation of events, its handler and policy rule."""

from typing import Final, Protocol

from roost.conductor.events.reader import EventReader
from roost.state.api_database.event_types import EventPage, EventsQuery
from roost.web.operation import Operation
from roost.web.policy import ADMIN, Rule
from roost.web.query import Query
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


PATH: Final = "/v1/events"
_RULE: Final = "conductor:events:list"

EVENT_RULES: Final = {_RULE: ADMIN}
"""The policy rule as it is without a policy file: events name hosts, and have texts of operators."""

EVENT_OPERATIONS: Final = (
    Operation("GET", PATH, Rule(_RULE), list_events, query=Query(EventsQuery), answer=EventPage),
)
