"""The operation of events, and its policy rule."""

from typing import Final

from roost.conductor.events.handlers import list_events
from roost.state.api_database.event_types import EventPage, EventsQuery
from roost.web.operation import Operation
from roost.web.policy import ADMIN, Rule
from roost.web.query import Query

PATH: Final = "/v1/events"
_RULE: Final = "conductor:events:list"

EVENT_RULES: Final = {_RULE: ADMIN}
"""The policy rule as it is without a policy file: events name hosts, and have texts of operators."""

EVENT_OPERATIONS: Final = (
    Operation("GET", PATH, Rule(_RULE), list_events, query=Query(EventsQuery), answer=EventPage),
)
