"""The page after an action: what was done, or that it was not, or that this is not known."""

import htpy as h

from roost.dashboard import addresses
from roost.dashboard.actions.confirmation_page import WORDS, crumbs_of, place_address, place_card
from roost.dashboard.actions.outcome import ActionResult, WordOutcome
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.times import weekday_moment
from roost.dashboard.html.values import counted, number
from roost.dashboard.pages.events import in_words
from roost.state.api_database.event_types import CloudEvent

_DONE = {"enable": "is enabled", "disable": "is disabled", "drain": "is being drained"}


def title_of_outcome(result: ActionResult) -> str:
    """Return the title of the page after an action."""
    if result.result == "done":
        return "Done"
    return "Not known" if result.result == "unknown" else "Not done"


def word_outcome_html(view: WordOutcome, viewing: Viewing) -> h.Node:
    """Return the page after a word."""
    place = view.place
    name = view.node or view.host or view.cell or "" if place is None else place.name
    kind = "node" if view.node else "host" if view.host else "cell"
    again = addresses.action(view.verb, cell=view.cell, host=view.host, node=view.node)
    head: h.Node = {
        "done": [f"{kind.capitalize()} ", h.bdi[name], f" {_DONE[view.verb]}"],
        "refused": [f"{kind.capitalize()} ", h.bdi[name], " is as it was"],
        "unreached": [f"{kind.capitalize()} ", h.bdi[name], " is as it was"],
        "unknown": [f"{WORDS[view.verb]} {kind} ", h.bdi[name], ": not known"],
    }[view.result.result]
    if view.result.result == "done" and view.verb == "drain" and place and place.instances == 0:
        head = [f"{kind.capitalize()} ", h.bdi[name], " is disabled and empty"]
    return [
        page_head(head, crumbs=(("Cells", addresses.CELLS),) if place is None else crumbs_of(place)),
        h.div(".grid.side")[
            h.section(".card", aria_labelledby="result")[
                h.h2("#result")["What was done"],
                outcome_sentence(view.result, again, _from_now_on(view)),
                outcome_record(view.result, view.user, view.at, view.event),
                h.div(".button-row")[_next(view)],
            ],
            None if place is None else place_card(place),
        ],
    ]


def _from_now_on(view: WordOutcome) -> str:
    if view.verb == "enable":
        return "It may get new instances again."
    left = None if view.place is None else view.place.instances
    if not left:
        return "It gets no new instances." if left is None else "It gets no new instances, and none is there."
    there = counted(left, "instance is", "instances are")
    if view.verb == "drain":
        return f"It gets no new instances. {there} left; the drain ends when none is."
    return f"It gets no new instances. {there} there and {'runs' if left == 1 else 'run'} on."


def outcome_words(result: ActionResult, done: str) -> str:
    """Return what follows the subject of an act in the heading. ``done``: what has happened to it."""
    match result.result:
        case "done":
            return f" {done}"
        case "unknown":
            return ": not known whether this was done"
    return " is as it was"


def outcome_sentence(result: ActionResult, again: str, done: str) -> h.Node:
    """Return what became of an action. ``again``: the address of its question. ``done``: what comes next."""
    says = result.says and h.bdi[result.says]
    match result.result:
        case "done":
            return h.div(".notice.state-ok", role="status")[h.p["The conductor has done it. ", done]]
        case "refused":
            return h.div(".notice.state-fails", role="alert")[h.p["The conductor refuses it: ", says]]
        case "unreached":
            return h.div(".notice.state-look", role="alert")[
                h.p[says], h.a(".button.small", href=again)["Ask again"]
            ]
    return h.div(".notice.state-look", role="alert")[
        h.p[h.strong["It is not known whether this was done. "], says],
        h.p["To ask again is safe: what is done already is not done twice."],
        h.a(".button.small", href=again)["See how it is now, and ask again"],
    ]


def outcome_record(result: ActionResult, user: str, at: float, event: CloudEvent | None) -> h.Node:
    """Return who asked for an action and when, with the event that records it."""
    facts: list[tuple[str, h.Node]] = [
        ("Asked by", h.strong[h.bdi[user]]),
        ("At", weekday_moment(at)),
        ("Request", result.request_id and h.bdi(".mono")[result.request_id]),
    ]
    if event is not None:
        address = addresses.with_query(
            addresses.EVENTS, kind=event.kind, host=event.host, cell=event.cell, since=f"{event.at:.3f}"
        )
        by: h.Node = None if event.by is None else [" by ", h.bdi[event.by.user_id]]
        facts.append(
            ("Recorded", [h.a(href=address)[in_words(event.kind)], by, ", ", weekday_moment(event.at)])
        )
    return h.dl(".facts")[[(h.dt[title], h.dd[value]) for title, value in facts if value]]


def _next(view: WordOutcome) -> h.Node:
    place = view.place
    if place is None:
        return h.a(".button", href=addresses.CELLS)["All cells"]
    left: h.Node = None
    if view.verb != "enable" and place.instances and place.node is None:
        address = addresses.with_query(addresses.INSTANCES, host=place.host, cell=place.cell)
        left = h.a(".button.primary", href=address)[f"The {number(place.instances)} that are left"]
    back = None
    if view.result.result == "done" and view.verb != "enable":
        undo = addresses.action("enable", cell=place.cell, host=place.host, node=place.node)
        back = h.a(".button", href=undo)["Enable again"]
    return [left, h.a(".button", href=place_address(place))[f"To the {place.kind}"], back]
