"""The events of the cloud as HTML."""

from datetime import UTC, datetime
from typing import Final

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.html.lists import cell, choice_field, empty, search_form, table, text_field
from roost.dashboard.html.live import live_region
from roost.dashboard.html.maintenances import maintenance_link
from roost.dashboard.html.places import cell_link, host_link, instance_link
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.times import weekday_moment
from roost.dashboard.html.values import counted, name
from roost.dashboard.page import Page
from roost.dashboard.pages.absence import unless_absent
from roost.dashboard.service import FLEET_RULE
from roost.dashboard.views.events import (
    EVENT_GROUPS,
    EventListQuery,
    EventsView,
    events_view,
    kinds_of,
)
from roost.state.api_database.event_types import EVENT_KINDS, CloudEvent
from roost.web.policy import Rule

_TITLE = "Events"

_GROUPS = {
    "operators": "Operators",
    "machines": "Hosts and processes",
    "instances": "Instances",
    "repairs": "Repairs",
}

_MARKS = {
    "fails": {
        "host_down",
        "host_dead",
        "host_unproved",
        "cell_down",
        "service_down",
        "instance_lost",
        "instance_error",
    },
    "look": {
        "host_disabled",
        "node_disabled",
        "cell_disabled",
        "drain_begun",
        "maintenance_paused",
        "maintenance_host_left_out",
        "instance_failed",
        "instance_abandoned",
        "instance_not_moved",
        "repair",
        "task_taken",
    },
    "ok": {
        "host_up",
        "cell_up",
        "service_up",
        "host_enabled",
        "node_enabled",
        "cell_enabled",
        "drain_ended",
        "maintenance_ended",
        "instance_active",
        "instance_moved",
    },
    "off": {
        "host_removed",
        "cell_removed",
        "aggregate_deleted",
        "instance_deleting",
        "instance_destroyed",
        "instance_gone",
    },
}
_MARK_OF = {kind: mark for mark, kinds in _MARKS.items() for kind in kinds}


def _events(view: EventsView, viewing: Viewing) -> h.Node:
    content = (_notice(view), _list(view))
    return [
        page_head(_TITLE, "What happened, the newest first. Times are in UTC."),
        h.section(".card.flush", aria_label="The events")[
            _tabs(view),
            _form(view),
            live_region(viewing, "events", *content, topic="events", pause=3_000)
            if view.is_newest
            else h.div(".region")[content],
        ],
    ]


def _tabs(view: EventsView) -> h.Node:
    shown: list[tuple[str, str | None]] = [("All", None), *((_GROUPS[each], each) for each in EVENT_GROUPS)]
    return h.nav(aria_label="Groups of events")[
        h.ul(".tabs")[
            [
                h.li[
                    h.a(
                        href=_address(view, about=about, kind=None, until=None),
                        aria_current="page" if about == view.about else None,
                    )[words]
                ]
                for words, about in shown
            ]
        ]
    ]


def _form(view: EventsView) -> h.Node:
    kinds = EVENT_KINDS if view.about is None else kinds_of(view.about)
    return search_form(
        addresses.EVENTS,
        choice_field("kind", "Kind", view.kind, [(each, in_words(each)) for each in kinds], every="Any kind"),
        choice_field("cell", "Cell", view.cell, [(each, each) for each in view.cells], every="All cells"),
        text_field("host", "Host", view.host),
        text_field("instance", "Instance (uuid)", view.instance),
        text_field("since", "Since (UTC)", _minute(view.since), type="datetime-local"),
        text_field("until", "Until (UTC)", _minute(view.until, 59.999), type="datetime-local"),
        kept=[("about", view.about)],
    )


def in_words(kind: str) -> str:
    """Return the kind of an event in words."""
    return kind.replace("_", " ").capitalize()


def _notice(view: EventsView) -> h.Node:
    page = view.page
    if not page.cells_down:
        return None
    return h.div(".notice.state-look")[
        h.p[
            "Events of these cells are missing, which cannot be asked now: ",
            [[", " if index else None, h.bdi[each]] for index, each in enumerate(page.cells_down)],
            ".",
        ]
    ]


def _list(view: EventsView) -> h.Node:
    page = view.page
    older = None
    if page.until is not None:
        older = _address(view, until=f"{page.until!r}", skip=f"{page.skip}" if page.skip else None)
    if not page.events:
        back: h.Node = None
        if older is not None:
            back = [
                "No such event since ",
                weekday_moment(page.back_to),
                ". ",
                h.a(href=older)["Look further back"],
            ]
        filters = (view.kind, view.host, view.cell, view.instance, view.since, view.until, view.about)
        filtered = any(each is not None for each in filters)
        return empty(
            "No such events" if filtered else "No events yet",
            back,
            filtered and h.a(href=addresses.EVENTS)["All events"],
        )
    newest = None if view.is_newest else _address(view, until=None)
    return [
        table(
            "Events",
            ["Time", "Event", "Where", "Instance", "Detail", "By"],
            [_row(each, view) for each in page.events],
        ),
        h.div(".pager")[
            h.span[f"{counted(len(page.events), 'event')}, back to ", weekday_moment(page.events[-1].at)],
            newest and h.a(".button.small", href=newest)["Newest"],
            older and h.a(".button.small", href=older, rel="next")["Older"],
        ],
    ]


def _row(event: CloudEvent, view: EventsView) -> h.Element:
    mark = _MARK_OF.get(event.kind, "note")
    node = event.node or view.nodes.get(event.host or "")
    return h.tr[
        h.th(scope="row")[weekday_moment(event.at)],
        cell(
            "Event",
            h.span(class_=f"state-{mark}")[in_words(event.kind)],
            event.name and [" ", _name(event)],
        ),
        cell(
            "Where",
            event.host and host_link(event.host, node),
            event.host and event.cell and h.span(".muted")[" in "],
            event.cell and cell_link(event.cell),
        ),
        cell("Instance", event.instance and instance_link(event.instance, event.instance[:8])),
        cell("Detail", event.detail and h.div(".clamp", title=event.detail)[h.bdi[event.detail]]),
        cell("By", _by(event)),
    ]


def _name(event: CloudEvent) -> h.Node:
    """Return the name in an event: of a maintenance its uuid, else of an aggregate or a process."""
    assert event.name is not None
    if event.kind.startswith("maintenance_"):
        return maintenance_link(event.name)
    return h.bdi(".name")[event.name]


def _by(event: CloudEvent) -> h.Node:
    if event.by is None:
        return None
    return h.span(title=f"project {event.by.project_id}, request {event.by.request_id}")[
        name(event.by.user_id)
    ]


def _address(view: EventsView, **changed: str | None) -> str:
    asked: dict[str, str | None] = {
        "about": view.about,
        "kind": view.kind,
        "host": view.host,
        "cell": view.cell,
        "instance": view.instance,
        "since": None if view.since is None else f"{view.since!r}",
        "until": None if view.until is None else f"{view.until!r}",
    }
    return addresses.with_query(addresses.EVENTS, **{**asked, **changed})


def _minute(at: float | None, later: float = 0.0) -> str | None:
    """Return the minute of a time, as a field of a form has it. ``later``: seconds that are added before."""
    return None if at is None else f"{datetime.fromtimestamp(at + later, UTC):%Y-%m-%dT%H:%M}"


EVENTS: Final = Page(
    addresses.EVENTS,
    Rule(FLEET_RULE),
    events_view,
    unless_absent(_TITLE, _events),
    lambda _: _TITLE,
    here=addresses.EVENTS,
    query=EventListQuery,
    kept_seconds=1.0,
)
