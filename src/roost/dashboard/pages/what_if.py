"""The page of what-ifs as HTML: a form and its answer."""

from typing import Final

import htpy as h

from roost.dashboard.addresses import WHAT_IF
from roost.dashboard.html.bars import bar
from roost.dashboard.html.causes import causes, near_misses, ways_out
from roost.dashboard.html.lists import cell, table
from roost.dashboard.html.request_form import request_form
from roost.dashboard.html.shell import Viewing, page_head
from roost.dashboard.html.values import number, sentence
from roost.dashboard.page import Page
from roost.dashboard.views.request_form import RequestForm
from roost.dashboard.views.what_if import WhatIfView, what_if_view
from roost.model.what_if import Share, WhatIf
from roost.web.policy import Rule

_MOST_NAMES = 30
"""Folded names of hosts that a line shows."""


def _what_if(view: WhatIfView, viewing: Viewing) -> h.Node:
    return [
        page_head(
            "What if",
            "How many more of a request fit, and what keeps the next one away. Instances are really placed, "
            "one after another, on a copy of the present state: nothing is claimed.",
        ),
        h.div(".grid.ask")[request_form(view), h.div(".answer")[_answer(view)]],
    ]


def _answer(view: WhatIfView) -> h.Node:
    if view.failure is not None:
        return h.div(".notice.state-look", role="alert")[h.p[h.bdi[sentence(view.failure)]]]
    answer = view.answer
    if answer is None:
        if view.faults:
            return h.div(".notice.state-look", role="alert")[h.p["The request cannot be asked like that."]]
        return h.div(".card.empty")[
            h.h2["Nothing asked yet"],
            h.p["Say what an instance needs, and press Ask. The address can be shared."],
        ]
    return [
        _headline(answer),
        _warnings(answer),
        _binds(view),
        h.div(".grid.two")[_zones(answer), near_misses(view.binds.misses) if view.binds else None],
        _where(answer),
    ]


def fits_words(answer: WhatIf) -> str:
    """Return how many fit, in words: the number, with "or more" where more may fit."""
    more = "" if answer.complete and not answer.limited else " or more"
    return f"{number(answer.fits)}{more}"


def _headline(answer: WhatIf) -> h.Node:
    share = 100 * answer.on_hosts / max(answer.hosts, 1)
    state = "ok" if answer.fits else "fails"
    return h.dl(".kpis")[
        h.div(".kpi")[
            h.dt(class_=f"kpi-label state-{state}")["More fit" if answer.fits else "None fits"],
            h.dd(".kpi-value.num")[fits_words(answer)],
            h.dd(".kpi-note")[_limit(answer)],
        ],
        h.div(".kpi")[
            h.dt(".kpi-label")["On hosts"],
            h.dd(".kpi-value.num")[
                number(answer.on_hosts), " ", h.span(".unit")[f"of {number(answer.hosts)}"]
            ],
            h.dd(".kpi-note")[bar([(share, "bar-used")], "")],
        ],
        h.div(".kpi")[
            h.dt(".kpi-label")["Commit"],
            h.dd(".kpi-value.num")["–" if answer.version is None else number(answer.version)],
            h.dd(".kpi-note")["the state that it was found on"],
        ],
    ]


def _limit(answer: WhatIf) -> str:
    if answer.limited:
        return "no more were tried"
    return "exactly: the next one does not fit" if answer.complete else "the time was over"


def _warnings(answer: WhatIf) -> h.Node:
    if not answer.warnings:
        return None
    return h.div(".notice.state-look")[
        h.p["Keys without effect:"],
        h.ul(".bullets")[[h.li[h.bdi[each.text]] for each in answer.warnings]],
    ]


def _binds(view: WhatIfView) -> h.Node:
    if view.binds is None:
        return None
    reasons = view.binds.reasons
    title = "What keeps the next one away" if view.answer and view.answer.fits else "Why none fits"
    return h.section(".card.refusal", aria_labelledby="binds")[
        h.h2("#binds")[title],
        h.p(".sentence")[h.bdi[sentence(reasons.sentence)]],
        causes(view.binds.causes, reasons.hosts),
        ways_out(view.binds.ways),
    ]


def _zones(answer: WhatIf) -> h.Node:
    if not answer.zones:
        return None
    most = max(each.instances for each in answer.zones)
    rows = [
        h.tr[
            h.th(scope="row")[h.bdi(".name")[each.zone]],
            cell("", bar([(100 * each.instances / most, "bar-used")], "")),
            cell("Instances", number(each.instances), numeric=True),
            cell("Hosts", number(each.hosts), numeric=True),
        ]
        for each in answer.zones
    ]
    heads: list[h.Node] = ["Zone", "", *(h.th(".num", scope="col")[each] for each in ("Instances", "Hosts"))]
    return h.section(".card.flush", aria_label="Zones")[table("Zones", heads, rows)]


def _where(answer: WhatIf) -> h.Node:
    if not answer.where:
        return None
    heads: list[h.Node] = [
        h.th(".num", scope="col")["Instances"],
        h.th(".num", scope="col")["Hosts"],
        "Which",
    ]
    rows = [_share(each) for each in answer.where]
    return h.section(".card.flush", aria_labelledby="where")[
        h.div(".section-head")[h.h2("#where")["Where"], h.span(".muted")["so many on each of these hosts"]],
        table("Hosts by the instances that they take", heads, rows),
        h.p(".card-part.muted")[f"{number(answer.shares_left_out)} further lines."]
        if answer.shares_left_out
        else None,
    ]


def _share(each: Share) -> h.Element:
    names = each.names.names[:_MOST_NAMES]
    more = each.names.left_out or len(each.names.names) > len(names)
    return h.tr[
        cell("Instances", number(each.instances), numeric=True),
        cell("Hosts", number(each.hosts), numeric=True),
        cell(
            "Which",
            h.span(".folded")[[[", " if position else "", h.bdi[one]] for position, one in enumerate(names)]],
            " and more" if more else None,
        ),
    ]


WHAT_IF_PAGE: Final = Page(
    WHAT_IF,
    Rule("scheduler:what_if", all_projects="scheduler:records:all_projects"),
    what_if_view,
    _what_if,
    lambda _: "What if",
    here=WHAT_IF,
    query=RequestForm,
)
