"""The builds and the events of a host as HTML."""

from collections.abc import Mapping
from typing import Final

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.html.lists import cell, table
from roost.dashboard.html.places import instance_link
from roost.dashboard.html.values import moment, name, number
from roost.dashboard.views.host import HostPageView
from roost.dashboard.views.host_history import DAYS, HostAttempt
from roost.model.record import ABANDONED, BUILT, FAILED, PENDING, REFUSED
from roost.state.api_database.event_types import CloudEvent

_RESULTS: Final = {BUILT: "ok", FAILED: "fails", REFUSED: "look", PENDING: "note", ABANDONED: "off"}

AT_FIRST: Final = 10
"""Builds and events that are shown at first; earlier ones unfold."""

_BAD: Final = (
    "host_down",
    "host_dead",
    "host_unproved",
    "instance_lost",
    "instance_failed",
    "instance_error",
    "host_removed",
)
_GOOD: Final = ("host_up", "host_enabled", "node_enabled", "instance_active", "drain_ended")


def attempts_section(view: HostPageView) -> h.Node:
    """Return the newest attempts to place instances on the host."""
    history = view.history
    if view.state is None:
        return None
    everything = addresses.with_query(addresses.DECISIONS, host=view.name)
    if history.attempts_unknown is not None:
        content: h.Node = h.p(".card-part.muted")[f"Builds are not known: {history.attempts_unknown}."]
    elif not history.attempts:
        content = h.p(".card-part.muted")["No decision in the records has tried this host."]
    else:
        rows = [_attempt(each, view.names) for each in history.attempts]
        heads = ["Began", "Instance", "Result", "Decision"]
        content = [
            table("Builds", heads, rows[:AT_FIRST]),
            h.details(".card-part")[
                h.summary[f"{number(len(rows) - AT_FIRST)} earlier builds"],
                table("Earlier builds", heads, rows[AT_FIRST:]),
            ]
            if len(rows) > AT_FIRST
            else None,
        ]
    return h.section(".card.flush", aria_labelledby="builds")[
        h.div(".section-head")[
            h.h2("#builds")["Builds"],
            len(history.attempts) > 0
            and h.span(".muted.num")[
                f"{number(history.failed)} of the last {number(len(history.attempts))} failed"
            ],
            h.a(href=everything)["All decisions that tried it"],
        ],
        content,
    ]


def _attempt(each: HostAttempt, names: Mapping[str, str]) -> h.Element:
    return h.tr[
        h.th(".nowrap", scope="row", data_label="Began")[moment(each.at)],
        cell("Instance", instance_link(each.instance, names.get(each.instance))),
        cell(
            "Result",
            h.span(class_=f"state-{_RESULTS.get(each.result, 'off')}")[each.result],
            each.reason and h.div(".muted")[h.bdi[each.reason]],
        ),
        cell("Decision", h.a(".mono", href=addresses.decision(each.run))[each.run[:8]]),
    ]


def events_section(view: HostPageView) -> h.Node:
    """Return the newest events of the host."""
    history = view.history
    if view.state is None:
        return None
    if history.events_unknown is not None:
        content: h.Node = h.p(".muted")[f"Events are not known: {history.events_unknown}."]
    elif not history.events:
        content = h.p(".muted")[f"No event in {DAYS} days."]
    else:
        first, rest = history.events[:AT_FIRST], history.events[AT_FIRST:]
        content = [
            h.ol(".timeline")[[_event(each, view.names) for each in first]],
            h.details[
                h.summary[f"{number(len(rest))} earlier events"],
                h.ol(".timeline")[[_event(each, view.names) for each in rest]],
            ]
            if rest
            else None,
        ]
    return h.section(".card", aria_labelledby="history")[
        h.div(".section-head")[
            h.h2("#history")["History"],
            h.a(href=addresses.with_query(addresses.EVENTS, host=view.name))[
                "All events" if not history.more_events else "More events"
            ],
        ],
        content,
    ]


def _event(each: CloudEvent, names: Mapping[str, str]) -> h.Node:
    mark = "fails" if each.kind in _BAD else "ok" if each.kind in _GOOD else None
    return h.li(class_=[mark and f"state-{mark}"])[
        moment(each.at),
        each.kind.replace("_", " ").capitalize(),
        each.instance and (" ", instance_link(each.instance, names.get(each.instance))),
        each.detail and (": ", h.bdi[each.detail]),
        h.span(".muted")[" by ", name(each.by.user_id)] if each.by is not None else None,
    ]
