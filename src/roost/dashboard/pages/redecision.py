"""A decision made again without each of its conditions, as HTML."""

from collections.abc import Sequence
from typing import Final

import htpy as h

from roost.dashboard.addresses import DECISIONS, decision
from roost.dashboard.html.lists import cell, table
from roost.dashboard.html.places import host_link
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.values import number, sentence
from roost.dashboard.page import Page
from roost.dashboard.pages.decision import title_of
from roost.dashboard.service import FLEET_RULE
from roost.dashboard.views.redecision import RedecisionView, redecision_view
from roost.scheduler.replay.counterfactuals import ChosenHost, Counterfactual, Redecided
from roost.web.policy import Rule

SECTION: Final = "without"
"""The id of the part of the page that the page of the decision shows."""

_MOST_HOSTS = 3
_MOST_NAMES = 12


def _redecision(view: RedecisionView, viewing: Viewing) -> h.Node:
    run = view.decision.run
    return [
        page_head(
            "Without one condition",
            "The decision made again, on the state of that moment, without each of its conditions.",
            crumbs=(("Decisions", DECISIONS), (title_of(view.decision), decision(run))),
        ),
        h.section(".card.flush", id=SECTION, aria_labelledby="without-head")[
            h.div(".section-head")[
                h.h2("#without-head")["Without one condition"],
                h.span(".muted")["each is really decided again"],
            ],
            _unlike(view.made) if view.made else _impossible(view.impossible or ""),
            _made(view.made) if view.made else None,
        ],
    ]


def _impossible(why: str) -> h.Element:
    return h.div(".card-part")[
        h.div(".notice.state-look")[h.p["It cannot be decided again: ", h.bdi[why], "."]]
    ]


def _unlike(made: Redecided) -> h.Node:
    if made.same and not made.notes:
        return None
    parts: list[h.Node] = []
    if not made.same:
        words = f"Decided again as it was it differs in: {', '.join(made.differences)}."
        parts.append(h.div(".notice.state-look")[h.p[h.bdi[words]]])
    parts += [h.p(".muted")[h.bdi[sentence(each)]] for each in made.notes]
    return h.div(".card-part")[parts]


def _made(made: Redecided) -> h.Node:
    changed = [each for each in made.counterfactuals if not each.same or each.number_came]
    others = [each for each in made.counterfactuals if each not in changed]
    changed.sort(key=lambda each: (each.same, -each.number_came))
    return [
        table("Without one condition", _heads(), [_row(each) for each in changed])
        if changed
        else h.p(".card-part")["No single condition or weigher made a difference."],
        h.p(".card-part.muted")["Without these it would have been the same: ", _names(others), "."]
        if others
        else None,
        None if made.complete else h.p(".card-part.muted")["The time was over before all were left out."],
    ]


def _heads() -> list[h.Node]:
    return [
        "Without",
        "It would have been",
        h.th(".num", scope="col")["Hosts that could be used"],
        "Of these in addition",
    ]


def _row(each: Counterfactual) -> h.Element:
    return h.tr[
        h.th(scope="row")[h.bdi[each.text], each.kind == "weigher" and h.span(".chip")["weigher"]],
        cell("It would have been", _outcome(each)),
        cell("Hosts that could be used", number(each.left), numeric=True),
        cell("In addition", _came(each)),
    ]


def _outcome(each: Counterfactual) -> h.Node:
    if each.same:
        return h.span(".muted")["refused as well" if not each.hosts else "the same"]
    if not each.hosts:
        return [h.span(".state-fails")["refused"], ": ", h.bdi[each.refusal or ""]]
    more = len(each.hosts) - _MOST_HOSTS
    return h.div[
        h.span(".state-note")["on "],
        [_link(position, host) for position, host in enumerate(each.hosts[:_MOST_HOSTS])],
        f" and {number(more)} more" if more > 0 else None,
    ]


def _link(position: int, host: ChosenHost) -> h.Node:
    return [", " if position else "", host_link(host.name, host.node)]


def _came(each: Counterfactual) -> h.Node:
    if not each.number_came:
        return None
    names = each.came.names[:_MOST_NAMES]
    left_out = each.came.left_out or len(each.came.names) > len(names)
    shown = [[", " if position else "", h.bdi[one]] for position, one in enumerate(names)]
    return h.div[
        h.strong(".num")[number(each.number_came)],
        ": ",
        h.span(".folded")[shown],
        " and more" if left_out else None,
    ]


def _names(some: Sequence[Counterfactual]) -> h.Node:
    return [[", " if position else "", h.bdi[each.text]] for position, each in enumerate(some)]


REDECISION_PAGE: Final = Page(
    f"{DECISIONS}/{{run}}/without",
    Rule(FLEET_RULE),
    redecision_view,
    _redecision,
    lambda view: f"Without one condition: {title_of(view.decision)}",
    here=DECISIONS,
)
