"""The history of an instance as a timeline: its actions, each with its events."""

from collections.abc import Iterator

import htpy as h

from roost.conductor.history.types import HistoryEvent, InstanceAction, InstanceHistory
from roost.dashboard import addresses
from roost.dashboard.html.places import host_link
from roost.dashboard.html.times import duration, weekday_moment

_ACTIONS = {
    "create": "Created",
    "lose": "Guest lost",
    "stop": "Stopped",
    "start": "Started",
    "rebuild": "Rebuilt",
    "shelve": "Shelved",
    "unshelve": "Unshelved",
    "reshape": "Moved to other providers of its node",
    "migrate": "Moved to another host",
    "live_migrate": "Moved to another host while it ran",
    "resize": "Resized",
    "evacuate": "Evacuated to another host",
    "revert": "Moved back",
    "give_up": "Given up",
    "delete": "Deleted",
}

_RESULTS = {
    None: "note",
    "success": "ok",
    "selected": "ok",
    "built": "ok",
    "found": "ok",
    "moved": "ok",
    "stopped": "ok",
    "started": "ok",
    "failed": "look",
    "refused": "fails",
    "error": "fails",
    "lost": "fails",
    "abandoned": "off",
}
"""The mark of each result of an action or event."""


def history_timeline(history: InstanceHistory) -> h.Node:
    """Return the actions of a history, the last one first, with what the history lacks."""
    return [
        history.missing
        and h.div(".notice.state-look")[
            h.p["This history is not whole. It lacks: ", [_listed(history.missing)], "."]
        ],
        [_action(each) for each in reversed(history.actions)],
    ]


def _listed(missing: list[str]) -> Iterator[h.Node]:
    for index, each in enumerate(missing):
        yield [", " if index else None, h.bdi[each]]


def _action(action: InstanceAction) -> h.Element:
    by = action.user_id and [" by ", h.strong[h.bdi[action.user_id]]]
    of = action.project_id and ["project ", h.bdi[action.project_id]]
    took = action.finished_at is not None and action.finished_at > action.started_at
    return h.section(".history-action")[
        h.h3[
            _ACTIONS.get(action.kind, action.kind),
            by or (" by its host" if action.kind in ("lose", "reshape") else None),
        ],
        h.p(".muted")[
            weekday_moment(action.started_at),
            took and f" · {duration((action.finished_at or 0.0) - action.started_at)}",
            of and [" · ", of],
            action.request_id
            and [
                " · ",
                h.a(href=addresses.with_query(addresses.INSTANCES, search=action.request_id, by="request"))[
                    h.bdi[action.request_id]
                ]
                if action.kind == "create"
                else h.bdi(".mono")[action.request_id],
            ],
        ],
        action.reason and h.p(".muted")[h.bdi[action.reason]],
        h.ol(".timeline")[[_event(each) for each in action.events]],
    ]


def _event(event: HistoryEvent) -> h.Element:
    mark = "look" if event.name == "bury" else _RESULTS.get(event.result, "note")
    lasted = event.finished_at is not None and event.finished_at - event.started_at >= 0.001
    return h.li(class_=f"state-{mark}")[
        weekday_moment(event.started_at),
        h.div[_sentence(event)],
        lasted and h.span(".muted")[f"took {duration((event.finished_at or 0.0) - event.started_at)}"],
        event.confirmed_at is not None
        and event.name == "build"
        and h.span(".muted")[
            f"{', ' if lasted else ''}confirmed after {duration(event.confirmed_at - event.started_at)}"
        ],
        event.reason
        and h.div[event.code and [h.code[h.bdi[event.code]], ": "], h.bdi(".name.muted")[event.reason]],
    ]


def _sentence(event: HistoryEvent) -> h.Node:
    at_host = event.host and [" on ", host_link(event.host, event.node)]
    if event.name == "schedule":
        chose = event.result == "selected"
        words: h.Node = "The scheduler chose " if chose else "The scheduler found no host"
        link = event.run and h.a(href=addresses.decision(event.run))["why"]
        there = host_link(event.host, event.node) if event.host else "a host"
        return [words, chose and there, link and [" (", link, ")"]]
    attempt = event.attempt is not None and f", attempt {event.attempt}"
    match event.name:
        case "accept":
            return "The request was accepted"
        case "claim":
            ended = {"refused": "refused", None: "pending"}.get(event.result, "given back")
            return ["Claim", at_host, f": {ended}"]
        case "build":
            return ["Build", at_host, attempt, f": {event.result or 'under way'}"]
        case "bury":
            return "No host can take it: it is kept in cell0"
        case "free":
            return ["The claim is given back", event.finished_at is None and ": under way"]
        case "lose":
            return ["The host says that the guest is not there", at_host]
        case "find":
            return ["The host says that the guest is there again", at_host]
        case "stop" | "start":
            words = "The host stops the guest" if event.name == "stop" else "The host starts the guest"
            return [words, at_host, f": {event.result or 'under way'}"]
        case "rebuild":
            return ["The guest is made anew", at_host, attempt, f": {event.result or 'under way'}"]
        case "offload":
            return ["The host destroys the guest", at_host, f": {event.result or 'under way'}"]
        case "reshape":
            return ["The allocations moved to other providers", at_host]
        case "move":
            to_host = event.host and [" to ", host_link(event.host, event.node)]
            return ["Move", to_host, attempt, f": {event.result or 'under way'}"]
        case "give_up":
            return ["An operator says that the guest is gone", at_host]
        case "destroy":
            return ["The host destroys the guest", at_host, event.finished_at is None and ": under way"]
    return event.name
