"""The events of the cloud, the newest first: a window of the past, and the way further back."""

from typing import Annotated, Final, Literal, get_args

import msgspec
from msgspec import Meta

from roost.conductor.events.newest import LATEST, NewestPage, NewestQuery
from roost.dashboard.page import PageQuery
from roost.dashboard.service import CloudReads, DashboardService
from roost.dashboard.views.absence import of_cloud
from roost.dashboard.views.moments import read_moment
from roost.state.api_database.event_types import EVENT_KINDS, INSTANCE, EventKind
from roost.web.errors import BadRequest
from roost.web.query import Uuid
from roost.web.request import Request

ON_A_PAGE: Final = 50
"""Events on a page."""

MOST_SKIPPED: Final = 10_000
"""Events of one time that a page skips at most."""

EventGroup = Literal["operators", "machines", "instances", "repairs"]
EVENT_GROUPS: tuple[EventGroup, ...] = get_args(EventGroup)

_MACHINES = (
    *("host_up", "host_down", "host_dead", "host_unproved", "cell_up", "cell_down"),
    *("service_up", "service_down", "task_taken"),
)


def kinds_of(group: EventGroup) -> tuple[str, ...]:
    """Return the kinds of a group of events."""
    if group == "machines":
        return _MACHINES
    if group == "repairs":
        return ("repair",)
    of_instances = tuple(each for each in EVENT_KINDS if each.startswith(INSTANCE))
    if group == "instances":
        return of_instances
    return tuple(each for each in EVENT_KINDS if each not in {*_MACHINES, "repair", *of_instances})


_Text = Annotated[str, Meta(max_length=255)]
_Moment = Annotated[str, Meta(max_length=40)]


class EventListQuery(PageQuery, forbid_unknown_fields=True, kw_only=True):
    """The query of the events.

    ``about``: a group of kinds. ``since``, ``until``: times as ISO 8601 or in seconds since 1970. ``skip``:
    events of the very time ``until`` that an earlier page has shown.
    """

    about: EventGroup | None = None
    kind: EventKind | None = None
    host: _Text | None = None
    cell: _Text | None = None
    instance: Uuid | None = None
    since: _Moment | None = None
    until: _Moment | None = None
    skip: Annotated[int, Meta(ge=0, le=MOST_SKIPPED)] = 0


class EventsView(msgspec.Struct, frozen=True, kw_only=True):
    """A page of events, the newest first. Times are seconds since the epoch.

    ``nodes``: the root provider of each host that has events and is known here. ``cells``: the names of all
    cells. The others are the filters.
    """

    at: float
    page: NewestPage
    nodes: dict[str, str]
    cells: tuple[str, ...]
    about: EventGroup | None = None
    kind: str | None = None
    host: str | None = None
    cell: str | None = None
    instance: str | None = None
    since: float | None = None
    until: float | None = None

    @property
    def is_newest(self) -> bool:
        """True if the page begins with the last event."""
        return self.until is None


@of_cloud
async def events_view(service: DashboardService, cloud: CloudReads, req: Request) -> EventsView:
    """Return a page of events."""
    query: EventListQuery = req.query
    since = None if query.since is None else read_moment(query.since, earliest=0.0)
    until = None if query.until is None else read_moment(query.until, earliest=0.0)
    if query.kind is not None and query.about is not None and query.kind not in kinds_of(query.about):
        raise BadRequest(f"{query.kind} is no event of the group {query.about}.")
    kinds: tuple[str, ...] | None = None
    if query.kind is not None:
        kinds = (query.kind,)
    elif query.about is not None:
        kinds = kinds_of(query.about)
    page = await cloud.newest.page(
        NewestQuery(
            limit=ON_A_PAGE,
            until=LATEST if until is None else until,
            skip=query.skip,
            since=since,
            kinds=kinds,
            cell=query.cell,
            host=query.host,
            instance=query.instance,
        )
    )
    return EventsView(
        at=service.clock(),
        page=page,
        nodes=service.nodes_of_hosts(
            each.host for each in page.events if each.host is not None and each.node is None
        ),
        cells=tuple(sorted(cloud.cells)),
        about=query.about,
        kind=query.kind,
        host=query.host,
        cell=query.cell,
        instance=query.instance,
        since=since,
        until=until,
    )
